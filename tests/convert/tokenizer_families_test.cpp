// The small tokenizers of tests/data/tokenizers that are not plain byte-level BPE: ids, texts,
// pairs and streams against the libraries (scripts/make_family_tokenizers.py).
#include <fstream>
#include <random>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "checkpoint/source_makers.hpp"
#include "convert/tokenizer_import.hpp"
#include "text/stream_decoder.hpp"
#include "text/text_stream.hpp"
#include "text/tokenizer.hpp"

using namespace quern;
using base::Json;
using Ids = std::vector<std::int32_t>;

namespace {

const std::string kData = std::string(QUERN_SOURCE_DIR) + "/tests/data/tokenizers/";
const char* const kFiles[] = {"t5.json",           "t5_words.json",        "albert.json",
                              "bert_uncased.json", "bert_cased.json",      "llama2.json",
                              "llama2_first.json", "gemma.json",           "bloom.json",
                              "o200k.json",        "tekken.json",          "deepseek_llm.json",
                              "word_level.json",   "word_ends.json",       "subwords.json",
                              "clip.json",         "byte_normalizer.json", "unigram_bytes.json",
                              "sp_unigram.model",  "sp_bytes.model",       "sp_bpe.model",
                              "sp_bpe_map.model"};

std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> out;
  std::ifstream in(path);
  REQUIRE(in);
  for (std::string line; std::getline(in, line);) out.push_back(base::parse_json(line, path));
  return out;
}

std::string stem(const std::string& file) {
  return file.substr(0, file.rfind('.'));
}

text::Tokenizer runtime(const convert::ImportedTokenizer& imported) {
  return text::Tokenizer(imported.description, imported.tables, "test");
}

std::string streamed(const text::Tokenizer& tokenizer, const Ids& ids) {
  text::TextStream stream(tokenizer);
  std::string out;
  for (const std::int32_t id : ids) {
    const std::string chunk = stream.push(id);
    CHECK(text::is_valid_utf8(chunk));
    out += chunk;
  }
  return out + stream.finish();
}

void check_around(const text::Tokenizer& tokenizer, const Json& first) {
  if (!first.contains("pair")) return;
  const text::Encoding one = tokenizer.encode_typed("a b");
  const text::Encoding two = tokenizer.encode_pair("a b", "c");
  CHECK(one.ids == first["single"]["ids"].get<Ids>());
  CHECK(one.types == first["single"]["types"].get<Ids>());
  CHECK(two.ids == first["pair"]["ids"].get<Ids>());
  CHECK(two.types == first["pair"]["types"].get<Ids>());
}

}  // namespace

TEST_CASE("tokenizers of all families: ids, texts, streams and pairs equal the libraries'") {
  const std::vector<Json> corpus = json_lines(kData + "corpus.jsonl");
  for (const std::string file : kFiles) {
    INFO(file);
    const auto imported = convert::import_tokenizer_file(kData + file);
    const text::Tokenizer tokenizer = runtime(imported);
    const std::vector<Json> expected = json_lines(kData + stem(file) + ".expected.jsonl");
    REQUIRE(expected.size() == corpus.size());
    check_around(tokenizer, expected[0]);
    for (std::size_t i = 0; i < corpus.size(); ++i) {
      const std::string text = corpus[i].get<std::string>();
      INFO(corpus[i].dump());
      const Ids ids = tokenizer.encode(text, {false, true});
      CHECK(ids == expected[i]["ids"].get<Ids>());
      const std::string decoded = text::utf8_lossy(tokenizer.decode(ids));
      CHECK(decoded == expected[i].value("decoded", text));
      CHECK(streamed(tokenizer, ids) == decoded);
    }
  }
}

TEST_CASE("a pair of sentencepiece models with a vocabulary of its own") {
  const auto imported = convert::import_tokenizer_file(kData + "marian");
  const text::Tokenizer tokenizer = runtime(imported);
  const std::int32_t unknown = *imported.tokens.unk;
  CHECK(imported.description.suffix_ids == imported.tokens.eos);
  const std::vector<Json> corpus = json_lines(kData + "corpus.jsonl");
  const std::vector<Json> expected = json_lines(kData + "marian.expected.jsonl");
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    INFO(corpus[i].dump());
    const Ids ids = tokenizer.encode(corpus[i].get<std::string>(), {false, true});
    CHECK(ids == expected[i]["ids"].get<Ids>());
    Ids known;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(known),
                 [&](std::int32_t id) { return id != unknown; });
    CHECK(tokenizer.decode(known) == expected[i]["known"].get<std::string>());
  }
}

TEST_CASE("damaged sentencepiece models are refused or harmless") {
  const test::TemporaryDirectory directory;
  for (const char* name : {"sp_unigram.model", "sp_bpe.model"}) {
    const std::string good = base::read_text_file(kData + name, 1 << 20);
    std::mt19937 random(17);
    for (int round = 0; round < 150; ++round) {
      std::string damaged = good;
      for (auto n = 1 + random() % 4; n > 0; --n)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      if (random() % 3 == 0) damaged.resize(random() % damaged.size());
      const auto path = directory.write("damaged.model", damaged);
      test::rejection([&] {
        const auto imported = convert::import_tokenizer_file(path);
        const text::Tokenizer tokenizer = runtime(imported);
        tokenizer.decode(tokenizer.encode("Hello, <think> world   123 \u5B57\u0301"));
      });
    }
  }
}

TEST_CASE("damaged tokenizer.json of every model is refused or harmless") {
  const test::TemporaryDirectory directory;
  for (const char* name : {"t5", "bert_uncased", "llama2", "word_level", "word_ends"}) {
    const std::string good = base::read_text_file(kData + name + ".json", 1 << 20);
    std::mt19937 random(23);
    for (int round = 0; round < 60; ++round) {
      std::string damaged = good;
      for (auto n = 1 + random() % 3; n > 0; --n)
        damaged[random() % damaged.size()] = "0\"]},x:-"[random() % 8];
      const auto path = directory.write("damaged.json", damaged);
      test::rejection([&] {
        const auto imported = convert::import_tokenizer_file(path);
        const text::Tokenizer tokenizer = runtime(imported);
        tokenizer.decode(tokenizer.encode("Hello, <|bos|> world 123 \u5B57\u0301"));
      });
    }
  }
}
