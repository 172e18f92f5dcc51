// The same vocabulary from other kinds of files: GGUF with scores or word pieces, word lists,
// vocabulary and merges, and what stands beside a sentencepiece model.
#include <algorithm>
#include <fstream>
#include <limits>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "checkpoint/source_makers.hpp"
#include "convert/tokenizer_import.hpp"
#include "convert/tokenizer_import_spm.hpp"
#include "text/tokenizer.hpp"

using namespace quern;
using base::Json;
using Ids = std::vector<std::int32_t>;
using test::rejection;

namespace {

const std::string kData = std::string(QUERN_SOURCE_DIR) + "/tests/data/tokenizers/";

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

text::Tokenizer runtime(const convert::ImportedTokenizer& imported) {
  return text::Tokenizer(imported.description, imported.tables, "test");
}

struct GgufPieces {
  std::vector<convert::Piece> pieces;
  std::string charsmap;
  bool add_prefix = true, trim = false;
};

test::GgufMaker gguf_of(const GgufPieces& from, const char* model) {
  std::string texts, scores, types;
  for (const convert::Piece& piece : from.pieces) {
    texts += test::gguf_string(piece.text);
    scores += test::raw(piece.score);
    types += test::raw(static_cast<std::int32_t>(piece.type));
  }
  const std::size_t n = from.pieces.size();
  const auto flag = [](bool value) { return std::string(1, value ? '\1' : '\0'); };
  test::GgufMaker maker;
  maker.text("tokenizer.ggml.model", model);
  maker.array("tokenizer.ggml.tokens", test::kString, n, texts);
  maker.array("tokenizer.ggml.scores", test::kF32, n, scores);
  maker.array("tokenizer.ggml.token_type", test::kI32, n, types);
  maker.value("tokenizer.ggml.add_space_prefix", test::kBool, flag(from.add_prefix));
  maker.value("tokenizer.ggml.remove_extra_whitespaces", test::kBool, flag(from.trim));
  if (!from.charsmap.empty())
    maker.array("tokenizer.ggml.precompiled_charsmap", test::kI8, from.charsmap.size(),
                from.charsmap);
  maker.text("general.architecture", "x").vector("w");
  return maker;
}

convert::ImportedTokenizer import_gguf(const test::GgufMaker& maker) {
  const test::TemporaryDirectory directory;
  return convert::import_tokenizer_file(directory.write("m.gguf", maker.bytes()));
}

// A user-defined piece that is spelled with spaces, which sentencepiece escapes in text, never
// comes out of it; readers of GGUF take it for the escaped spelling.
GgufPieces pieces_of(const std::string& name) {
  const std::string bytes = file_text(kData + name);
  auto model = convert::parse_sentencepiece(base::as_bytes(bytes), name);
  for (convert::Piece& piece : model.pieces)
    if (piece.type == convert::PieceType::user_defined && piece.text.find(' ') != std::string::npos)
      piece.type = convert::PieceType::unused;
  return {model.pieces, model.charsmap, model.add_prefix, model.trim};
}

// A tokenizer.json without what other files cannot say.
Json plain(const std::string& name) {
  Json tokenizer = base::parse_json(file_text(kData + name), name);
  tokenizer["added_tokens"] = Json::array();
  tokenizer["post_processor"] = nullptr;
  return tokenizer;
}

std::vector<std::string> by_id(const Json& vocabulary) {
  std::vector<std::string> out(vocabulary.size());
  for (const auto& [text, id] : vocabulary.items()) out.at(id.get<std::size_t>()) = text;
  return out;
}

void check_equal(const text::Tokenizer& a, const text::Tokenizer& b) {
  for (const Json& line : json_lines(kData + "corpus.jsonl")) {
    const std::string text = line.get<std::string>();
    INFO(line.dump());
    CHECK(a.encode(text, {false, true}) == b.encode(text, {false, true}));
  }
}

}  // namespace

TEST_CASE("pieces with scores give the same ids from GGUF as sentencepiece gives") {
  const std::vector<Json> corpus = json_lines(kData + "corpus.jsonl");
  const std::vector<std::pair<std::string, const char*>> rows = {
      {"sp_bpe", "llama"}, {"sp_bpe_map", "llama"}, {"sp_bytes", "t5"}, {"sp_unigram", "t5"}};
  for (const auto& [name, model] : rows) {
    INFO(name);
    const auto imported = import_gguf(gguf_of(pieces_of(name + ".model"), model)
                                          .u32("tokenizer.ggml.bos_token_id", 1)
                                          .u32("tokenizer.ggml.eos_token_id", 2)
                                          .u32("tokenizer.ggml.unknown_token_id", 0));
    const bool bpe = std::string_view(model) == "llama";
    CHECK(imported.description.prefix_ids == (bpe ? Ids{1} : Ids{}));
    CHECK(imported.description.suffix_ids == (bpe ? Ids{} : Ids{2}));
    const text::Tokenizer tokenizer = runtime(imported);
    const std::vector<Json> expected = json_lines(kData + name + ".expected.jsonl");
    for (std::size_t i = 0; i < corpus.size(); ++i) {
      INFO(corpus[i].dump());
      CHECK(tokenizer.encode(corpus[i].get<std::string>(), {false, true}) ==
            expected[i]["ids"].get<Ids>());
    }
  }
}

TEST_CASE("pieces that contradict themselves are refused") {
  const auto refused = [](auto change, const char* word) {
    GgufPieces pieces = pieces_of("sp_bpe.model");
    change(pieces);
    CHECK(test::mentions(rejection([&] { import_gguf(gguf_of(pieces, "llama")); }), word));
  };
  refused([](GgufPieces& p) { p.pieces[300].score = std::numeric_limits<float>::quiet_NaN(); },
          "score");
  refused([](GgufPieces& p) { p.charsmap = "abc"; }, "cut off");
  for (const char* text : {"<0x-1>", "<0xZZ>", "x", ""})
    refused(
        [&](GgufPieces& p) {
          for (convert::Piece& piece : p.pieces)
            if (piece.text == "<0x0A>") piece.text = text;
        },
        "byte");
}

TEST_CASE("word pieces from a word list and from GGUF") {
  Json tokenizer = plain("bert_uncased.json");
  tokenizer["model"]["max_input_chars_per_word"] = 100;
  const test::TemporaryDirectory directory;
  const auto reference =
      convert::import_tokenizer_file(directory.write("a/tokenizer.json", tokenizer.dump()));
  std::string list;
  GgufPieces pieces;
  for (const std::string& text : by_id(tokenizer["model"]["vocab"])) {
    list += text + "\n";
    const bool inner = text.starts_with("##");
    const bool unknown = text == "<unk>";
    pieces.pieces.push_back({unknown ? text
                             : inner ? text.substr(2)
                                     : "\xE2\x96\x81" + text,
                             0,
                             unknown ? convert::PieceType::unknown : convert::PieceType::normal});
  }
  directory.write("b/vocab.txt", list);
  directory.write("b/tokenizer_config.json", R"({"unk_token": "<unk>", "do_lower_case": true})");
  const auto from_list = convert::import_tokenizer_file(directory.path() / "b");
  const auto from_gguf = import_gguf(gguf_of(pieces, "bert")
                                         .u32("tokenizer.ggml.unknown_token_id", 0)
                                         .u32("tokenizer.ggml.cls_token_id", 5)
                                         .u32("tokenizer.ggml.seperator_token_id", 6));
  CHECK(from_gguf.description.prefix_ids == Ids{5});
  CHECK(from_gguf.description.suffix_ids == Ids{6});
  CHECK(from_gguf.description.pair->suffix_types == Ids{1});
  check_equal(runtime(reference), runtime(from_list));
  check_equal(runtime(reference), runtime(from_gguf));
}

TEST_CASE("a vocabulary beside its merges") {
  const Json tokenizer = plain("gpt2.json");
  const test::TemporaryDirectory directory;
  const auto reference =
      convert::import_tokenizer_file(directory.write("a/tokenizer.json", tokenizer.dump()));
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : tokenizer["model"]["merges"]) merges += merge.get<std::string>() + "\n";
  directory.write("b/vocab.json", tokenizer["model"]["vocab"].dump());
  directory.write("b/merges.txt", merges);
  check_equal(runtime(reference), runtime(convert::import_tokenizer_file(directory.path() / "b")));
  directory.write("b/merges.txt", "a b c\n");
  CHECK(test::mentions(rejection([&] { convert::import_tokenizer_file(directory.path() / "b"); }),
                       "not a pair"));
}

TEST_CASE("what stands beside a sentencepiece model") {
  const test::TemporaryDirectory directory;
  const auto import_beside = [&](const char* model, const std::string& config) {
    directory.write("m/tokenizer.model", file_text(kData + model));
    directory.write("m/tokenizer_config.json", config);
    directory.write("m/added_tokens.json", R"({"<tool>": 5000, "<unk>": 3})");
    return convert::import_tokenizer_file(directory.path() / "m");
  };
  const auto bpe = import_beside("sp_bpe.model", "{}");
  CHECK(bpe.description.prefix_ids == Ids{1});
  CHECK(bpe.description.suffix_ids.empty());
  CHECK(bpe.tokens.eos == Ids{2});
  CHECK(bpe.tokens.add_bos);
  const text::Tokenizer made = runtime(bpe);
  CHECK(made.encode("<tool></s>", {false, true}) == Ids{5000, 2});
  CHECK(made.decode({1, 5000, 2}) == "<s><tool></s>");
  const auto without =
      import_beside("sp_bpe.model", R"({"add_bos_token": false, "add_eos_token": true})");
  CHECK(without.description.prefix_ids.empty());
  CHECK(without.description.suffix_ids == Ids{2});
  const auto unigram = import_beside("sp_unigram.model", R"({"extra_ids": 3})");
  CHECK(unigram.description.prefix_ids.empty());
  CHECK(unigram.description.suffix_ids == Ids{2});
  const text::Tokenizer sentinels = runtime(unigram);
  const std::int32_t last = sentinels.id_of("<extra_id_0>");
  CHECK(sentinels.id_of("<extra_id_2>") == last - 2);
  CHECK(sentinels.decode({last}) == "<extra_id_0>");
  CHECK(test::mentions(rejection([&] { import_beside("gpt2.json", "{}"); }), "sentencepiece"));
}

TEST_CASE("a pair of models whose answers have a vocabulary of their own") {
  const test::TemporaryDirectory directory;
  directory.write("m/source.spm", file_text(kData + "marian/source.spm"));
  directory.write("m/vocab.json",
                  R"({"</s>": 0, "<unk>": 1, "\u2581": 2, "a": 3, ">>fra<<": 4, "<pad>": 5})");
  directory.write("m/target_vocab.json",
                  R"({"</s>": 0, "<unk>": 1, "\u2581le": 2, "s": 3, "<pad>": 7})");
  const auto imported = convert::import_tokenizer_file(directory.path() / "m");
  const text::Tokenizer tokenizer = runtime(imported);
  CHECK(tokenizer.encode(">>fra<<") == Ids{4, 0});
  CHECK(tokenizer.encode("\u5B57") == Ids{2, 1, 0});
  CHECK(tokenizer.decode({2, 3, 2, 0}, true) == "les le");
  CHECK(tokenizer.size() == 8);
}

TEST_CASE("markup among user-defined pieces is text where control tokens are not parsed") {
  for (const char* name : {"sp_unigram.model", "sp_bpe.model"}) {
    const auto imported = convert::import_tokenizer_file(kData + name);
    const text::Tokenizer tokenizer = runtime(imported);
    const std::int32_t think = tokenizer.id_of("<think>");
    const auto count = [&](bool parse) {
      const Ids ids = tokenizer.encode("a<think>b <think>", {false, parse});
      return std::count(ids.begin(), ids.end(), think);
    };
    REQUIRE(think > 0);
    CHECK(count(true) == 2);
    CHECK(count(false) == 0);
  }
}

TEST_CASE("a directory without any tokenizer is refused with what is looked for") {
  const test::TemporaryDirectory directory;
  directory.write("m/other.txt", "x");
  CHECK(test::mentions(rejection([&] { convert::import_tokenizer_file(directory.path() / "m"); }),
                       "tokenizer.json"));
  directory.write("empty.json", "");
  CHECK(test::mentions(
      rejection([&] { convert::import_tokenizer_file(directory.path() / "empty.json"); }),
      "empty"));
}
