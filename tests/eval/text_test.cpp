// Windows of a text, statistics, and rows of logits compared.
#include "eval/text.hpp"

#include <cmath>

#include "base/error.hpp"
#include "catch.hpp"
#include "eval/rows.hpp"

namespace quern::tests {

TEST_CASE("windows side by side score their second half", "[eval]") {
  const std::vector<eval::Window> windows = eval::make_windows(1100, {.context = 512}, "text");
  REQUIRE(windows.size() == 2);
  CHECK(windows[1].first == 512);
  CHECK(windows[1].n == 512);
  CHECK(windows[1].scored == 257);  // 255 tokens each, as llama-perplexity
  CHECK(eval::make_windows(1100, {.context = 512, .most = 1}, "text").size() == 1);
}

TEST_CASE("windows with a stride score their last tokens, with a depth those behind it", "[eval]") {
  const std::vector<eval::Window> strided = eval::make_windows(100, {.context = 40, .stride = 10}, "text");
  REQUIRE(strided.size() == 7);
  CHECK(strided[6].first == 60);
  CHECK(strided[6].scored == 30);
  CHECK(eval::make_windows(100, {.context = 40, .depth = 35}, "text")[0].scored == 35);
  CHECK_THROWS_AS(eval::make_windows(39, {.context = 40}, "text"), base::Error);
}

TEST_CASE("mean, standard error, quantiles", "[eval]") {
  eval::Mean mean;
  for (const double x : {1.0, 2.0, 3.0, 4.0}) mean.add(x);
  CHECK(mean.mean() == 2.5);
  CHECK(mean.variance() == Approx(5.0 / 3));
  CHECK(mean.error() == Approx(std::sqrt(5.0 / 12)));
  const std::vector<float> sorted = {0, 1, 2, 10};
  CHECK(eval::quantile(sorted, 0.5) == 1.5);
  CHECK(eval::quantile(sorted, 1.0) == 10);
  CHECK(eval::quantile({}, 0.5) == 0);
}

TEST_CASE("rows: log-probabilities and divergence", "[eval]") {
  const float p[] = {std::log(0.5F), std::log(0.25F), std::log(0.25F)}, q[] = {10.0F, 10.0F, 10.0F};
  const eval::RowScore a = eval::score_row(p, 3), b = eval::score_row(q, 3);
  CHECK(a.best == 0);
  CHECK(eval::log_probability(b, q, 1) == Approx(-std::log(3.0)));
  CHECK(eval::divergence(a, p, b, q, 3) == Approx(0.5 * std::log(1.5) + 0.5 * std::log(0.75)));
  CHECK(eval::divergence(a, p, a, p, 3) == 0);
  const float bad[] = {1.0F, NAN, 2.0F};
  CHECK_FALSE(eval::score_row(bad, 3).finite);
}

}  // namespace quern::tests
