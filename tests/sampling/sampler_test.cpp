// Sampling: edge values of every option, total order, reproducible draws (reliability J10, J11).
#include "sampling/sampler.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "base/error.hpp"
#include "catch.hpp"
#include "sampling/random.hpp"

namespace quern::tests {

namespace {

using sampling::Sampler;
using sampling::SamplerOptions;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplerOptions plain(double temperature) {
  SamplerOptions o;
  o.temperature = temperature;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
  return o;
}

std::vector<float> random_logits(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::vector<float> logits(n);
  for (float& x : logits) x = normal(random);
  return logits;
}

// Frequencies of n draws.
std::map<std::int32_t, double> frequencies(Sampler& sampler, const std::vector<float>& logits,
                                           int n) {
  std::map<std::int32_t, double> counts;
  for (int i = 0; i < n; ++i) counts[sampler.sample(logits, 0)] += 1.0 / n;
  return counts;
}

}  // namespace

TEST_CASE("greedy takes the largest logit, the lowest id of equal ones", "[sampler]") {
  Sampler sampler(plain(0), 6);
  CHECK(sampler.sample(std::vector<float>{1, 3, 2, 3, -1, 3}, 0) == 1);
  CHECK(sampler.sample(std::vector<float>{0, 0, 0, 0, 0, 0}, 0) == 0);
  CHECK(sampler.sample(std::vector<float>{-5, -5, -4, -5, -4, -9}, 0) == 2);
}

TEST_CASE("a logit that is not finite is an error wherever it stands", "[sampler]") {
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const double temperature : {0.0, 0.8}) {
      for (std::size_t at = 0; at < 19; ++at) {
        Sampler sampler(plain(temperature), 19);
        std::vector<float> logits(19, 1.0F);
        logits[at] = bad;
        try {
          sampler.sample(logits, 42);
          FAIL("no error");
        } catch (const base::Error& error) {
          CHECK(error.code() == base::ExitCode::input);
          CHECK(std::string(error.what()).find("42") != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("draws follow the softmax at the temperature", "[sampler]") {
  const std::vector<float> logits{0, 1, 2, -1};
  for (const double temperature : {0.5, 1.0, 3.0}) {
    Sampler sampler(plain(temperature), logits.size());
    double total = 0;
    for (const float x : logits) total += std::exp(x / temperature);
    for (const auto& [id, frequency] : frequencies(sampler, logits, 20000))
      CHECK(std::fabs(frequency - std::exp(logits[static_cast<std::size_t>(id)] / temperature) /
                                      total) < 0.015);
  }
}

TEST_CASE("each filter leaves exactly its set, in the stated order", "[sampler]") {
  // Probabilities 0.4 0.3 0.2 0.1 at shuffled ids.
  const std::vector<float> logits{std::log(0.2F), std::log(0.4F), std::log(0.1F), std::log(0.3F)};
  const auto kept = [&](const SamplerOptions& options) {
    Sampler sampler(options, logits.size());
    std::vector<std::int32_t> ids;
    for (const auto& [id, frequency] : frequencies(sampler, logits, 3000)) ids.push_back(id);
    return ids;
  };
  SamplerOptions o = plain(1);
  using Ids = std::vector<std::int32_t>;
  for (const std::size_t k : {1, 2, 3, 4, 100}) {
    o.top_k = k;
    CHECK(kept(o).size() == std::min<std::size_t>(k, 4));
  }
  o = plain(1);
  o.top_p = 0;
  CHECK(kept(o) == Ids{1});
  o.top_p = 0.39;
  CHECK(kept(o) == Ids{1});
  o.top_p = 0.5;
  CHECK(kept(o) == Ids{1, 3});
  o.top_p = 0.95;
  CHECK(kept(o) == Ids{0, 1, 2, 3});
  o = plain(1);
  o.min_p = 0.45;
  CHECK(kept(o) == Ids{0, 1, 3});
  o.min_p = 1;
  CHECK(kept(o) == Ids{1});
  o = plain(1);
  o.top_k = 2;  // 4/7 and 3/7 are left: top_p counts these
  o.top_p = 0.55;
  CHECK(kept(o) == Ids{1});
  o = plain(100);  // filters see the model's probabilities, not the heated ones
  o.min_p = 0.6;
  CHECK(kept(o) == Ids{1, 3});
}

TEST_CASE("top-k of ties keeps the lowest ids", "[sampler]") {
  SamplerOptions o = plain(1);
  for (const std::size_t k : {1, 3, 7}) {
    o.top_k = k;
    Sampler sampler(o, 50);
    for (const auto& [id, frequency] : frequencies(sampler, std::vector<float>(50, 2.5F), 2000))
      CHECK(static_cast<std::size_t>(id) < k);
  }
}

TEST_CASE("top-k by heap is the head of the sorted list", "[sampler]") {
  const std::vector<float> logits = random_logits(5000, 3);
  for (const std::size_t k : {1, 40, 500}) {
    SamplerOptions few = plain(1), all = plain(1);
    few.top_k = k;
    std::vector<float> sorted = logits;
    std::sort(sorted.rbegin(), sorted.rend());
    Sampler sampler(few, logits.size());
    for (const auto& [id, frequency] : frequencies(sampler, logits, 2000))
      CHECK(logits[static_cast<std::size_t>(id)] >= sorted[k - 1]);
  }
}

TEST_CASE("repeated tokens are penalized once, inside the window only", "[sampler]") {
  SamplerOptions o = plain(0);
  o.repeat_penalty = 2;
  o.repeat_last_n = 2;
  const std::vector<float> logits{-1.0F, 4.0F, 3.0F, 1.9F};
  Sampler sampler(o, 4);
  CHECK(sampler.sample(logits, 0) == 1);
  sampler.accept(1);
  sampler.accept(1);
  CHECK(sampler.sample(logits, 0) == 2);  // 4 / 2, not 4 / 4
  sampler.accept(2);
  CHECK(sampler.sample(logits, 0) == 1);  // 4/2 and 3/2 against 1.9
  sampler.accept(0);
  CHECK(sampler.sample(logits, 0) == 1);  // 1 has left the window
  Sampler negative(o, 2);
  negative.accept(0);
  CHECK(negative.sample(std::vector<float>{-1.0F, -1.5F}, 0) == 1);  // -1 * 2
}

TEST_CASE("ids beyond the allowed are never returned, whatever their logits", "[sampler]") {
  for (const double temperature : {0.0, 5.0}) {
    Sampler sampler(plain(temperature), 20);
    sampler.set_allowed(17);
    std::vector<float> logits(20, 0.0F);
    logits[18] = 100;
    logits[19] = std::numeric_limits<float>::quiet_NaN();
    for (const auto& [id, frequency] : frequencies(sampler, logits, 500)) CHECK(id < 17);
  }
}

TEST_CASE("a constraint leaves what it allows, follows the answer and begins anew", "[sampler]") {
  // Allows the ids from `first` on, below 70, one word of bits being too few on purpose.
  struct From : sampling::Constraint {
    std::int32_t first = 0;
    std::vector<std::int32_t> accepted;
    int restarts = 0;
    std::array<std::uint64_t, 2> bits{};
    std::span<const std::uint64_t> allowed() override {
      bits = {};
      for (std::size_t i = static_cast<std::size_t>(first); i < 70; ++i)
        bits[i / 64] |= std::uint64_t{1} << (i % 64);
      return {bits.data(), first < 64 ? std::size_t{2} : std::size_t{1}};
    }
    void accept(std::int32_t id) override { accepted.push_back(id); }
    void restart() override { ++restarts; }
  } from;
  for (const double temperature : {0.0, 3.0}) {
    Sampler sampler(plain(temperature), 200);
    sampler.set_constraint(&from);
    from.accepted.clear();
    from.restarts = 0;
    sampler.start(std::vector<std::int32_t>{1, 2});
    CHECK((from.accepted.empty() && from.restarts == 1));
    std::vector<float> logits(200, 0.0F);
    logits[3] = logits[150] = 9;
    for (from.first = 0; from.first < 64; from.first += 9)
      for (int i = 0; i < 50; ++i) {
        const std::int32_t id = sampler.sample(logits, 0);
        CHECK((id >= from.first && id < 70));
      }
    sampler.accept(5);
    CHECK(from.accepted == std::vector<std::int32_t>{5});
    from.first = 64;  // allows nothing: its one word is empty
    CHECK_THROWS_AS(sampler.sample(logits, 7), base::Error);
    sampler.set_constraint(nullptr);
    CHECK_NOTHROW(sampler.sample(logits, 7));
  }
}

TEST_CASE("a seed fixes the draws, another seed changes them", "[sampler]") {
  const std::vector<float> logits = random_logits(1000, 5);
  const auto draws = [&](std::uint64_t seed) {
    SamplerOptions o;
    o.seed = seed;
    Sampler sampler(o, logits.size());
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler.sample(logits, 0));
    return ids;
  };
  CHECK(draws(1) == draws(1));
  CHECK(draws(1) != draws(2));
  CHECK(draws(0) != draws(1));
  // The generator itself, pinned: SplitMix64 by counter.
  sampling::Random random(0);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = random.uniform();
    REQUIRE((u >= 0 && u < 1));
    sum += u;
  }
  CHECK(std::fabs(sum / 100000 - 0.5) < 0.005);
}

TEST_CASE("option values without a meaning are usage errors", "[sampler]") {
  const auto refused = [](auto change) {
    SamplerOptions o;
    change(o);
    try {
      Sampler sampler(o, 10);
    } catch (const base::Error& error) {
      return error.code() == base::ExitCode::usage;
    }
    return false;
  };
  CHECK(refused([](SamplerOptions& o) { o.temperature = std::nan(""); }));
  CHECK(refused([](SamplerOptions& o) { o.top_p = 1.5; }));
  CHECK(refused([](SamplerOptions& o) { o.min_p = -0.1; }));
  CHECK(refused([](SamplerOptions& o) { o.repeat_penalty = 0; }));
  CHECK(refused([](SamplerOptions& o) { o.repeat_last_n = -2; }));
  CHECK(refused([](SamplerOptions& o) { o.dry_penalty_last_n = -2; }));
  CHECK(refused([](SamplerOptions& o) { o.dynatemp_range = -0.5; }));
  CHECK(refused([](SamplerOptions& o) { o.typical_p = std::nan(""); }));
  CHECK(refused([](SamplerOptions& o) { o.xtc_probability = 1.5; }));
  CHECK(refused([](SamplerOptions& o) { o.mirostat = 3; }));
  CHECK(refused([](SamplerOptions& o) { o.adaptive_decay = 1; }));
  CHECK(refused([](SamplerOptions& o) { o.logit_bias = {{0, kInfinity}}; }));
}

}  // namespace quern::tests
