#include "bench/statistics.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"

namespace quern::bench {
namespace {

TEST_CASE("mean, deviation and median of samples") {
  const Summary s = summarize({3, 1, 2, 4});
  CHECK(s.n == 4);
  CHECK(s.mean == Approx(2.5));
  CHECK(s.median == Approx(2.5));
  CHECK(s.deviation == Approx(1.2909944));
  CHECK(summarize({}).n == 0);
  const Summary one = summarize({7});
  CHECK(one.median == 7);
  CHECK(one.deviation == 0);
  CHECK(one.interval.low == 7);
  CHECK(one.interval.coverage == 0);
}

TEST_CASE("the interval is the order statistics of the sign test") {
  std::vector<double> samples;
  for (int i = 1; i <= 10; ++i) samples.push_back(i);
  const Summary s = summarize(samples);  // textbook: 2nd and 9th of 10 cover 97.85 %
  CHECK(s.interval.low == 2);
  CHECK(s.interval.high == 9);
  CHECK(s.interval.coverage == Approx(0.978515625));
  const Summary five = summarize({1, 2, 3, 4, 5});  // cannot reach 95 %: smallest and largest, 93.75 %
  CHECK(five.interval.low == 1);
  CHECK(five.interval.high == 5);
  CHECK(five.interval.coverage == Approx(0.9375));
}

TEST_CASE("the interval holds the true median as often as it says") {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.5);  // median 1, a long tail
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(21);
    for (double& x : samples) x = noise(random);
    const Interval i = summarize(samples).interval;
    held += i.low <= 1 && 1 <= i.high;
  }
  CHECK(held >= kTrials * 94 / 100);
}

TEST_CASE("drift is the second half over the first") {
  CHECK(drift(std::vector<double>{1, 1, 1, 2, 2, 2}) == Approx(2));
  CHECK(drift(std::vector<double>{1, 2, 3}) == 1);
}

// Pairs of a machine whose speed wanders: both sides of a pair share it.
std::vector<Pair> pairs(double ratio, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> machine(0, 0.3), own(0, 0.02);
  std::vector<Pair> out;
  for (std::size_t i = 0; i < n; ++i) {
    const double common = machine(random);
    out.push_back({common * own(random) * ratio, common * own(random)});
  }
  return out;
}

TEST_CASE("a slowdown of 5 % is found and none is invented") {
  int found = 0, invented = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    found += compare_pairs(pairs(1.05, 60, seed), {}).outcome == Outcome::slower;
    const Outcome unchanged = compare_pairs(pairs(1.0, 60, 1000 + seed), {}).outcome;
    invented += unchanged == Outcome::slower || unchanged == Outcome::faster;
    CHECK(compare_pairs(pairs(0.9, 60, 2000 + seed), {}).outcome == Outcome::faster);
  }
  CHECK(found >= 190);
  CHECK(invented == 0);
}

TEST_CASE("few pairs decide nothing") {
  CHECK(compare_pairs({}, {}).outcome == Outcome::undecided);
  CHECK(compare_pairs(pairs(2, 5, 1), {}).outcome == Outcome::undecided);
  CHECK(compare_pairs(pairs(2, 8, 1), {}).outcome == Outcome::slower);
}

TEST_CASE("two runs differ when their intervals do, after the machines are made equal") {
  const Summary base = summarize({99, 100, 101, 100, 100}), slow = summarize({89, 90, 91, 90, 90});
  CHECK(compare_runs(slow, base, 1, 0.02).outcome == Outcome::slower);
  CHECK(compare_runs(base, slow, 1, 0.02).outcome == Outcome::faster);
  CHECK(compare_runs(base, base, 1, 0.02).outcome == Outcome::same);
  CHECK(compare_runs(slow, base, 0.9, 0.02).outcome == Outcome::same);  // a machine a tenth slower
  CHECK(compare_runs(slow, base, 1, 0.2).outcome == Outcome::same);
  CHECK(compare_runs(slow, Summary{}, 1, 0.02).outcome == Outcome::undecided);
}

}  // namespace
}  // namespace quern::bench
