// The document: strictness over every key (by walking the tree of the samples), and round trips.
#include "contract/json.hpp"
#include "base/json_reader.hpp"
#include "catch.hpp"
#include "contract/json_printer.hpp"
#include "contract/tensors.hpp"
#include "samples.hpp"

namespace quern::contract {
namespace {

using base::Json;

// The error text of reading, "" when the document is accepted.
std::string error_of(const std::string& text) {
  try {
    read_contract(text, "model.json");
  } catch (const base::Error& error) {
    REQUIRE(error.code() == base::ExitCode::input);
    return error.what();
  }
  return {};
}

// A place in the tree, by the steps from the root.
struct Place {
  std::vector<std::string> keys;  // "[3]" for items of arrays
  std::string text;               // as errors spell it
};

void collect(const Json& value, const Place& here, std::vector<Place>& out) {
  std::size_t index = 0;
  for (const auto& item : value.items()) {
    Place place = here;
    place.keys.push_back(value.is_array() ? base::cat("[", index++, "]") : item.key());
    place.text +=
        value.is_array() ? place.keys.back() : (here.text.empty() ? "" : ".") + item.key();
    out.push_back(place);
    // Reports for people are free-form below their own key.
    if (place.text == "quantization" || place.text == "source" || place.text == "weights") continue;
    if (item.value().is_structured()) collect(item.value(), place, out);
  }
}

Json& at(Json& document, const std::vector<std::string>& keys, std::size_t depth) {
  Json* value = &document;
  for (std::size_t i = 0; i < depth; ++i) {
    const std::string& key = keys[i];
    value = key[0] == '[' ? &(*value)[static_cast<std::size_t>(std::stoul(key.substr(1)))]
                          : &(*value)[key];
  }
  return *value;
}

std::vector<Place> places_of(const Json& document) {
  std::vector<Place> out;
  collect(document, {}, out);
  return out;
}

bool in_array(const Place& place) {
  return place.keys.back()[0] == '[';
}

// Names that the model chooses: taking one away is noticed where it is used.
bool chosen_name(const Place& place) {
  static const std::vector<std::string> sections = {"norms", "ropes", "ops", "blocks"};
  if (place.keys.size() == 3 && (place.keys[1] == "named" || place.keys[1] == "special")) return true;
  return place.keys.size() == 2 &&
         std::find(sections.begin(), sections.end(), place.keys[0]) != sections.end();
}

// Keys that came after the first release of their section: absent means none.
bool later_key(const Place& place) {
  return place.text == "chat.named" || place.text == "chat.special";
}

void rename_key(Json& object, const std::string& key) {
  Json renamed = Json::object();
  for (const auto& item : object.items())
    renamed[item.key() == key ? key + "x" : item.key()] = item.value();
  object = renamed;
}

}  // namespace

TEST_CASE("every key is required and none may be renamed") {
  for (const std::string& name : kSamples) {
    const Json document = Json::parse(sample_text(name));
    std::size_t checked = 0;
    for (const Place& place : places_of(document)) {
      if (in_array(place) || chosen_name(place)) continue;
      const std::string key = place.keys.back();
      Json removed = document;
      at(removed, place.keys, place.keys.size() - 1).erase(key);
      const std::string without = error_of(removed.dump());
      INFO(place.text << " removed: " << without);
      CHECK((later_key(place) ? without.empty() : without.find("model.json: " + place.text + ":") == 0));
      Json renamed = document;
      rename_key(at(renamed, place.keys, place.keys.size() - 1), key);
      const std::string other = error_of(renamed.dump());
      INFO(place.text << " renamed: " << other);
      CHECK(other.find(place.text) != std::string::npos);
      ++checked;
    }
    CHECK(checked > 100);
  }
}

TEST_CASE("a surplus key is refused wherever it stands, with its path and the nearest key") {
  for (const std::string& name : kSamples) {
    const Json document = Json::parse(sample_text(name));
    for (const Place& place : places_of(document)) {
      if (in_array(place) || chosen_name(place)) continue;
      Json surplus = document;
      at(surplus, place.keys, place.keys.size() - 1)[place.keys.back() + "x"] = 1;
      const std::string text = error_of(surplus.dump());
      INFO(place.text << ": " << text);
      CHECK(text.find(place.text + "x: unknown key") != std::string::npos);
      if (place.keys.back().size() > 2) CHECK(text.find("did you mean") != std::string::npos);
    }
  }
}

TEST_CASE("a value of another type is refused at its path") {
  const std::vector<Json> others = {Json("7up"), Json(true),          Json(-1),
                                    Json(0.5),   Json::array({true}), Json::parse(R"({"x":1})")};
  for (const std::string& name : kSamples) {
    const Json document = Json::parse(sample_text(name));
    for (const Place& place : places_of(document)) {
      for (const Json& other : others) {
        Json changed = document;
        Json& value = at(changed, place.keys, place.keys.size());
        const bool same_kind =
            value.type() == other.type() || (value.is_number() && other.is_number());
        // null may stand for a nested object, a name or a number; strings are free text in places.
        if (same_kind) continue;
        const bool was_null = value.is_null();
        value = other;
        const std::string text = error_of(changed.dump());
        INFO(name << ": " << place.text << " = " << other.dump() << ": " << text);
        if (was_null && text.empty()) continue;  // a value of the right kind in place of null
        CHECK(text.find("model.json: " + place.text) != std::string::npos);
      }
    }
  }
}

TEST_CASE("null is accepted only where the contract knows absence") {
  // Whole keys, and "norm" of a QK-norm and "rope" of latent attention, which must be there.
  const std::vector<std::string> nullable = {"positions",
                                             "order",
                                             "norm",
                                             "switch",
                                             "qk_norm",
                                             "rope",
                                             "window",
                                             "softcap",
                                             "alibi",
                                             "relative_bias",
                                             "clip_qkv",
                                             "kv_from",
                                             "indexer",
                                             "q_rank",
                                             "q_norm",
                                             "clamp",
                                             "shared",
                                             "norm_in",
                                             "norm_out",
                                             "norm_after",
                                             "final_norm",
                                             "embedding",
                                             "transform",
                                             "activation",
                                             "pool",
                                             "pool_pad",
                                             "pooling",
                                             "bos",
                                             "pad",
                                             "unk",
                                             "mask",
                                             "decoder_start",
                                             "unk_id",
                                             "sample",
                                             "temperature",
                                             "top_k",
                                             "top_p",
                                             "min_p",
                                             "repetition_penalty",
                                             "max_new_tokens",
                                             "pair",
                                             "min_new_tokens",
                                             "max_length",
                                             "min_length",
                                             "n_beams",
                                             "length_penalty",
                                             "early_stopping",
                                             "no_repeat_ngram",
                                             "forced_bos",
                                             "forced_eos",
                                             "encoder",
                                             "decoder"};
  const std::vector<std::string> never = {
      "ops.attn.qk_norm.norm",     "ops.attn.mask", "ops.look.mask",          "ops.ffn.activation",
      "ops.moe.expert.activation", "ops.moe.top_k", "ops.attn.indexer.top_k", "embedding"};
  for (const std::string& name : kSamples) {
    const Json document = Json::parse(sample_text(name));
    for (const Place& place : places_of(document)) {
      Json changed = document;
      Json& value = at(changed, place.keys, place.keys.size());
      if (value.is_null()) continue;
      value = nullptr;
      const std::string text = error_of(changed.dump());
      INFO(place.text << ": " << text);
      const bool may =
          std::find(nullable.begin(), nullable.end(), place.keys.back()) != nullable.end();
      const bool must = std::find(never.begin(), never.end(), place.text) != never.end();
      if (!may || must) CHECK(text.find("model.json: " + place.text) != std::string::npos);
    }
  }
}

namespace {

struct WordPlace {
  std::string path, nearest;
};

void check_words(const std::string& name, const std::vector<WordPlace>& rows) {
  const Json document = Json::parse(sample_text(name));
  std::size_t checked = 0;
  for (const Place& place : places_of(document)) {
    for (const WordPlace& row : rows) {
      if (place.text != row.path) continue;
      ++checked;
      Json changed = document;
      at(changed, place.keys, place.keys.size()) = row.nearest + "e";
      const std::string text = error_of(changed.dump());
      INFO(text);
      CHECK(text.find("model.json: " + row.path + ": unknown value \"" + row.nearest + "e\"") !=
            std::string::npos);
      CHECK(text.find("known: ") != std::string::npos);
      if (row.nearest.size() > 2)
        CHECK(text.find("did you mean \"" + row.nearest + "\"") != std::string::npos);
    }
  }
  CHECK(checked == rows.size());
}

}  // namespace

TEST_CASE("an unknown word of an enum names its path, the known words and the nearest") {
  check_words("llama.json", {{"kind", "decoder"},
                             {"norms.rms.kind", "rms_norm"},
                             {"norms.rms.accumulate", "f32"},
                             {"ropes.main.layout", "half"},
                             {"ropes.main.rule", "default"},
                             {"ropes.main.switch.kind", "dynamic_ntk"},
                             {"ops.attn.kind", "attention"},
                             {"ops.attn.source", "self"},
                             {"ops.attn.qk_norm.over", "head"},
                             {"ops.attn.mask.kind", "causal"},
                             {"ops.ffn.activation", "silu"},
                             {"blocks.block.residual", "sequential"},
                             {"head.kind", "lm"},
                             {"tokenizer.model", "bpe"},
                             {"tokenizer.score_sum", "f64"},
                             {"chat.builtin", "chatml"}});
  check_words("latent.json", {{"ops.moe.router.score", "sigmoid"},
                              {"ops.moe.router.group_score", "top2_sum"},
                              {"ops.moe.expert.activation", "silu"}});
  check_words("encoder_decoder.json", {{"embedding.positions.order", "halves"},
                                       {"encoder.embedding.tokens", "own"},
                                       {"encoder.embedding.positions.kind", "learned"},
                                       {"generation.early_stopping", "never"}});
  check_words(
      "encoder.json",
      {{"head.pool", "first"}, {"head.transform.activation", "tanh"}, {"pooling.mode", "mean"},
       {"pooling.dense[0].activation", "tanh"}});
}

TEST_CASE("a key that an older converter did not write: convert the model again") {
  for (const char* key : {"pooling", "chat", "kind"}) {
    Json changed = Json::parse(sample_text("llama.json"));
    changed.erase(key);
    CHECK(error_of(changed.dump()).find("key is missing; convert the model again") != std::string::npos);
  }
}

TEST_CASE("a version of another time and mechanisms of another kind are refused by name") {
  const auto with = [](const std::string& name, const std::string& pointer, const Json& value) {
    Json changed = Json::parse(sample_text(name));
    changed[Json::json_pointer(pointer)] = value;
    return error_of(changed.dump());
  };
  CHECK(with("llama.json", "/quern", 2).find("version of the contract") != std::string::npos);
  CHECK(with("llama.json", "/kind", "encoder").find("encoder stack") != std::string::npos);
  CHECK(with("llama.json", "/ops/ffn/kind", "moe").find("n_experts: key is missing") !=
        std::string::npos);
  CHECK(with("encoder_decoder.json", "/generation/bad_words/1/0", -1)
            .find("generation.bad_words[1][0]: wrong value") != std::string::npos);
  CHECK(with("encoder_decoder.json", "/generation/bad_words/1/0", 5000)
            .find("generation.bad_words[1][0]: token id outside") != std::string::npos);
  CHECK(with("latent.json", "/cache/values_per_token", 207).find("208") != std::string::npos);
  CHECK(with("encoder_decoder.json", "/cache/values_per_encoder_token", 0).find("88") !=
        std::string::npos);
}

TEST_CASE("writing is byte-stable and loses nothing") {
  for (const std::string& name : kSamples) {
    const Contract first = sample(name);
    const std::string text = write_contract(first);
    const Contract second = read_contract(text, "again");
    CHECK(write_contract(second) == text);
    // Same values as the hand-written file, key by key.
    Json written = Json::parse(text), source = Json::parse(sample_text(name));
    CHECK(nlohmann::json(written) == nlohmann::json(source));
    CHECK(text.back() == '\n');
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      if (text.substr(at, end - at).find("jinja") == std::string::npos) CHECK(end - at <= 200);
  }
}

TEST_CASE("numbers read back to the same bits") {
  Contract contract = sample("llama.json");
  std::uint32_t state = 12345;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  for (int round = 0; round < 200; ++round) {
    for (float& value : contract.ropes["main"].inv_freq) {
      const std::uint32_t bits = next() & 0x7FFFFFFFu;
      value = std::bit_cast<float>((bits & 0x7F800000u) == 0x7F800000u ? bits & 0x3FFFFFFFu : bits);
    }
    contract.norms["rms"].eps =
        std::ldexp(1.0 + next() / 4294967296.0, -20 - static_cast<int>(next() % 20));
    contract.embedding.scale =
        std::ldexp(1.0 + next() / 4294967296.0, static_cast<int>(next() % 60) - 30);
    const Contract back = read_contract(write_contract(contract), "bits");
    REQUIRE(back.ropes.at("main").inv_freq == contract.ropes["main"].inv_freq);
    REQUIRE(back.norms.at("rms").eps == contract.norms["rms"].eps);
    REQUIRE(back.embedding.scale == contract.embedding.scale);
  }
}

TEST_CASE("depth, truncation and damage of the text give an error, never a crash") {
  CHECK(error_of(std::string(100000, '[')).find("nesting") != std::string::npos);
  const std::string text = sample_text("llama.json");
  for (std::size_t length = 0; length < text.size() - 2; length += 37)
    CHECK_FALSE(error_of(text.substr(0, length)).empty());
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 7)));
    error_of(damaged);  // an Error with exit code 3, or a document that is still valid
  }
}

}  // namespace quern::contract
