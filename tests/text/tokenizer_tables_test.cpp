#include "text/tokenizer_tables.hpp"

#include <cstring>
#include <random>

#include "base/error.hpp"
#include "catch.hpp"
#include "tables.hpp"
#include "text/bpe.hpp"

using namespace quern;

namespace {

text::Vocabulary small_vocabulary() {
  text::Vocabulary vocabulary = learned_vocabulary(kLearnedText, 60);
  vocabulary.tokens.push_back("");           // an unused id
  vocabulary.tokens.push_back("<control>");  // text only
  vocabulary.decode_only.resize(vocabulary.tokens.size());
  vocabulary.decode_only.back() = true;
  vocabulary.tokens.push_back("the");  // repeats a lower id
  return vocabulary;
}

}  // namespace

TEST_CASE("tables give back the vocabulary they were built from") {
  const text::Vocabulary vocabulary = small_vocabulary();
  const std::vector<std::byte> section = text::build_tokenizer_tables(vocabulary);
  CHECK(section == text::build_tokenizer_tables(vocabulary));
  const text::TokenizerTables tables(section, "test");
  REQUIRE(tables.size() == vocabulary.tokens.size());
  std::int32_t the = -1;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const auto as_id = static_cast<std::int32_t>(id);
    CHECK(tables.token(as_id) == vocabulary.tokens[id]);
    if (the < 0 && vocabulary.tokens[id] == "the") the = as_id;
    if (id + 3 < vocabulary.tokens.size()) CHECK(tables.find(vocabulary.tokens[id]) == as_id);
  }
  CHECK(tables.find("the") == the);
  CHECK(tables.find("<control>") == -1);
  CHECK(tables.find("") == -1);
  CHECK(tables.find("nowhere") == -1);
  CHECK(tables.token(-1).empty());
  CHECK(tables.token(1 << 30).empty());
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto& merge = vocabulary.merges[rank];
    const auto found = tables.merge(merge.left, merge.right);
    CHECK(found.rank == rank);
    CHECK(found.result == merge.result);
  }
  CHECK(tables.merge('q', 'q').result == -1);
  CHECK(tables.merge(-1, 7).result == -1);
}

TEST_CASE("an empty vocabulary has tables too") {
  const std::vector<std::byte> section = text::build_tokenizer_tables({});
  const text::TokenizerTables tables(section, "test");
  CHECK(tables.size() == 0);
  CHECK(tables.find("a") == -1);
}

TEST_CASE("merges that name no token are refused") {
  text::Vocabulary vocabulary;
  vocabulary.tokens = {"a", "b"};
  for (const text::Vocabulary::Merge merge :
       {text::Vocabulary::Merge{0, 1, 2}, {-1, 0, 1}, {0, 9, 1}}) {
    vocabulary.merges = {merge};
    CHECK_THROWS_AS(text::build_tokenizer_tables(vocabulary), base::Error);
  }
}

TEST_CASE("whole tokens are those that merging their bytes gives alone") {
  const text::Vocabulary vocabulary = small_vocabulary();
  const std::vector<std::byte> section = text::build_tokenizer_tables(vocabulary);
  const text::TokenizerTables tables(section, "test");
  const text::Bpe bpe(tables, {});
  std::size_t whole = 0;
  for (const std::string& token : vocabulary.tokens) {
    const auto found = tables.lookup(token);
    if (found.id < 0) continue;
    std::vector<std::int32_t> ids;
    bpe.merge_word(token, nullptr, ids);
    CHECK(found.whole == (ids == std::vector<std::int32_t>{found.id}));
    whole += found.whole;
  }
  CHECK(whole > 300);
}

// Damage of any kind is an input error or harmless: every accepted section answers without leaving
// its bytes (the sanitizer build watches) and without hanging.
TEST_CASE("damaged sections are refused or harmless") {
  const std::vector<std::byte> good = text::build_tokenizer_tables(small_vocabulary());
  std::mt19937 random(17);
  std::size_t refused = 0, accepted = 0;
  const auto try_section = [&](const std::vector<std::byte>& section) {
    try {
      const text::TokenizerTables tables(section, "test");
      const text::Bpe bpe(tables, {true, true, 3});
      std::vector<std::int32_t> ids;
      bpe.encode_word("the other theatre, and a very long word that needs the heap of candidates",
                      nullptr, ids);
      for (std::int32_t id = -1; id <= static_cast<std::int32_t>(tables.size()); ++id)
        ids.push_back(static_cast<std::int32_t>(tables.token(id).size()));
      ++accepted;
    } catch (const base::Error& error) {
      REQUIRE(error.code() == base::ExitCode::input);
      ++refused;
    }
  };
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 20)
    try_section({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
  CHECK(accepted == 0);
  auto longer = good;
  longer.push_back(std::byte{0});
  try_section(longer);
  CHECK(accepted == 0);
  for (int round = 0; round < 4000; ++round) {
    auto damaged = good;
    const bool header = round % 4 == 0;
    for (unsigned n = 1 + random() % 3; n > 0; --n)
      damaged[random() % (header ? 64 : damaged.size())] =
          static_cast<std::byte>(random() % 3 ? 0xFF : random());
    try_section(damaged);
  }
  CHECK(refused > 500);
  CHECK(accepted > 50);
}

TEST_CASE("slots that are all taken are refused, so that a search ends") {
  std::vector<std::byte> section = text::build_tokenizer_tables(small_vocabulary());
  std::uint32_t n_tokens = 0, slots = 0;
  std::memcpy(&n_tokens, section.data() + 8, 4);
  std::memcpy(&slots, section.data() + 16, 4);
  const std::size_t at = 64 + (std::size_t{n_tokens} * 4 + 4 + 7) / 8 * 8;
  for (std::size_t i = 0; i < slots; ++i) section[at + i * 8] |= std::byte{1};
  CHECK_THROWS_AS(text::TokenizerTables(section, "test"), base::Error);
}
