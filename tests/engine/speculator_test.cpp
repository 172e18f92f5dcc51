// What is guessed, and when guessing stops: on made-up clocks.
#include "engine/speculator.hpp"

#include <random>

#include "catch.hpp"

namespace quern::tests {

namespace {

using Ids = std::vector<std::int32_t>;

Ids drafted(engine::Drafter& drafter, const Ids& text, std::size_t n) {
  const auto guesses = drafter.draft(text, n);
  return {guesses.begin(), guesses.end()};
}

// Guesses that are right with a given chance.
class Lucky : public engine::Drafter {
 public:
  Lucky(double chance, bool cheap) : chance_(chance), cheap_(cheap) {}
  std::span<const std::int32_t> draft(std::span<const std::int32_t>, std::size_t n) override {
    guesses_.assign(n, 0);
    for (std::int32_t& id : guesses_) id = Chance(random_) < chance_ ? 1 : 0;  // 1 is right
    return guesses_;
  }
  bool cheap() const override { return cheap_; }
  std::string name() const override { return "lucky"; }

 private:
  static double Chance(std::mt19937& random) { return random() / 4294967296.0; }
  double chance_;
  bool cheap_;
  std::mt19937 random_{1};
  Ids guesses_;
};

// Seconds of an answer of n tokens over those of plain decoding, where a step of w tokens takes 1 + slope (w - 1)
// milliseconds.
double relative_time(double chance, bool cheap, double slope, std::size_t n, std::size_t* drafted = nullptr) {
  Lucky lucky(chance, cheap);
  engine::Speculator speculator(lucky, {8, true});
  const Ids text = {1, 1};
  double seconds = 0;
  for (std::size_t done = 0; done < n;) {
    const auto guesses = speculator.guesses(text, 8);
    std::size_t right = 0;
    while (right < guesses.size() && guesses[right] == 1) ++right;
    const double took = 1e-3 * (1 + slope * static_cast<double>(guesses.size()));
    seconds += took;
    done += right + 1;
    for (std::size_t i = 0; i <= right; ++i) speculator.token(1);
    speculator.stepped(guesses.size() + 1, right, took);
  }
  if (drafted != nullptr) *drafted = speculator.counts().drafted;
  return seconds / (1e-3 * static_cast<double>(n));
}

}  // namespace

TEST_CASE("prompt lookup goes on as the text did, the longest match first", "[speculation]") {
  const auto ngram = engine::ngram_drafter();
  CHECK(drafted(*ngram, {1, 2, 3, 4, 5, 2, 3}, 3) == Ids{4, 5, 2});
  CHECK(drafted(*ngram, {1, 2, 3, 4, 5, 2, 3, 9, 2, 3}, 2) == Ids{9, 2});  // the last place
  CHECK(drafted(*ngram, {1, 2, 3, 4, 5, 2, 3, 9, 1, 2, 3}, 2) == Ids{4, 5});
  CHECK(drafted(*ngram, {1, 2, 3, 4, 5, 2, 3, 9, 1, 2, 3, 8}, 2).empty());
  CHECK(drafted(*ngram, {7, 7, 7}, 4) == Ids{7, 7, 7, 7});  // behind its end the text goes on as it did
  CHECK(drafted(*ngram, {1, 2, 1, 2}, 5) == Ids{1, 2, 1, 2, 1});
  CHECK(drafted(*ngram, {4}, 3).empty());
  CHECK(drafted(*ngram, {5, 6, 5}, 3).empty());
}

TEST_CASE("prompt lookup equals a search through the text", "[speculation]") {
  std::mt19937 random(3);
  const auto ngram = engine::ngram_drafter();
  Ids text;
  for (int i = 0; i < 600; ++i) {
    if (random() % 100 == 0) text.resize(text.size() / 2);  // another answer to the same beginning
    text.push_back(static_cast<std::int32_t>(random() % 4));
    Ids expected;
    for (std::size_t n = 4; n >= 2 && expected.empty(); --n)
      for (std::size_t next = text.size() - 1; text.size() > n && next >= n && expected.empty(); --next) {
        if (!std::equal(text.end() - static_cast<std::ptrdiff_t>(n), text.end(),
                        text.begin() + static_cast<std::ptrdiff_t>(next - n)))
          continue;
        for (std::size_t k = next; k < next + 6; ++k)
          expected.push_back(k < text.size() ? text[k] : expected[k - text.size()]);
      }
    CHECK(drafted(*ngram, text, 6) == expected);
  }
}

TEST_CASE("costs between and beyond the widths that were measured", "[speculation]") {
  engine::StepCosts costs(9);
  costs.add(1, 1.0);
  CHECK(costs.of(5) == Approx(2.0));  // before anything is known of wider steps
  costs.add(3, 1.4);
  CHECK(costs.of(2) == Approx(1.2));
  CHECK(costs.of(5) == Approx(1.8));
  costs.add(3, 100);  // interrupted
  CHECK(costs.of(3) == Approx(2.1));
}

TEST_CASE("guesses that come true save time", "[speculation]") {
  for (const bool cheap : {true, false}) {
    CHECK(relative_time(1.0, cheap, 0.1, 2000) < 0.3);
    CHECK(relative_time(0.8, cheap, 0.2, 2000) < 0.7);
  }
}

TEST_CASE("guesses that are wrong cost next to nothing", "[speculation]") {
  for (const bool cheap : {true, false})
    for (const double chance : {0.0, 0.1, 0.3, 0.5})
      for (const double slope : {0.3, 0.8, 1.0}) {
        INFO("chance " << chance << ", slope " << slope << (cheap ? ", cheap" : ""));
        CHECK(relative_time(chance, cheap, slope, 1000) < 1.03);
      }
  std::size_t n_drafted = 0;
  relative_time(0.0, true, 0.5, 1000, &n_drafted);
  CHECK(n_drafted == 0);  // they were only watched
}

}  // namespace quern::tests
