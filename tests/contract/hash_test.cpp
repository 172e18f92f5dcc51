// The structural hash follows what decides the numbers and nothing else.
#include "base/json_reader.hpp"
#include "catch.hpp"
#include "contract/json.hpp"
#include "samples.hpp"

namespace quern::contract {
namespace {

using base::Json;

std::uint64_t hash_of(const Json& document) {
  return structural_hash(read_contract(document.dump(), "model.json"));
}

std::uint64_t hash_with(const std::string& pointer, const Json& value,
                        const std::string& name = "llama.json") {
  Json document = Json::parse(sample_text(name));
  document[Json::json_pointer(pointer)] = value;
  return hash_of(document);
}

}  // namespace

TEST_CASE("hash: labels, chat, generation, reports and layout of the text do not matter") {
  const std::uint64_t hash = structural_hash(sample("llama.json"));
  CHECK(structural_hash(read_contract(write_contract(sample("llama.json")), "again")) == hash);
  const std::vector<std::pair<std::string, Json>> rows = {
      {"/name", "other"},
      {"/family", "other"},
      {"/chat/jinja", "{{ messages }}"},
      {"/chat/builtin", ""},
      {"/chat/default_system", ""},
      {"/generation/temperature", 0.1},
      {"/generation/sample", nullptr},
      {"/generation/n_beams", 4},
      {"/generation/suppress", Json::array({3})},
      {"/generation/renormalize", true},
      {"/pooling", Json{{"mode", "last"}, {"dense", Json::array()}, {"normalize", true}, {"max_tokens", 128}}},
      {"/quantization", Json::object()},
      {"/source", Json::parse(R"({"a":[1,2]})")},
      {"/weights", Json::object()},
      {"/ropes/main/rule", "yarn"},
      {"/ropes/main/base", 5e5}};
  for (const auto& [pointer, value] : rows) {
    INFO(pointer);
    CHECK(hash_with(pointer, value) == hash);
  }
  // Another order of the keys is the same contract.
  const nlohmann::json sorted = nlohmann::json::parse(sample_text("llama.json"));
  CHECK(structural_hash(read_contract(sorted.dump(), "sorted")) == hash);
}

TEST_CASE("hash: every number, word and flag of the architecture and tokenizer matters") {
  const std::uint64_t hash = structural_hash(sample("llama.json"));
  const std::vector<std::pair<std::string, Json>> rows = {
      {"/vocab_size", 321},
      {"/max_positions", 255},
      {"/embedding/scale", 2.0},
      {"/norms/rms/eps", 1.1e-5},
      {"/norms/rms/kind", "layer_norm"},
      {"/norms/rms/weight_offset", 1},
      {"/norms/rms/accumulate", "f64"},
      {"/ropes/main/layout", "pairs"},
      {"/ropes/main/inv_freq/7", 0.00031622779},
      {"/ropes/main/mscale", 1.5},
      {"/ropes/main/switch", nullptr},
      {"/ropes/main/switch/factor", 4.0},
      {"/ops/attn/n_heads", 2},
      {"/ops/attn/scale", 0.5},
      {"/ops/attn/bias/o", true},
      {"/ops/attn/qk_norm", nullptr},
      {"/ops/attn/softcap", nullptr},
      {"/ops/attn/alibi/before_scale", true},
      {"/ops/attn/alibi/round", "bf16"},
      {"/ops/attn/sink_logits", false},
      {"/ops/ffn/activation", "gelu_tanh"},
      {"/ops/ffn/gated", false},
      {"/blocks/block/branches/0/out_scale", 1.0},
      {"/blocks/block/skip_scale", 2.0},
      {"/decoder/layers/0/share_weights", true},
      {"/decoder/final_norm", nullptr},
      {"/head/tied", true},
      {"/head/softcap", nullptr},
      {"/tokens/eos", Json::array({2})},
      {"/tokens/add_bos", false},
      {"/tokenizer/ignore_merges", false},
      {"/tokenizer/unk_id", nullptr},
      {"/tokenizer/pair", nullptr},
      {"/tokenizer/decoders/0", "fuse"},
      {"/tokenizer/added/0/special", false},
      {"/tokenizer/pre_tokenizers/0", "digit"}};
  std::vector<std::uint64_t> seen = {hash};
  for (const auto& [pointer, value] : rows) {
    INFO(pointer);
    Json document = Json::parse(sample_text("llama.json"));
    document[Json::json_pointer(pointer)] = value;
    if (pointer == "/ops/attn/n_heads") {
      document[Json::json_pointer("/ops/attn/alibi/slopes")] = Json::array({0.25, 0.0625});
    }
    const std::uint64_t other = hash_of(document);
    CHECK(std::find(seen.begin(), seen.end(), other) == seen.end());
    seen.push_back(other);
  }
}

namespace {

// Values of another kind than `value` that the key may hold; the document is refused for most of
// them.
std::vector<Json> others_of(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer())
    return {value.get<int>() + 1, value.get<int>() + 2, value.get<int>() - 1, value.get<int>() * 2};
  if (value.is_number()) return {value.get<double>() * 1.5};
  if (value.is_null()) return {0, 1, 64, 1.5, "ln", "rms", "tanh"};
  if (value.is_string())
    return {"rms",      "ln",     "silu", "tanh",   "softmax",     "max",
            "last",     "shared", "all",  "causal", "interleaved", "layer_norm",
            "parallel", "half",   "f64",  "lm",     "no"};
  return {};
}

bool is_ignored(const std::string& pointer) {
  if (pointer.find("/pooling/dense") == 0) return false;
  for (const char* start : {"/name", "/family", "/pooling", "/cache", "/generation", "/chat",
                            "/quantization", "/counts", "/source", "/weights"})
    if (pointer.find(start) == 0) return true;
  const std::string key = pointer.substr(pointer.rfind('/'));
  return pointer.find("/ropes/") == 0 && (key == "/rule" || key == "/base") &&
         pointer.find("/switch/") == std::string::npos;
}

}  // namespace

TEST_CASE("hash: any leaf that may take another value moves it, unless it is left out by name") {
  std::size_t checked = 0;
  for (const std::string& name : kSamples) {
    const Json document = Json::parse(sample_text(name));
    const std::uint64_t hash = hash_of(document);
    const Json flat = document.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      for (const Json& other : others_of(value)) {
        if (other == value) continue;
        Json changed = document;
        changed[Json::json_pointer(pointer)] = other;
        changed["cache"] = document["cache"];
        try {
          const Contract contract = read_contract(changed.dump(), "changed");
          INFO(name << " " << pointer << " = " << other.dump());
          CHECK((structural_hash(contract) == hash) == is_ignored(pointer));
          ++checked;
        } catch (const base::Error&) {
          continue;  // not a valid contract
        }
      }
    }
  }
  CHECK(checked > 300);
}

}  // namespace quern::contract
