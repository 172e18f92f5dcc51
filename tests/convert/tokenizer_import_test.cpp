#include "convert/tokenizer_import.hpp"

#include <fstream>
#include <random>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "checkpoint/source_makers.hpp"
#include "convert/memory_checkpoint.hpp"
#include "text/stream_decoder.hpp"
#include "text/tokenizer.hpp"

using namespace quern;
using base::Json;
using Ids = std::vector<std::int32_t>;
using test::rejection;

namespace {

const std::string kData = std::string(QUERN_SOURCE_DIR) + "/tests/data/tokenizers/";
const char* const kConfigurations[] = {"gpt2",     "smollm",       "llama3",      "qwen2",
                                       "prefixed", "three_splits", "punctuation", "behaviours"};

std::string file_text(const std::string& path) {
  return base::read_text_file(path, std::size_t{1} << 26);
}

std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> out;
  std::ifstream in(path);
  REQUIRE(in);
  for (std::string line; std::getline(in, line);) out.push_back(base::parse_json(line, path));
  return out;
}

Json small_json() {
  return base::parse_json(file_text(kData + "gpt2.json"), "gpt2.json");
}

test::MemoryCheckpoint checkpoint_with(const Json& tokenizer, std::string config = {}) {
  test::MemoryCheckpoint made(checkpoint::SourceKind::hugging_face, "{}");
  made.side_files["tokenizer.json"] = tokenizer.dump();
  if (!config.empty()) made.side_files["tokenizer_config.json"] = std::move(config);
  return made;
}

convert::ImportedTokenizer import_json(const Json& tokenizer, std::string config = {},
                                       std::size_t rows = 0) {
  return convert::import_tokenizer(checkpoint_with(tokenizer, std::move(config)), rows);
}

text::Tokenizer runtime(const convert::ImportedTokenizer& imported) {
  return text::Tokenizer(imported.description, imported.tables, "test");
}

}  // namespace

TEST_CASE("ids and text equal the reference's, for every configuration over the corpus") {
  const std::vector<Json> corpus = json_lines(kData + "corpus.jsonl");
  for (const char* name : kConfigurations) {
    INFO(name);
    const auto imported = convert::import_tokenizer_file(kData + name + ".json");
    const text::Tokenizer tokenizer = runtime(imported);
    const std::vector<Json> expected = json_lines(kData + name + ".expected.jsonl");
    REQUIRE(expected.size() == corpus.size());
    CHECK(imported.description.prefix_ids == expected[0]["around"][0].get<Ids>());
    CHECK(imported.description.suffix_ids == expected[0]["around"][1].get<Ids>());
    for (std::size_t i = 0; i < corpus.size(); ++i) {
      const std::string text = corpus[i].get<std::string>();
      INFO(corpus[i].dump());
      const Ids ids = tokenizer.encode(text, {false, true});
      CHECK(ids == expected[i]["ids"].get<Ids>());
      const bool changed = expected[i].contains("decoded");
      CHECK(text::utf8_lossy(tokenizer.decode(ids)) ==
            (changed ? expected[i]["decoded"].get<std::string>() : text));
    }
  }
}

TEST_CASE("known patterns run as scanners, others as regexes") {
  const auto steps = [](const char* name) {
    return convert::import_tokenizer_file(kData + name + ".json").description.pre_tokenizers;
  };
  CHECK(steps("gpt2") == std::vector<std::string>{"gpt2"});
  CHECK(steps("smollm") == std::vector<std::string>{"smollm"});
  CHECK(steps("llama3") == std::vector<std::string>{"llama3"});
  CHECK(steps("qwen2") == std::vector<std::string>{"qwen2"});
  CHECK(steps("prefixed") == std::vector<std::string>{"prefix_space", "gpt2"});
  CHECK(steps("three_splits").size() == 3);
}

TEST_CASE("importing twice gives the same bytes") {
  const auto once = convert::import_tokenizer_file(kData + "llama3.json");
  CHECK(once.tables == convert::import_tokenizer_file(kData + "llama3.json").tables);
}

TEST_CASE("a checkpoint without a usable tokenizer converts without one") {
  const test::MemoryCheckpoint nothing(checkpoint::SourceKind::hugging_face, "{}");
  const auto none = convert::import_tokenizer(nothing, 10);
  CHECK(none.description.model == "none");
  CHECK(none.notices.empty());
  Json tokenizer = small_json();
  tokenizer["model"]["type"] = "Morphemes";
  const auto imported = import_json(tokenizer);
  CHECK(imported.description.model == "none");
  REQUIRE(imported.notices.size() == 1);
  CHECK(test::mentions(imported.notices[0], "Morphemes"));
  CHECK(test::mentions(imported.notices[0], "--ids-file"));
}

TEST_CASE("what tokenizer.json says and quern does not know is refused by its name") {
  struct Case {
    const char *pointer, *value, *word;
  };
  const Case cases[] = {
      {"/normalizer", R"({"type":"Nmt2"})", "Nmt2"},
      {"/normalizer", R"({"type":"Replace","pattern":{"Regex":"(a"},"content":"b"})", "(a"},
      {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAA="})", "cut off"},
      {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"A?A="})", "base64"},
      {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"////////////////"})",
       "trie"},
      {"/decoder", R"({"type":"CTC"})", "CTC"},
      {"/decoder", R"({"type":"Strip","content":" ","start":-1,"stop":0})", "start"},
      {"/pre_tokenizer", R"({"type":"FixedLength","length":0})", "length"},
      {"/pre_tokenizer", R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})",
       "last"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Emoji"}]})", "Emoji"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated","invert":false},{"type":"ByteLevel"}]})",
       "(a"},
      {"/pre_tokenizer",
       R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"},{"type":"ByteLevel"}]})",
       "Sideways"},
      {"/post_processor", R"({"type":"Wrap"})", "Wrap"},
      {"/post_processor",
       R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<x>"}},{"Sequence":{"id":"A"}}],"special_tokens":{}})",
       "<x>"},
      {"/post_processor", R"({"type":"TemplateProcessing","single":[]})", "Sequence"},
      {"/post_processor", R"({"type":"RobertaProcessing","sep":["</s>"],"cls":["<s>",0]})", "sep"},
  };
  for (const Case& c : cases) {
    Json tokenizer = small_json();
    tokenizer[Json::json_pointer(c.pointer)] = base::parse_json(c.value, "case");
    INFO(c.value);
    CHECK(test::mentions(rejection([&] { import_json(tokenizer); }), c.word));
  }
}

TEST_CASE("vocabularies that contradict themselves are refused") {
  const auto refused = [](auto change, const char* word) {
    Json tokenizer = small_json();
    change(tokenizer);
    const std::string line = rejection([&] { import_json(tokenizer, {}, 1000); });
    INFO(word);
    CHECK(test::mentions(line, word));
  };
  refused([](Json& t) { t["model"]["merges"].push_back("zzz qqq"); }, "zzz");
  refused([](Json& t) { t["model"]["merges"].push_back("a b c"); }, "a b c");
  refused([](Json& t) { t["model"]["merges"].push_back("ab"); }, "not a pair");
  refused([](Json& t) { t["model"]["merges"].push_back(7); }, "not a pair");
  refused([](Json& t) { t["model"]["vocab"]["second"] = 65; }, "two tokens have the id 65");
  refused([](Json& t) { t["model"]["vocab"]["far"] = 1000; }, "beyond the embedding");
  refused([](Json& t) { t["model"]["vocab"]["negative"] = -1; }, "-1");
  refused([](Json& t) { t["model"]["vocab"]["half"] = 0.5; }, "half");
  refused([](Json& t) { t["model"].erase("vocab"); }, "model.vocab");
  refused([](Json& t) { t["model"].erase("merges"); }, "model.merges");
  refused([](Json& t) { t["added_tokens"][2]["id"] = 70; }, "two tokens have the id 70");
  refused([](Json& t) { t["added_tokens"][2]["id"] = "x"; }, "integer");
  refused([](Json& t) { t["added_tokens"][2]["id"] = t["added_tokens"][3]["id"]; },
          "two added tokens");
  refused([](Json& t) { t["added_tokens"][2]["content"] = t["added_tokens"][3]["content"]; },
          "two ids");
  refused([](Json& t) { t["added_tokens"][2]["content"] = std::string(5000, 'x'); }, "too long");
  refused([](Json& t) { t.erase("model"); }, "model");
}

TEST_CASE("added tokens beyond the embedding stay text, gaps between ids are unused") {
  Json tokenizer = small_json();
  tokenizer["added_tokens"].push_back({{"id", 5000}, {"content", "<far>"}, {"special", true}});
  tokenizer["added_tokens"].push_back({{"id", 900}, {"content", "<gap>"}, {"special", true}});
  const auto imported = import_json(tokenizer, {}, 1000);
  const text::Tokenizer made = runtime(imported);
  CHECK(made.id_of("<far>") == -1);
  CHECK(made.decode(made.encode("a<far>b")) == "a<far>b");
  CHECK(made.encode("<gap>") == Ids{900});
  CHECK(made.token_bytes(850).empty());
}

TEST_CASE("tokenizer_config adds special ids, affixes and tokens that tokenizer.json lacks") {
  const std::string config = R"({
    "bos_token": {"content": "<|bos|>", "lstrip": false}, "eos_token": "<|end|>", "pad_token": null,
    "add_bos_token": true, "add_eos_token": true, "chat_template": [
      {"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}],
    "added_tokens_decoder": {"950": {"content": "<extra>", "special": true}, "65": {"content": "<other>"}}})";
  const auto imported = import_json(small_json(), config);
  const text::Tokenizer made = runtime(imported);
  const std::int32_t bos = made.id_of("<|bos|>"), end = made.id_of("<|end|>");
  CHECK(imported.tokens.bos == bos);
  CHECK(imported.tokens.eos == Ids{end});
  CHECK_FALSE(imported.tokens.pad.has_value());
  CHECK(imported.tokens.add_bos);
  CHECK(imported.tokens.add_eos);
  CHECK(made.encode("<extra>") == Ids{bos, 950, end});
  CHECK(made.id_of("<other>") == -1);
  CHECK(imported.notices.size() == 2);
  CHECK(imported.chat.jinja == "D");
  CHECK(imported.chat.named == std::map<std::string, std::string>{{"tool_use", "T"}});
  CHECK(imported.chat.special ==
        std::map<std::string, std::string>{{"bos_token", "<|bos|>"}, {"eos_token", "<|end|>"}});
  CHECK(imported.chat.builtin.empty());
  // A template that has the token already does not get it twice.
  Json with_template = base::parse_json(file_text(kData + "llama3.json"), "llama3.json");
  const auto again =
      import_json(with_template, R"({"bos_token": "<|bos|>", "add_bos_token": true})");
  CHECK(again.description.prefix_ids.size() == 1);
  CHECK(again.tokens.add_bos);
}

TEST_CASE("plain ChatML is recognised, with the system text it brings") {
  const auto chat_of = [](const std::string& jinja) {
    test::MemoryCheckpoint made(checkpoint::SourceKind::hugging_face, "{}");
    made.side_files["chat_template.jinja"] = jinja;
    return convert::import_tokenizer(made, 0).chat;
  };
  const std::string head =
      "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '<|im_start|>system";
  const std::string tail =
      "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + m['role'] + '<|im_end|>'}}{% endfor %}";
  CHECK(chat_of(head + "\nYou are Q, made by R." + tail).default_system == "You are Q, made by R.");
  CHECK(chat_of(head + "\\nYou are Q." + tail).default_system == "You are Q.");
  CHECK(chat_of(head + "\n' + m.text + '" + tail).default_system.empty());
  CHECK(chat_of(head + "\nx" + tail).builtin == "chatml");
  CHECK(chat_of("{{ '<s>' + messages[0].content }}").builtin.empty());
  CHECK(chat_of("").jinja.empty());
}

TEST_CASE("where chat templates live, best first") {
  const std::string config = R"({"chat_template": "config"})";
  const std::string processor = R"({"chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "P"}]})";
  const auto chat_of = [](const std::map<std::string, std::string>& files) {
    test::MemoryCheckpoint made(checkpoint::SourceKind::hugging_face, "{}");
    for (const auto& [name, text] : files) made.side_files[name] = text;
    return convert::import_tokenizer(made, 0).chat;
  };
  CHECK(chat_of({{"chat_template.json", processor}}).jinja == "P");
  CHECK(chat_of({{"chat_template.json", processor}}).named.at("rag") == "R");
  CHECK(chat_of({{"chat_template.json", processor}, {"tokenizer_config.json", config}}).jinja == "config");
  const auto all = chat_of({{"chat_template.json", processor}, {"tokenizer_config.json", config}, {"chat_template.jinja", "file"},
                            {"additional_chat_templates/tool_use.jinja", "tools"}});
  CHECK(all.jinja == "file");
  CHECK(all.named == std::map<std::string, std::string>{{"tool_use", "tools"}});
}

// ---- GGUF
// ---------------------------------------------------------------------------------------------

namespace {

struct GgufVocabulary {
  std::vector<std::string> tokens, merges;
  std::vector<std::int32_t> types;
};

// The vocabulary of a tokenizer.json as a converter to GGUF writes it.
GgufVocabulary as_gguf(const Json& tokenizer) {
  GgufVocabulary out;
  const auto put = [&](std::size_t id, const std::string& text, std::int32_t type) {
    if (id >= out.tokens.size()) {
      out.tokens.resize(id + 1);
      out.types.resize(id + 1, 5);
    }
    out.tokens[id] = text;
    out.types[id] = type;
  };
  for (const auto& [text, id] : tokenizer["model"]["vocab"].items())
    put(id.get<std::size_t>(), text, 1);
  for (const Json& added : tokenizer["added_tokens"])
    put(added["id"].get<std::size_t>(), added["content"].get<std::string>(),
        added["special"].get<bool>() ? 3 : 4);
  for (const Json& merge : tokenizer["model"]["merges"])
    out.merges.push_back(merge.get<std::string>());
  return out;
}

std::string strings(const std::vector<std::string>& all) {
  std::string out;
  for (const std::string& text : all) out += test::gguf_string(text);
  return out;
}

test::GgufMaker gguf_with(const GgufVocabulary& vocabulary, const char* pre,
                          const char* model = "gpt2") {
  test::GgufMaker maker;
  std::string types;
  for (const std::int32_t type : vocabulary.types) types += test::raw(type);
  maker.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre);
  maker.array("tokenizer.ggml.tokens", test::kString, vocabulary.tokens.size(),
              strings(vocabulary.tokens));
  maker.array("tokenizer.ggml.merges", test::kString, vocabulary.merges.size(),
              strings(vocabulary.merges));
  maker.array("tokenizer.ggml.token_type", test::kI32, vocabulary.types.size(), types);
  maker.text("general.architecture", "x").vector("w");
  return maker;
}

convert::ImportedTokenizer import_gguf(const test::GgufMaker& maker) {
  const test::TemporaryDirectory directory;
  return convert::import_tokenizer_file(directory.write("m.gguf", maker.bytes()));
}

}  // namespace

TEST_CASE("a vocabulary gives the same ids from GGUF as from tokenizer.json") {
  Json tokenizer = small_json();
  for (Json& added : tokenizer["added_tokens"])  // flags GGUF cannot say
    for (const char* flag : {"normalized", "single_word", "lstrip", "rstrip"}) added[flag] = false;
  const auto from_json = import_json(tokenizer);
  const auto from_gguf =
      import_gguf(gguf_with(as_gguf(tokenizer), "gpt-2")
                      .u32("tokenizer.ggml.bos_token_id", 256)
                      .u32("tokenizer.ggml.eos_token_id", 257)
                      .u32("tokenizer.ggml.eot_token_id", 258)
                      .u32("tokenizer.ggml.padding_token_id", 0xFFFFFFFF)
                      .value("tokenizer.ggml.add_bos_token", test::kBool, std::string(1, '\1')));
  CHECK(from_gguf.tokens.bos == 256);
  CHECK(from_gguf.tokens.eos == Ids{257, 258});
  CHECK_FALSE(from_gguf.tokens.pad.has_value());
  CHECK(from_gguf.tokens.add_bos);
  CHECK(from_gguf.description.prefix_ids == Ids{256});
  const text::Tokenizer a = runtime(from_json), b = runtime(from_gguf);
  for (const Json& line : json_lines(kData + "corpus.jsonl")) {
    const std::string text = line.get<std::string>();
    INFO(line.dump());
    CHECK(a.encode(text, {false, true}) == b.encode(text, {false, true}));
  }
}

TEST_CASE("merges of a GGUF file that name tokens it lacks are left out, with a notice") {
  const GgufVocabulary vocabulary = as_gguf(small_json());
  GgufVocabulary damaged = vocabulary;
  damaged.merges.insert(damaged.merges.begin(), "t nosuchtoken");
  damaged.merges.push_back("nosuchtoken t");
  const auto plain = import_gguf(gguf_with(vocabulary, "gpt-2")), lenient = import_gguf(gguf_with(damaged, "gpt-2"));
  CHECK(lenient.notices.size() == plain.notices.size() + 1);
  const std::string text = "the tokens of a text, 2 tests";
  CHECK(runtime(lenient).encode(text, {false, true}) == runtime(plain).encode(text, {false, true}));
}

TEST_CASE("GGUF tokenizers that are not known") {
  const GgufVocabulary vocabulary = as_gguf(small_json());
  const std::string unknown = rejection([&] { import_gguf(gguf_with(vocabulary, "brand-new")); });
  CHECK(test::mentions(unknown, "brand-new"));
  CHECK(test::mentions(unknown, "smollm"));
  const std::string other = rejection([&] { import_gguf(gguf_with(vocabulary, "gpt-2", "rwkv")); });
  CHECK(test::mentions(other, "rwkv"));
  CHECK(test::mentions(other, "--ids-file"));
  CHECK(test::mentions(rejection([&] { import_gguf(gguf_with(vocabulary, "", "llama")); }),
                       "scores"));
  for (const char* pre : {"default", "smollm", "llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken",
                          "deepseek-v3", "deepseek-coder", "falcon", "bloom", "chatglm-bpe"}) {
    const auto imported = import_gguf(gguf_with(vocabulary, pre));
    const text::Tokenizer tokenizer = runtime(imported);
    CHECK(tokenizer.decode(tokenizer.encode("It's 1234 caf\u00E9s,\n\n  ok \u5B57!")) ==
          "It's 1234 caf\u00E9s,\n\n  ok \u5B57!");
  }
}

TEST_CASE("damaged GGUF vocabularies are refused") {
  const auto refused = [](auto change, const char* word) {
    GgufVocabulary vocabulary = as_gguf(small_json());
    change(vocabulary);
    CHECK(test::mentions(rejection([&] { import_gguf(gguf_with(vocabulary, "gpt-2")); }), word));
  };
  refused([](auto& v) { v.types.pop_back(); }, "token_type");
  refused([](auto& v) { v.types[3] = 9; }, "unknown type");
  refused([](auto& v) { v.merges.push_back("a"); }, "not a pair");
  // Repeated text is kept for reading back; the lowest id is the one text gives.
  GgufVocabulary repeated = as_gguf(small_json());
  repeated.tokens.push_back("a");
  repeated.types.push_back(1);
  const auto imported = import_gguf(gguf_with(repeated, "gpt-2"));
  CHECK(imported.notices.size() == 1);
  CHECK(runtime(imported).token_bytes(static_cast<std::int32_t>(repeated.tokens.size()) - 1) ==
        "a");
}

TEST_CASE("a tokenizer.json with flipped or cut bytes is refused or harmless") {
  const std::string good = file_text(kData + "behaviours.json");
  std::mt19937 random(41);
  for (int round = 0; round < 150; ++round) {
    std::string damaged = good;
    for (auto n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (round % 10 == 0) damaged.resize(random() % damaged.size());
    test::MemoryCheckpoint checkpoint(checkpoint::SourceKind::hugging_face, "{}");
    checkpoint.side_files["tokenizer.json"] = damaged;
    rejection([&] {
      const auto imported = convert::import_tokenizer(checkpoint, 1000);
      if (imported.description.model != "none")
        runtime(imported).encode("Hello, <|bos|> world 123");
    });
  }
}
