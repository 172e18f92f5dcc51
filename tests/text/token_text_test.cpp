// What single tokens add to a text, by the decoders that occur: behind a first token, the texts of
// tokens one after the other are the text of them all.
#include "text/token_text.hpp"

#include <random>

#include "catch.hpp"
#include "tables.hpp"
#include "text/tokenizer.hpp"

using namespace quern;
using Strings = std::vector<std::string>;

namespace {

struct Built {
  contract::TokenizerDescription description;
  std::vector<std::byte> tables;
};

Built build(const Strings& tokens, const Strings& decoders) {
  Built built;
  built.description.model = "bpe";
  built.description.decoders = decoders;
  text::Vocabulary vocabulary;
  vocabulary.tokens = tokens;
  built.tables = text::build_tokenizer_tables(vocabulary);
  return built;
}

const std::string kMark = "\xE2\x96\x81";

struct Case {
  Strings tokens, decoders, expected;
};

const Case kCases[] = {
    {{"a", kMark + "b", kMark, "<0x0A>", "<0xC3>", "c" + kMark, "<0xZZ>"},
     {"replace/" + kMark + "/ /", "byte_fallback", "fuse", "strip/ /1/0/"},
     {"a", " b", " ", "\n", "\xC3", "c ", "<0xZZ>"}},
    {{"a", "##b", "c"}, {"word_pieces/##/"}, {" a", "b", " c"}},
    {{"a", "b</w>", "c"}, {"word_ends|</w>|"}, {"a", "b ", "c"}},
    {{"a", kMark + "b", "<0x41>"}, {"metaspace:" + kMark}, {"a", " b", "<0x41>"}},
    {{"a", "b"}, {"join_spaces"}, {" a", " b"}},
    {{"a", "bc", "\xC3\xA9"}, {}, {"a", "bc", "\xC3\xA9"}},
};

}  // namespace

TEST_CASE("each decoder's tokens have their text, byte tokens their byte") {
  for (const Case& test : kCases) {
    const Built built = build(test.tokens, test.decoders);
    const text::Tokenizer tokenizer(built.description, built.tables, "test");
    const text::TokenText texts(tokenizer);
    for (std::size_t i = 0; i < test.tokens.size(); ++i) {
      INFO(test.tokens[i]);
      CHECK(texts.of(static_cast<std::int32_t>(i)) == test.expected[i]);
    }
    CHECK(texts.all(false) == test.expected);
    CHECK(texts.of(-1).empty());
    CHECK(texts.of(1000).empty());
  }
}

TEST_CASE("texts of tokens one after the other are the text of them all") {
  std::mt19937 random(4);
  for (const Case& test : kCases) {
    const Built built = build(test.tokens, test.decoders);
    const text::Tokenizer tokenizer(built.description, built.tables, "test");
    const text::TokenText texts(tokenizer);
    for (int round = 0; round < 100; ++round) {
      std::vector<std::int32_t> ids{0};
      std::string expected;
      for (int i = 0; i < 8; ++i) {
        const std::size_t id = random() % test.tokens.size();
        if (test.expected[id] == "\xC3") continue;  // no text alone
        ids.push_back(static_cast<std::int32_t>(id));
        expected += test.expected[id];
      }
      ids.push_back(0);  // what a decoder drops at the end
      expected += test.expected[0];
      const std::string all = tokenizer.decode(ids), first = tokenizer.decode({0});
      CHECK(all == first + expected);
    }
  }
}
