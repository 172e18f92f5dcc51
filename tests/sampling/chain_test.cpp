// The whole chain: its order, what steers by earlier choices (mirostat, adaptive-p), greedy short
// cuts, bias, state, and random combinations of everything against the references in a row.
#include <random>

#include "catch.hpp"
#include "base/error.hpp"
#include "sampling/reference_chain.hpp"
#include "sampling/sampler.hpp"

namespace quern::tests {

namespace {

using sampling::Sampler;
using sampling::SamplerKind;
using sampling::SamplerOptions;

std::vector<float> random_row(std::size_t n, std::mt19937& random, double width = 2.5) {
  std::normal_distribution<float> normal(0, static_cast<float>(width));
  std::vector<float> row(n);
  for (float& x : row) x = normal(random);
  return row;
}

Choices choices_of(const std::vector<float>& row) {
  Choices choices;
  for (std::size_t i = 0; i < row.size(); ++i)
    choices.push_back({row[i], static_cast<std::int32_t>(i)});
  return choices;
}

void reference(Choices& c, SamplerKind kind, const SamplerOptions& o,
               const std::vector<std::int32_t>& sequence) {
  switch (kind) {
    case SamplerKind::penalties: return reference_penalties(c, o, sequence);
    case SamplerKind::dry:
      if (o.dry_multiplier > 0) reference_dry(c, o, sequence);
      return;
    case SamplerKind::top_n_sigma:
      if (o.top_n_sigma > 0) reference_top_n_sigma(c, o.top_n_sigma);
      return;
    case SamplerKind::top_k:
      if (o.top_k > 0) reference_top_k(c, o.top_k);
      return;
    case SamplerKind::typ_p:
      if (o.typical_p < 1) reference_typical(c, o.typical_p, o.min_keep);
      return;
    case SamplerKind::top_p:
      if (o.top_p < 1) reference_top_p(c, o.top_p, o.min_keep);
      return;
    case SamplerKind::min_p:
      if (o.min_p > 0) reference_min_p(c, o.min_p, o.min_keep);
      return;
    case SamplerKind::xtc:
      if (o.xtc_probability > 0) reference_xtc(c, o.xtc_threshold, o.min_keep);
      return;
    case SamplerKind::temperature:
      if (o.dynatemp_range > 0) return reference_dynatemp(c, o);
      return reference_temperature(c, o.temperature);
  }
}

// Options where every sampler is on or off by chance, in an order by chance.
SamplerOptions random_options(std::mt19937& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto on = [&] { return random() % 2 == 0; };
  SamplerOptions o;
  std::shuffle(o.samplers.begin(), o.samplers.end(), random);
  o.samplers.resize(random() % 10);
  o.temperature = on() ? uniform(0.1, 2) : (on() ? 1.0 : 0.0);
  if (on()) o.dynatemp_range = uniform(0.1, 1);
  o.top_k = on() ? random() % 300 : 0;
  o.top_p = on() ? uniform(0.3, 1) : 1;
  o.min_p = on() ? uniform(0, 0.2) : 0;
  o.typical_p = on() ? uniform(0.3, 1) : 1;
  if (on()) o.top_n_sigma = uniform(0.5, 4);
  if (on()) o.xtc_probability = 1, o.xtc_threshold = uniform(0.01, 0.4);
  if (on()) o.repeat_penalty = uniform(0.8, 1.5);
  if (on()) o.presence_penalty = uniform(-0.5, 1);
  if (on()) o.frequency_penalty = uniform(-0.2, 0.5);
  o.repeat_last_n = static_cast<std::int64_t>(random() % 80) + 1;
  if (on()) o.dry_multiplier = uniform(0.2, 2);
  o.min_keep = random() % 4 + 1;
  return o;
}

}  // namespace

TEST_CASE("random chains in random orders draw from what the references leave", "[chain]") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const SamplerOptions o = random_options(random);
    const std::vector<float> row = random_row(400, random);
    std::vector<std::int32_t> sequence;
    for (int i = 0; i < 90; ++i) sequence.push_back(static_cast<std::int32_t>(random() % 7));
    Choices expected = choices_of(row);
    for (const SamplerKind kind : o.samplers) reference(expected, kind, o, sequence);
    const std::vector<double> p = softmax(expected);
    std::map<std::int32_t, double> wanted, seen;
    for (std::size_t i = 0; i < expected.size(); ++i) wanted[expected[i].id] = p[i];
    Sampler sampler(o, row.size());
    sampler.start(sequence);
    constexpr int kDraws = 3000;
    for (int i = 0; i < kDraws; ++i) seen[sampler.sample(row, 0)] += 1.0 / kDraws;
    INFO("round " << round << ", " << expected.size() << " left");
    for (const auto& [id, frequency] : seen) CHECK(wanted.count(id) == 1);
    for (const auto& [id, probability] : wanted)  // five standard deviations
      CHECK(std::fabs(seen[id] - probability) <
            5 * std::sqrt(probability * (1 - probability) / kDraws) + 1e-3);
    if (sampler.greedy()) CHECK(seen.size() == 1);
  }
}

TEST_CASE("mirostat follows its formulas step by step", "[chain]") {
  std::mt19937 random(12);
  for (const int version : {1, 2}) {
    for (const double tau : {0.5, 3.0, 8.0}) {
      SamplerOptions o;
      o.mirostat = version, o.mirostat_ent = tau, o.mirostat_lr = 0.1;
      o.temperature = 0.9;
      o.top_k = 1;  // of no effect
      Sampler sampler(o, 500);
      double mu = 2 * tau;
      for (int step = 0; step < 60; ++step) {
        const std::vector<float> row = random_row(500, random, 3);
        Choices c = choices_of(row);
        reference_temperature(c, 0.9);
        if (version == 1) {
          reference_top_k(c, reference_mirostat_k(c, mu, 500));
        } else {
          const std::vector<double> p = softmax(c);
          std::size_t n = 0;
          while (n < c.size() && -std::log2(p[n]) <= mu) ++n;
          c.resize(std::max<std::size_t>(n, 1));
        }
        const std::int32_t id = sampler.sample(row, 0);
        sampler.accept(id);
        const std::vector<double> p = softmax(c);
        const auto found =
            std::find_if(c.begin(), c.end(), [&](const Choice& x) { return x.id == id; });
        REQUIRE(found != c.end());
        mu -= 0.1 * (-std::log2(p[static_cast<std::size_t>(found - c.begin())]) - tau);
        CHECK(std::fabs(sampler.state().chooser.mu - mu) < 1e-5);
      }
    }
  }
}

TEST_CASE("mirostat has an answer for rows without a spread, and for one token", "[chain]") {
  for (const int version : {1, 2})
    for (const double tau : {0.0, 5.0, 1e6})
      for (const std::size_t n : {1, 2, 300}) {
        SamplerOptions o;
        o.mirostat = version, o.mirostat_ent = tau, o.mirostat_lr = 1;
        Sampler sampler(o, n);
        for (int i = 0; i < 50; ++i) {
          const std::int32_t id = sampler.sample(std::vector<float>(n, 1.5F), 0);
          CHECK((id >= 0 && static_cast<std::size_t>(id) < n));
          sampler.accept(id);
        }
      }
}

TEST_CASE("adaptive-p transforms by distance from a target that moves", "[chain]") {
  std::mt19937 random(13);
  SamplerOptions o;
  o.adaptive_target = 0.4, o.adaptive_decay = 0.8;
  o.temperature = 1, o.top_k = 0, o.top_p = 1, o.min_p = 0;
  double sum = 0.4 / 0.2, weight = 1 / 0.2;
  Sampler sampler(o, 6);
  for (int step = 0; step < 40; ++step) {
    const std::vector<float> row = random_row(6, random, 2);
    Choices c = choices_of(row);
    const std::vector<double> p = softmax(c);
    const double target = std::clamp(2 * 0.4 - sum / weight, 0.0, 1.0);
    for (std::size_t i = 0; i < 6; ++i) {
      const double d = std::fabs(p[i] - target) / 0.3;
      c[i].logit = 5 - 10 * d * d / (1 + d);
    }
    const std::vector<double> wanted = softmax(c);
    std::vector<double> seen(6, 0);
    std::int32_t id = 0;
    for (int i = 0; i < 4000; ++i) seen[static_cast<std::size_t>(id = sampler.sample(row, 0))] += 1 / 4000.0;
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::fabs(seen[i] - wanted[i]) < 0.045);
    sampler.accept(id);
    sum = p[static_cast<std::size_t>(id)] + 0.8 * sum;
    weight = 1 + 0.8 * weight;
    CHECK(std::fabs(sampler.state().chooser.weighted_sum - sum) < 1e-6);
  }
}

TEST_CASE("a sampler restored from its state goes on with the same tokens", "[chain]") {
  std::mt19937 random(14);
  const std::vector<float> row = random_row(300, random);
  for (const int kind : {0, 1, 2, 3}) {
    SamplerOptions o;
    o.seed = 9;
    o.mirostat = kind < 3 ? kind : 0;
    if (kind == 3) o.adaptive_target = 0.2;
    Sampler first(o, 300), second(o, 300);
    std::vector<std::int32_t> before, a, b;
    for (int i = 0; i < 20; ++i) {
      before.push_back(first.sample(row, 0));
      first.accept(before.back());
    }
    second.start(before);
    second.restore(first.state());
    for (int i = 0; i < 40; ++i) {
      a.push_back(first.sample(row, 0));
      b.push_back(second.sample(row, 0));
      first.accept(a.back());
      second.accept(b.back());
    }
    CHECK(a == b);
  }
}

TEST_CASE("greedy is greedy behind every filter, and says so", "[chain]") {
  std::mt19937 random(15);
  const std::vector<float> row = random_row(5000, random);
  const auto best = static_cast<std::int32_t>(
      std::max_element(row.begin(), row.end()) - row.begin());
  SamplerOptions o;
  o.temperature = 0;
  CHECK(Sampler(o, row.size()).greedy());
  CHECK(Sampler(o, row.size()).sample(row, 0) == best);
  o.mirostat = 2;
  CHECK(Sampler(o, row.size()).sample(row, 0) == best);
  o.mirostat = 0;
  o.repeat_penalty = 3;
  o.samplers = sampling::samplers_by_letter("kmte");  // penalties last, the chosen one is alone
  Sampler last(o, row.size());
  last.start(std::vector<std::int32_t>{best});
  CHECK(last.sample(row, 0) == best);
  o.samplers = sampling::samplers_by_letter("ekt");
  Sampler first(o, row.size());
  first.start(std::vector<std::int32_t>{best});
  CHECK(first.sample(row, 0) != best);
  o.samplers = sampling::samplers_by_letter("ek");
  CHECK_FALSE(Sampler(o, row.size()).greedy());  // as nobody applies the temperature
}

TEST_CASE("bias moves, forbids and forces tokens; numbers stay finite", "[chain]") {
  SamplerOptions o;
  o.temperature = 0;
  o.logit_bias = {{0, 5.0F}, {2, -std::numeric_limits<float>::infinity()}, {900, 1.0F}, {-4, 1.0F}};
  CHECK(Sampler(o, 4).sample(std::vector<float>{1, 2, 9, 3}, 0) == 0);
  o.logit_bias = {{1, std::numeric_limits<float>::max()}, {3, std::numeric_limits<float>::lowest()}};
  o.temperature = 0.8;
  Sampler big(o, 4);
  const std::vector<float> huge = {3e38F, 3e38F, -3e38F, -3e38F};
  for (int i = 0; i < 50; ++i) CHECK(big.sample(huge, 0) == 1);
  o.logit_bias.clear();
  for (std::int32_t id = 0; id < 4; ++id)
    o.logit_bias.push_back({id, -std::numeric_limits<float>::infinity()});
  CHECK_THROWS_AS(Sampler(o, 4).sample(huge, 0), base::Error);
}

TEST_CASE("names and letters of samplers, and what is wrong with them", "[chain]") {
  using sampling::samplers_by_letter;
  using sampling::samplers_by_name;
  CHECK(samplers_by_name("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature") ==
        sampling::default_samplers());
  CHECK(samplers_by_letter("edskypmxt") == sampling::default_samplers());
  CHECK(samplers_by_name("top-k;temp;typical;nucleus;min-p") == samplers_by_letter("ktypm"));
  CHECK(samplers_by_name("").empty());
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const base::Error& error) {
      return error.code() == base::ExitCode::usage ? error.what() : "";
    }
    return "";
  };
  CHECK(message([] { samplers_by_name("top_k;topp"); }).find("topp") != std::string::npos);
  CHECK(message([] { samplers_by_name("top_k;top-k"); }).find("twice") != std::string::npos);
  CHECK(message([] { samplers_by_letter("kq"); }).find("\"q\"") != std::string::npos);
}

}  // namespace quern::tests
