#include "text/bpe.hpp"

#include <random>

#include "catch.hpp"
#include "cpu_time.hpp"
#include "tables.hpp"

using namespace quern;
using Ids = std::vector<std::int32_t>;

namespace {

// The definition: again and again the pair of lowest rank, of several the leftmost.
Ids by_definition(const text::TokenizerTables& tables, Ids ids) {
  while (true) {
    std::size_t best = ids.size();
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto merge = tables.merge(ids[i], ids[i + 1]);
      if (merge.result >= 0 && (best == ids.size() || merge.rank < rank))
        best = i, rank = merge.rank;
    }
    if (best == ids.size()) return ids;
    ids[best] = tables.merge(ids[best], ids[best + 1]).result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::string random_word(std::mt19937& random, std::size_t most) {
  const std::size_t size = 1 + random() % most;
  if (random() % 3 == 0) return std::string(size, "ahe "[random() % 4]);
  std::string out;
  while (out.size() < size) out += kLearnedText[random() % kLearnedText.size()];
  if (random() % 2 == 0)
    out.replace(0, out.size() / 2, kLearnedText.substr(random() % 50, out.size() / 2));
  return out;
}

}  // namespace

TEST_CASE("merging follows the definition for words of every length") {
  const auto section = text::build_tokenizer_tables(learned_vocabulary(kLearnedText, 120));
  const text::TokenizerTables tables(section, "test");
  const text::Bpe bpe(tables, {});
  std::mt19937 random(23);
  for (int round = 0; round < 4000; ++round) {
    const std::string word = random_word(random, round % 2 ? 32 : 120);
    Ids start;
    for (const char c : word) start.push_back(static_cast<unsigned char>(c));
    Ids merged, encoded;
    bpe.merge_word(word, nullptr, merged);
    bpe.encode_word(word, nullptr, encoded);
    INFO(word);
    REQUIRE(merged == by_definition(tables, start));
    REQUIRE(encoded == merged);
  }
}

TEST_CASE("bytes without a token are dropped, or become the unknown token, fused or not") {
  text::Vocabulary vocabulary;
  vocabulary.tokens = {"a", "b", "ab", "<unk>"};
  vocabulary.merges = {{0, 1, 2}};
  vocabulary.decode_only = {false, false, false, true};
  const auto section = text::build_tokenizer_tables(vocabulary);
  const text::TokenizerTables tables(section, "test");
  const auto encode = [&](const text::Bpe::Options& options, std::string_view word) {
    Ids ids;
    text::Bpe(tables, options).encode_word(word, nullptr, ids);
    return ids;
  };
  CHECK(encode({}, "axb") == Ids{2});  // the neighbours of a dropped byte meet
  CHECK(encode({false, false, 3}, "xxab") == Ids{3, 3, 2});
  CHECK(encode({false, true, 3}, "xxabxyx") == Ids{3, 2, 3});
  CHECK(encode({}, "xyz").empty());
}

TEST_CASE("ignore_merges takes a word that is a token though merging would not give it") {
  text::Vocabulary vocabulary;
  vocabulary.tokens = {"a", "b", "ab"};
  const auto section = text::build_tokenizer_tables(vocabulary);
  const text::TokenizerTables tables(section, "test");
  Ids merged, taken;
  text::Bpe(tables, {}).encode_word("ab", nullptr, merged);
  text::Bpe(tables, {true, false, {}}).encode_word("ab", nullptr, taken);
  CHECK(merged == Ids{0, 1});
  CHECK(taken == Ids{2});
}

TEST_CASE("banned ids do not come out of either path") {
  const auto section = text::build_tokenizer_tables(learned_vocabulary(kLearnedText, 60));
  const text::TokenizerTables tables(section, "test");
  const std::int32_t the = tables.find("the");
  REQUIRE(the >= 256);
  const text::IdSet banned = {the};
  for (const bool ignore : {false, true}) {
    for (const std::string_view word :
         {"the", "other", "the the the the the the the the the the the the"}) {
      Ids ids;
      text::Bpe(tables, {ignore, false, {}}).encode_word(word, &banned, ids);
      CHECK(std::find(ids.begin(), ids.end(), the) == ids.end());
    }
  }
}

TEST_CASE("a word of a megabyte takes time in proportion") {
  const auto section = text::build_tokenizer_tables(learned_vocabulary(kLearnedText, 120));
  const text::TokenizerTables tables(section, "test");
  const text::Bpe bpe(tables, {});
  std::mt19937 random(29);
  std::string mixed;
  while (mixed.size() < 250000) mixed += kLearnedText[random() % kLearnedText.size()];
  const auto seconds = [&](const std::string& word) {
    return best_cpu_seconds([&] {
      Ids ids;
      bpe.merge_word(word, nullptr, ids);
    });
  };
  for (const std::string& word : {std::string(250000, 'a'), std::string(250000, ' '), mixed}) {
    const double once = seconds(word);
    CHECK(seconds(word + word + word + word) <= kFourfold * once + 0.01);
  }
}
