// The rules about tokens against the reference library's, and what it has no case for.
#include "sampling/token_rules.hpp"

#include "catch.hpp"
#include "sampling/generation_cases.hpp"
#include "sampling/scores.hpp"

namespace quern::tests {

TEST_CASE("every rule and their combinations change scores as the reference library does",
          "[rules]") {
  const base::Json data = generation_cases("rules.json");
  const auto vocab_size = data["vocab_size"].get<std::size_t>();
  std::size_t n_changed = 0;
  for (const base::Json& test : data["cases"]) {
    sampling::TokenRules rules(
        rule_options(test["options"], test["prompt_length"].get<std::size_t>()), vocab_size);
    INFO(test.dump());
    const std::vector<float> before = scores_of(test["logits"]);
    const std::vector<float> expected = scores_of(test["expected"]);
    std::vector<float> scores = before;
    rules.apply(ids_of(test["sequence"]), scores);
    for (std::size_t i = 0; i < vocab_size; ++i) CHECK(near(scores[i], expected[i]));
    if (scores != before) ++n_changed;
    if (scores != before) CHECK(rules.active());
  }
  CHECK(n_changed > 60);
}

TEST_CASE("padding rows are never chosen, ids beyond the vocabulary change nothing", "[rules]") {
  sampling::TokenRuleOptions options;
  options.allowed = 3;
  options.suppress = {1, 900};
  options.bad_words = {{7, 901}, {}};
  sampling::TokenRules rules(options, 5);
  std::vector<float> scores = {1, 2, 3, 4, 5};
  rules.apply(std::vector<std::int32_t>{4, 7}, scores);
  CHECK(scores[0] == 1);
  CHECK(scores[2] == 3);
  for (const std::size_t i : {1, 3, 4}) CHECK(scores[i] == -std::numeric_limits<float>::infinity());
  CHECK_FALSE(sampling::TokenRules({}, 5).active());
}

TEST_CASE("log softmax sums to one and leaves a row without choices alone", "[scores]") {
  std::vector<float> row = {1, -2, 700, 699.5F, -std::numeric_limits<float>::infinity()};
  sampling::log_softmax(row);
  double sum = 0;
  for (const float value : row) sum += std::exp(double{value});
  CHECK(std::fabs(sum - 1) < 1e-6);
  CHECK(row[4] == -std::numeric_limits<float>::infinity());
  std::vector<float> none(3, -std::numeric_limits<float>::infinity());
  sampling::log_softmax(none);
  CHECK(none[0] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("the best indexes come in order, equal values by index", "[scores]") {
  const std::vector<float> values = {1, 5, 3, 5, -1, 3};
  CHECK(sampling::best_indexes(values, 4) == std::vector<std::size_t>{1, 3, 2, 5});
  CHECK(sampling::best_indexes(values, 9).size() == 6);
  CHECK(sampling::best_indexes(values, 0).empty());
}

}  // namespace quern::tests
