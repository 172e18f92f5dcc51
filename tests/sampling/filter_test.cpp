// Every sampler of the chain against its reference, on rows of many sizes and shapes, sorted or not.
#include "sampling/filter.hpp"

#include <functional>
#include <random>

#include "catch.hpp"
#include "sampling/fast_exp.hpp"
#include "sampling/reference_chain.hpp"

namespace quern::tests {

namespace {

using sampling::Candidate;
using sampling::Candidates;
using sampling::Filter;
using sampling::SamplerKind;
using sampling::SamplerOptions;

constexpr float kNever = -std::numeric_limits<float>::infinity();

// A row of logits: how many, how wide, how coarse (0: no ties to speak of).
struct Shape {
  std::size_t n;
  double width, grain;
};
constexpr Shape kShapes[] = {{1, 1, 0},    {2, 3, 0},     {7, 2, 0.5},   {50, 4, 0},
                             {50, 0, 0},   {900, 3, 0.25}, {6000, 2.5, 0}, {6000, 3, 0.5},
                             {20000, 4, 0}, {20000, 0.01, 0}};

std::vector<float> row_of(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<double> normal(0, 1);
  std::vector<float> row(shape.n);
  for (float& x : row) {
    double value = normal(random) * shape.width + 3;
    if (shape.grain > 0) value = std::round(value / shape.grain) * shape.grain;
    x = static_cast<float>(value);
  }
  for (std::size_t i = 3; i + 1 < row.size(); i += 11) row[i] = kNever;  // what rules forbid
  return row;
}

Choices choices_of(const std::vector<float>& row) {
  Choices choices;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (row[i] != kNever) choices.push_back({row[i], static_cast<std::int32_t>(i)});
  return choices;
}

// The same tokens with the same probabilities.
void compare(Candidates& candidates, const Choices& expected) {
  const std::vector<double> wanted = softmax(expected);
  std::map<std::int32_t, double> by_id;
  for (std::size_t i = 0; i < expected.size(); ++i) by_id[expected[i].id] = wanted[i];
  REQUIRE(candidates.size() == expected.size());
  const Candidates::Weights weights = candidates.weights();
  const auto list = candidates.list();
  bool same_ids = true, near = true, ordered = true;
  for (std::size_t i = 0; i < list.size(); ++i) {
    same_ids = same_ids && by_id.count(list[i].id) == 1;
    near = near && std::fabs(weights.each[i] / weights.total - by_id[list[i].id]) <
                       2e-6 * by_id[list[i].id] + 1e-12;
    if (i > 0 && candidates.sorted()) ordered = ordered && before(list[i - 1], list[i]);
  }
  CHECK(same_ids);
  CHECK(near);
  CHECK(ordered);
  const Candidate best = candidates.best();
  CHECK(std::none_of(list.begin(), list.end(), [&](const auto& c) { return before(c, best); }));
}

struct Case {
  SamplerOptions options;
  SamplerKind kind;
  std::function<void(Choices&)> reference;
  std::vector<std::int32_t> sequence;
  std::function<void(Choices&, const std::vector<std::int32_t>&)> with_sequence = {};
};

// Applied to the row itself, to a list, to a sorted head, and behind a temperature.
void check_case(const Case& test) {
  std::mt19937 random(7);
  for (const Shape& shape : kShapes) {
    for (const int before_it : {0, 1, 2, 3}) {
      const std::vector<float> logits = row_of(shape, random);
      std::vector<float> row = logits;
      Choices expected = choices_of(logits);
      Candidates candidates(row.size());
      REQUIRE(candidates.start(row));
      if (before_it == 1) candidates.list();
      if (before_it == 2) {
        candidates.keep_best(40);
        reference_top_k(expected, 40);
      }
      if (before_it == 3) {
        candidates.set_temperature(1.7);
        reference_temperature(expected, 1.7);
      }
      std::vector<std::int32_t> sequence;
      for (const std::int32_t id : test.sequence)
        sequence.push_back(id % static_cast<std::int32_t>(shape.n));
      sampling::Random draws(1);
      sampling::Step step{sequence, draws};
      const auto filter = make_filter(test.kind, test.options, row.size());
      REQUIRE(filter != nullptr);
      const Candidate best = candidates.best();
      filter->apply(candidates, step);
      if (test.with_sequence) test.with_sequence(expected, sequence);
      else test.reference(expected);
      INFO("n " << shape.n << " width " << shape.width << " after " << before_it);
      compare(candidates, expected);
      if (filter->keeps_best()) CHECK(candidates.best().id == best.id);
    }
  }
}

SamplerOptions with(const std::function<void(SamplerOptions&)>& change) {
  SamplerOptions o;
  change(o);
  return o;
}

}  // namespace

TEST_CASE("top_k, top_p, min_p and typical leave what their references leave", "[filters]") {
  for (const std::size_t k : {1, 5, 40, 700, 5000, 100000})
    check_case({with([&](auto& o) { o.top_k = k; }), SamplerKind::top_k,
                [&](Choices& c) { reference_top_k(c, k); }, {}});
  for (const std::size_t min_keep : {0, 1, 30}) {
    for (const double p : {0.0, 0.01, 0.3137, 0.7071, 0.9532, 0.9999})  // no sums of equal shares
      check_case({with([&](auto& o) { o.top_p = p, o.min_keep = min_keep; }), SamplerKind::top_p,
                  [&](Choices& c) { reference_top_p(c, p, min_keep); }, {}});
    for (const double p : {0.001, 0.05, 0.4, 0.97})
      check_case({with([&](auto& o) { o.min_p = p, o.min_keep = min_keep; }), SamplerKind::min_p,
                  [&](Choices& c) { reference_min_p(c, p, min_keep); }, {}});
    for (const double p : {0.0, 0.2137, 0.6171, 0.9532})
      check_case({with([&](auto& o) { o.typical_p = p, o.min_keep = min_keep; }),
                  SamplerKind::typ_p, [&](Choices& c) { reference_typical(c, p, min_keep); }, {}});
  }
}

TEST_CASE("top_n_sigma, temperature and dynamic temperature equal their references", "[filters]") {
  for (const double n : {0.01, 0.5, 1.0, 2.5, 9.0})
    check_case({with([&](auto& o) { o.top_n_sigma = n; }), SamplerKind::top_n_sigma,
                [&](Choices& c) { reference_top_n_sigma(c, n); }, {}});
  for (const double t : {-1.0, 0.0, 0.2, 0.8, 3.0})
    check_case({with([&](auto& o) { o.temperature = t; }), SamplerKind::temperature,
                [&](Choices& c) { reference_temperature(c, t); }, {}});
  for (const double range : {0.3, 0.8, 2.0})
    for (const double exponent : {0.5, 1.0, 2.0}) {
      const SamplerOptions o =
          with([&](auto& x) { x.dynatemp_range = range, x.dynatemp_exponent = exponent; });
      check_case({o, SamplerKind::temperature, [&](Choices& c) { reference_dynatemp(c, o); }, {}});
    }
}

TEST_CASE("xtc takes away all likely tokens but the least of them", "[filters]") {
  for (const std::size_t min_keep : {0, 2, 45})
    for (const double threshold : {0.0, 0.001, 0.05, 0.2, 0.5})
      check_case({with([&](auto& o) {
                    o.xtc_probability = 1, o.xtc_threshold = threshold, o.min_keep = min_keep;
                  }),
                  SamplerKind::xtc,
                  [&](Choices& c) { reference_xtc(c, threshold, min_keep); },
                  {}});
  // With probability 0.3 in three steps of ten.
  int n = 0;
  sampling::Random draws(3);
  const auto filter =
      make_filter(SamplerKind::xtc, with([](auto& o) { o.xtc_probability = 0.3; }), 3);
  for (int i = 0; i < 5000; ++i) {
    std::vector<float> row = {1, 2, 1.5F};
    Candidates candidates(3);
    candidates.start(row);
    sampling::Step step{{}, draws};
    filter->apply(candidates, step);
    n += candidates.size() < 3 ? 1 : 0;
  }
  CHECK(std::abs(n - 1500) < 150);
}

TEST_CASE("penalties equal their reference for every window", "[filters]") {
  std::mt19937 random(5);
  std::vector<std::int32_t> sequence;
  for (int i = 0; i < 300; ++i) sequence.push_back(static_cast<std::int32_t>(random() % 90));
  for (const std::int64_t last_n : {-1, 1, 20, 64, 1000})
    for (const double repeat : {1.0, 1.3, 0.7})
      for (const double presence : {0.0, 0.5, -0.25}) {
        const SamplerOptions o = with([&](auto& x) {
          x.repeat_last_n = last_n, x.repeat_penalty = repeat;
          x.presence_penalty = presence, x.frequency_penalty = 0.2;
        });
        check_case({o, SamplerKind::penalties, {}, sequence,
                    [&](Choices& c, const auto& ids) { reference_penalties(c, o, ids); }});
      }
}

TEST_CASE("dry equals its reference, with breakers of one token and of several", "[filters]") {
  std::mt19937 random(6);
  for (int round = 0; round < 40; ++round) {
    // Few different tokens: long repeats, and many of them.
    const auto n_ids = static_cast<std::int32_t>(2 + random() % 6);
    std::vector<float> logits;
    std::normal_distribution<float> normal(0, 3);
    for (std::int32_t i = 0; i < n_ids + 3; ++i) logits.push_back(normal(random));
    std::vector<std::int32_t> sequence;
    for (std::size_t n = random() % 200; n > 0; --n)
      sequence.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(n_ids)));
    for (const std::int64_t last_n : {-1, 3, 64})
      for (const std::size_t allowed : {0, 1, 2, 5}) {
        const SamplerOptions o = with([&](auto& x) {
          x.dry_multiplier = 0.8, x.dry_base = 1.75;
          x.dry_allowed_length = allowed, x.dry_penalty_last_n = last_n;
          if (round % 3 > 0) x.dry_breakers = {{1, {}}};
          if (round % 3 > 1) x.dry_breakers = {{1, {0}}, {1, {0, 0}}, {0, {1, 1, 0}}};
        });
        std::vector<float> row = logits;
        Candidates candidates(row.size());
        candidates.start(row);
        Choices expected = choices_of(logits);
        sampling::Random draws(1);
        sampling::Step step{sequence, draws};
        make_filter(SamplerKind::dry, o, row.size())->apply(candidates, step);
        reference_dry(expected, o, sequence);
        INFO("round " << round << " last_n " << last_n << " allowed " << allowed);
        const std::vector<double> wanted = softmax(expected);
        const Candidates::Weights weights = candidates.weights();
        for (std::size_t i = 0; i < expected.size(); ++i)
          CHECK(std::fabs(weights.each[i] / weights.total - wanted[i]) < 1e-6);
      }
  }
}

TEST_CASE("a long row is weighed and drawn from as its list would be", "[filters]") {
  std::mt19937 random(21);
  for (const Shape& shape : kShapes)
    for (const double temperature : {1.0, 0.3, 2.5}) {
      std::vector<float> row = row_of(shape, random);
      const Choices all = choices_of(row);
      Candidates candidates(row.size());
      REQUIRE(candidates.start(row));
      candidates.set_temperature(temperature);
      CHECK(candidates.is_row() == (shape.n > 4096));
      if (!candidates.is_row()) continue;
      INFO("n " << shape.n << " width " << shape.width << " temperature " << temperature);
      double best = -1e9, total = 0, sum = 0, squares = 0;
      for (const Choice& c : all) best = std::max(best, c.logit);
      std::map<std::int32_t, std::pair<double, double>> reach;  // of an id: the weights before it and with it
      for (const Choice& c : all) {
        const double before = total;
        total += std::exp((c.logit - best) / temperature);
        reach[c.id] = {before, total};
        sum += c.logit - best;
        squares += (c.logit - best) * (c.logit - best);
      }
      CHECK(std::fabs(candidates.total_weight() - total) < 1e-6 * total);
      const auto n = static_cast<double>(all.size());
      CHECK(std::fabs(candidates.distances().mean - sum / n) < 1e-9 * std::fabs(sum / n) + 1e-12);
      CHECK(std::fabs(candidates.distances().mean_square - squares / n) < 1e-9 * squares / n + 1e-12);
      for (double share = 0; share < 1; share = share < 0.5 ? share + 0.0137 : (1 + share * 3) / 4 + 1e-9) {
        const std::int32_t id = candidates.id_at(share);
        REQUIRE(reach.count(id) == 1);
        CHECK(reach[id].first <= (share + 1e-6) * total);
        CHECK(reach[id].second >= (share - 1e-6) * total);
      }
      CHECK(candidates.is_row());
      const double weight = 0.9 * total;
      candidates.keep_heavy(weight, 1);
      double kept = 0;
      for (const Candidate& c : candidates.list()) kept += std::exp((c.logit - best) / temperature);
      CHECK(kept >= weight);
    }
}

TEST_CASE("options that are off leave no sampler in the chain", "[filters]") {
  SamplerOptions off;
  off.top_k = 0, off.top_p = 1, off.min_p = 0, off.temperature = 1;
  for (const SamplerKind kind : sampling::default_samplers())
    CHECK(make_filter(kind, off, 10) == nullptr);
}

TEST_CASE("the exponential of whole rows is exact to 2e-7", "[filters]") {
  double worst = 0;
  for (double x = 0; x > -87; x -= 0.00137) {
    const auto argument = static_cast<float>(x);
    const double exact = std::exp(double{argument});
    worst = std::max(worst, std::fabs(sampling::fast_exp(argument) - exact) / exact);
  }
  CHECK(worst < 2e-7);
  float block[64];
  for (std::size_t i = 0; i < 64; ++i) block[i] = -0.37F * static_cast<float>(i * i) / 10;
  float all[64];
  std::copy(block, block + 64, all);
  sampling::fast_exp_all(all);
  for (std::size_t i = 0; i < 64; ++i) CHECK(all[i] == sampling::fast_exp(block[i]));
  CHECK(sampling::fast_exp(0) == 1);
  CHECK(sampling::fast_exp(-1e30F) < 1e-37F);
}

}  // namespace quern::tests
