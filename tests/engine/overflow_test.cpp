// Which tokens of an outgrown text are dropped, and that the choice is stable while the text grows.
#include "engine/overflow.hpp"

#include <numeric>

#include "base/error.hpp"
#include "catch.hpp"

namespace quern::tests {

namespace {

using engine::OverflowPolicy;
using engine::OverflowReport;
using engine::TokenWindow;
using Ids = std::vector<std::int32_t>;
using Report = std::optional<OverflowReport>;

Ids counting(std::size_t n) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// counting(n) without [first, first + n_dropped).
Ids without(std::size_t n, std::size_t first, std::size_t n_dropped) {
  Ids ids = counting(n);
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
  ids.erase(begin, begin + static_cast<std::ptrdiff_t>(n_dropped));
  return ids;
}

}  // namespace

TEST_CASE("policies are spelled as on the command line", "[overflow]") {
  for (const OverflowPolicy policy :
       {OverflowPolicy::error, OverflowPolicy::truncate, OverflowPolicy::shift, OverflowPolicy::sinks})
    CHECK(engine::overflow_policy_of(engine::overflow_policy_name(policy)) == policy);
  CHECK_FALSE(engine::overflow_policy_of("Shift"));
  CHECK_FALSE(engine::overflow_policy_of(""));
}

TEST_CASE("shift drops the older half of what follows the kept tokens", "[overflow]") {
  TokenWindow window({OverflowPolicy::shift, 10, 4}, 100);
  Report report;
  CHECK(window.fit(counting(99), 1, report) == counting(99));
  CHECK_FALSE(report);
  CHECK(window.fit(counting(100), 1, report) == without(100, 10, 45));
  REQUIRE(report);
  CHECK(report->n_new == 45);
  CHECK(report->n_dropped == 45);
  CHECK(report->first == 10);
  CHECK(report->n_kept == 55);
  CHECK(engine::overflow_text(*report) ==
        "context full: dropped 45 tokens from position 10 on; the 45 tokens behind them move to positions 10 to 54 "
        "and are computed again");
  // It grows: the same tokens stay dropped until it is full again.
  CHECK(window.fit(counting(144), 1, report) == without(144, 10, 45));
  CHECK_FALSE(report);
  CHECK(window.fit(counting(150), 1, report) == without(150, 10, 45 + 48));
  REQUIRE(report);
  CHECK(report->n_new == 48);
  CHECK(report->n_dropped == 93);
  // Room for more than one token is made at once.
  CHECK(window.fit(counting(180), 20, report) == without(180, 10, 93 + 39));
}

TEST_CASE("sinks keeps the first tokens and the recent ones", "[overflow]") {
  TokenWindow window({OverflowPolicy::sinks, 10, 4}, 100);
  Report report;
  CHECK(window.fit(counting(100), 1, report) == without(100, 4, 48));
  CHECK(report->n_kept == 52);
  CHECK(window.fit(counting(1000), 1, report) == without(1000, 4, 948));
  CHECK(report->n_dropped == 948);
}

TEST_CASE("a text far beyond the context is halved until it fits", "[overflow]") {
  for (const std::size_t keep : {0, 1, 17, 50})
    for (const std::size_t context : {100, 101, 128})
      for (const std::size_t n : {100, 129, 1000, 33333})
        for (const std::size_t room : {1, 2, 30, 100000})
          for (const OverflowPolicy policy : {OverflowPolicy::shift, OverflowPolicy::sinks}) {
            TokenWindow window({policy, keep, keep}, context);
            Report report;
            const Ids kept = window.fit(counting(n), room, report);
            CHECK(kept == without(n, keep, n - kept.size()));
            CHECK(kept.size() > keep);
            CHECK(kept.size() + std::min(room, (context - keep) / 2) <= context);
            CHECK(kept.back() == static_cast<std::int32_t>(n - 1));
            CHECK((report && report->n_dropped == n - kept.size() && window.n_dropped() == n - kept.size()) !=
                  (kept.size() == n));
          }
}

TEST_CASE("a text that changed, or fits again, is looked at afresh", "[overflow]") {
  TokenWindow window({OverflowPolicy::shift, 10, 4}, 100);
  Report report;
  window.fit(counting(110), 1, report);
  REQUIRE(window.n_dropped() == 50);
  Ids edited = counting(112);
  edited[30] = 999;  // among the dropped
  Ids kept = window.fit(edited, 1, report);
  CHECK(report->n_new == 51);
  CHECK(kept.size() == 61);
  edited[80] = 998;  // behind them
  kept = window.fit(edited, 1, report);
  CHECK_FALSE(report);
  CHECK(kept.size() == 61);
  window.set_keep(12);
  CHECK(window.n_dropped() == 0);
  CHECK(window.fit(counting(90), 1, report) == counting(90));
}

TEST_CASE("dropping in the middle of an answer is dropping from the text", "[overflow]") {
  TokenWindow window({OverflowPolicy::shift, 10, 4}, 100);
  Report report;
  Ids kept = counting(101);
  REQUIRE(window.shrink(kept, 1));
  CHECK(kept == without(101, 10, 46));
  for (std::int32_t id = 101; id < 147; ++id) kept.push_back(id);
  REQUIRE(window.shrink(kept, 1));
  CHECK(kept == without(147, 10, 46 + 46));
  // The next turn renders the whole text: the same is dropped.
  CHECK(window.fit(counting(150), 1, report) == without(150, 10, 92));
  CHECK_FALSE(report);
}

TEST_CASE("tokens that are never dropped must leave half of the context", "[overflow]") {
  Report report;
  for (const std::size_t context : {0, 1, 2, 3, 10})
    for (std::size_t keep = 0; keep < 14; ++keep) {
      TokenWindow window({OverflowPolicy::shift, keep, 4}, context);
      INFO(context << " " << keep);
      if (keep <= context / 2 && context - keep >= 2) {
        CHECK(window.fit(counting(40), 1, report).size() + 1 <= context);
      } else {
        CHECK_THROWS_AS(window.fit(counting(40), 1, report), base::Error);
      }
    }
}

}  // namespace quern::tests
