// Models against their definitions, by trying everything, and their time on long words.
#include "text/word_model.hpp"

#include <random>

#include "base/error.hpp"
#include "catch.hpp"
#include "cpu_time.hpp"

using namespace quern;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr std::string_view kLetters = "abc";

// All single letters of the alphabet but one, and pieces of them with scores.
text::Vocabulary random_pieces(std::mt19937& random, bool trie) {
  text::Vocabulary out;
  out.byte_level = false;
  out.trie = trie;
  out.tokens = {"<unk>", "a", "b"};
  out.decode_only = {true};
  while (out.tokens.size() < 14) {
    std::string piece;
    for (auto n = 2 + random() % 3; n > 0; --n) piece += kLetters[random() % kLetters.size()];
    out.tokens.push_back(piece);  // some repeat an earlier one
  }
  for (std::size_t i = 0; i < out.tokens.size(); ++i)
    out.scores.push_back(-static_cast<double>(random() % 9) / 2);
  out.unk_score = -14.5;
  return out;
}

struct Made {
  Made(const text::Vocabulary& vocabulary, const std::string& model)
      : section(text::build_tokenizer_tables(vocabulary)), tables(section, "test") {
    description.model = model;
    description.unk_id = 0;
    description.max_word_chars = 12;
    word_model = text::make_word_model(description, tables, "test");
  }
  Ids encode(std::string_view word, const text::IdSet* banned = nullptr) const {
    Ids out;
    word_model->encode_word(word, banned, out);
    return out;
  }
  std::vector<std::byte> section;
  text::TokenizerTables tables;
  contract::TokenizerDescription description;
  std::unique_ptr<text::WordModel> word_model;
};

std::string random_word(std::mt19937& random, std::size_t most) {
  std::string out;
  for (auto n = random() % most; n > 0; --n) out += "abbacx"[random() % 6];
  return out;
}

double score_of(const text::Vocabulary& v, const text::TokenizerTables& tables,
                std::string_view piece) {
  const std::int32_t id = tables.find(piece);
  return id >= 0 ? v.scores[static_cast<std::size_t>(id)] : v.unk_score;
}

// The best sum over all ways to cut a word; single letters are always allowed.
double best_sum(const text::Vocabulary& v, const text::TokenizerTables& tables,
                std::string_view word) {
  if (word.empty()) return 0;
  double best = -1e9;
  for (std::size_t n = 1; n <= word.size(); ++n) {
    if (n > 1 && tables.find(word.substr(0, n)) < 0) continue;
    best = std::max(best,
                    score_of(v, tables, word.substr(0, n)) + best_sum(v, tables, word.substr(n)));
  }
  return best;
}

}  // namespace

TEST_CASE("unigram finds a cut with the best sum, and joins unknown letters") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const text::Vocabulary vocabulary = random_pieces(random, true);
    const Made made(vocabulary, "unigram");
    const std::string word = random_word(random, 12);
    const Ids ids = made.encode(word);
    double sum = 0;
    std::size_t letters = 0, unknown = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == 0) {
        CHECK((i == 0 || ids[i - 1] != 0));
        ++unknown;
        continue;
      }
      sum += vocabulary.scores[static_cast<std::size_t>(ids[i])];
      letters += vocabulary.tokens[static_cast<std::size_t>(ids[i])].size();
    }
    INFO(word);
    CHECK(letters <= word.size());
    CHECK((letters == word.size()) == (unknown == 0));
    const auto left = static_cast<double>(word.size() - letters);
    CHECK(sum + left * vocabulary.unk_score == Approx(best_sum(vocabulary, made.tables, word)));
  }
}

TEST_CASE("score_bpe joins the best pair first, of equal ones the leftmost") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const text::Vocabulary vocabulary = random_pieces(random, false);
    const Made made(vocabulary, "score_bpe");
    const std::string word = random_word(random, 20);
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    while (true) {
      std::size_t best = parts.size();
      double score = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const std::int32_t id = made.tables.find(parts[i] + parts[i + 1]);
        if (id < 0) continue;
        const double s = vocabulary.scores[static_cast<std::size_t>(id)];
        if (best == parts.size() || s > score) best = i, score = s;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    Ids expected;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int32_t id = made.tables.find(parts[i]);
      if (id >= 0) expected.push_back(id);
      if (id < 0 && (i == 0 || made.tables.find(parts[i - 1]) >= 0)) expected.push_back(0);
    }
    INFO(word);
    CHECK(made.encode(word) == expected);
  }
}

TEST_CASE("wordpiece takes the longest piece, a word it cannot cover is unknown") {
  text::Vocabulary vocabulary;
  vocabulary.byte_level = false;
  vocabulary.trie = true;
  vocabulary.tokens = {"<unk>", "a", "ab", "##b", "##bc", "##c", "abcd", "\u5B57"};
  Made made(vocabulary, "wordpiece");
  made.description.subword_prefix = "##";
  made.word_model = text::make_word_model(made.description, made.tables, "test");
  CHECK(made.encode("abc") == Ids{2, 5});
  CHECK(made.encode("abbc") == Ids{2, 4});
  CHECK(made.encode("abcx") == Ids{0});
  CHECK(made.encode("abcd") == Ids{6});
  const text::IdSet banned = {6, 2};
  CHECK(made.encode("abcd", &banned) == Ids{0});
  CHECK(made.encode("abc", &banned) == Ids{1, 4});
  CHECK(made.encode("abbbbbbbbbbb") == Ids{2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3});
  CHECK(made.encode("abbbbbbbbbbbb") == Ids{0});
  CHECK(made.encode("\u5B57") == Ids{7});
  CHECK(made.encode("\xE5\xAD") == Ids{0});
  CHECK(made.encode("").empty());
}

TEST_CASE("tables without what a model needs are refused") {
  text::Vocabulary vocabulary;
  vocabulary.byte_level = false;
  vocabulary.tokens = {"a"};
  for (const char* model : {"unigram", "score_bpe", "wordpiece", "no such"}) {
    INFO(model);
    CHECK_THROWS_AS(Made(vocabulary, model), base::Error);
  }
  CHECK_NOTHROW(Made(vocabulary, "wordlevel"));
}

TEST_CASE("tokens without an id compete and are unknown") {
  text::Vocabulary vocabulary;
  vocabulary.byte_level = false;
  vocabulary.trie = true;
  vocabulary.tokens = {"<unk>", "a", "b", "ab"};
  vocabulary.scores = {0, -2, -2, -1};
  vocabulary.n_ids = 3;
  vocabulary.unk_score = -12;
  const Made made(vocabulary, "unigram");
  CHECK(made.tables.size() == 3);
  CHECK(made.encode("ab") == Ids{0});
  CHECK(made.encode("ba") == Ids{2, 1});
  CHECK(made.tables.decoded(3).empty());
}

TEST_CASE("long words take n log n at most") {
  std::mt19937 random(9);
  const text::Vocabulary pieces = random_pieces(random, true);
  for (const char* model : {"unigram", "score_bpe"}) {
    const Made made(pieces, model);
    for (const std::string unit : {"a", "ab", "abcabb", "x"}) {
      const auto seconds = [&](std::size_t bytes) {
        std::string word;
        while (word.size() < bytes) word += unit;
        return best_cpu_seconds([&] { made.encode(word); });
      };
      INFO(model << " " << unit);
      CHECK(seconds(1 << 18) < kFourfold * seconds(1 << 16));
    }
  }
}
