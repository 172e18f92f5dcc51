// The scaling rules against values of the publishers' reference implementations.
#include "catch.hpp"

#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "convert/rope.hpp"
#include "convert/rope_config.hpp"

namespace base = quern::base;
namespace contract = quern::contract;
namespace convert = quern::convert;
using convert::RopeRule;
using convert::RopeSpec;

namespace {

struct Expected {
  std::size_t index;
  double inv;
};

// The reference computes in f32: one unit in the last place of its intermediate steps is 1e-6.
void check_table(const RopeSpec& spec, const std::vector<Expected>& expected, double mscale) {
  const contract::Rope rope = convert::build_rope(spec, "test");
  REQUIRE(rope.inv_freq.size() == spec.dims / 2);
  CHECK(rope.inv_freq[0] == 1.0F);
  CHECK(rope.mscale == Approx(mscale).epsilon(1e-12));
  for (const Expected& value : expected) {
    CAPTURE(value.index);
    CHECK(rope.inv_freq[value.index] == Approx(value.inv).epsilon(3e-6));
  }
}

RopeSpec spec_of(std::size_t dims, double base, RopeRule rule, double factor,
                 std::size_t original) {
  RopeSpec spec;
  spec.dims = dims;
  spec.base = base;
  spec.rule = rule;
  spec.factor = factor;
  spec.original_length = original;
  return spec;
}

base::Json entry(const char* scaling, std::size_t max_positions = 4096) {
  base::Json value;
  value["dims"] = 128;
  value["partial"] = 1;
  value["layout"] = "half";
  value["base"] = 10000.0;
  value["max_positions"] = max_positions;
  value["scaling"] = base::parse_json(scaling, "test");
  return value;
}

}  // namespace

TEST_CASE("llama3 scaling equals the reference") {
  check_table(spec_of(128, 5e5, RopeRule::bands, 8, 8192),
              {{28, .00321144611},
               {29, .00216657063},
               {32, .000524846022},
               {35, 9.55621217e-05},
               {36, 7.78465546e-05},
               {63, 3.06892588e-07}},
              1);
  check_table(spec_of(64, 5e5, RopeRule::bands, 32, 8192),
              {{14, .00321144611},
               {15, .00129054801},
               {16, .000429556705},
               {17, 9.70828623e-05},
               {31, 9.41830649e-08}},
              1);
}

TEST_CASE("YaRN equals the reference, with and without truncation, mscale and attention factor") {
  RopeSpec untruncated = spec_of(64, 150000, RopeRule::yarn, 32, 4096);
  untruncated.truncate = false;
  check_table(untruncated,
              {{8, .0508132726},
               {9, .0317056961},
               {12, .00679495931},
               {16, .000456483918},
               {18, 3.83088118e-05}},
              1.3465735902799727);
  RopeSpec ratio = spec_of(64, 1e4, RopeRule::yarn, 40, 4096);
  ratio.mscale = ratio.mscale_all_dim = 1;
  check_table(ratio,
              {{10, .0562341288},
               {11, .0390069261},
               {15, .0083345091},
               {20, .000790569407},
               {23, 3.3338034e-05}},
              1);
  check_table(spec_of(128, 1e6, RopeRule::yarn, 4, 32768),
              {{32, .000602941145}, {48, 7.90569356e-06}}, 1.138629436111989);
  RopeSpec given = spec_of(128, 1e6, RopeRule::yarn, 4, 32768);
  given.attention_factor = 1.25;
  CHECK(convert::build_rope(given, "test").mscale == 1.25);
}

TEST_CASE("NTK: the fixed rule is the dynamic one at factor times the length") {
  // Dynamic NTK, factor 2, at 4096 tokens of a model trained on 2048, has the base of fixed NTK
  // with factor 2 * 4096 / 2048 - 1 = 3.
  check_table(spec_of(128, 1e4, RopeRule::ntk, 3, 0),
              {{1, .850994289}, {32, .00572338188}, {63, 3.84927334e-05}}, 1);
  const contract::Rope dynamic =
      convert::build_rope(spec_of(128, 1e4, RopeRule::dynamic, 2, 2048), "test");
  const contract::Rope plain = convert::build_rope(spec_of(128, 1e4, RopeRule::none, 1, 0), "test");
  CHECK(dynamic.inv_freq == plain.inv_freq);
  REQUIRE(dynamic.switch_rule);
  CHECK(dynamic.switch_rule->original_length == 2048);
  CHECK(dynamic.switch_rule->factor == 2);
  CHECK(dynamic.switch_rule->base == 1e4);
}

TEST_CASE("linear scaling divides every angle, a table of divisors each its own") {
  const contract::Rope plain = convert::build_rope(spec_of(16, 1e4, RopeRule::none, 1, 0), "test");
  const contract::Rope linear =
      convert::build_rope(spec_of(16, 1e4, RopeRule::linear, 4, 0), "test");
  RopeSpec stored = spec_of(16, 1e4, RopeRule::none, 1, 0);
  stored.divisors = {1, 2, 3, 4, 5, 6, 7, 8};
  const contract::Rope divided = convert::build_rope(stored, "test");
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(linear.inv_freq[i] == Approx(plain.inv_freq[i] / 4).epsilon(3e-7));
    CHECK(divided.inv_freq[i] ==
          Approx(plain.inv_freq[i] / static_cast<float>(i + 1)).epsilon(3e-7));
  }
  stored.divisors.pop_back();
  CHECK_THROWS_AS(convert::build_rope(stored, "test"), base::Error);
}

TEST_CASE("longrope has a table for each side of the trained length") {
  RopeSpec spec = spec_of(8, 1e4, RopeRule::longrope, 32, 4096);
  spec.short_factor = {1, 1.5, 2, 2.5};
  spec.long_factor = {1, 4, 16, 64};
  const contract::Rope rope = convert::build_rope(spec, "test");
  CHECK(rope.mscale == Approx(std::sqrt(1 + std::log(32.0) / std::log(4096.0))));
  CHECK(rope.inv_freq[1] == Approx(0.1 / 1.5));
  REQUIRE(rope.switch_rule);
  CHECK(rope.switch_rule->long_inv_freq[3] == Approx(0.001 / 64));
  spec.long_factor.pop_back();
  CHECK_THROWS_AS(convert::build_rope(spec, "test"), base::Error);
}

TEST_CASE("both spellings of a configuration give the same rule") {
  const auto older = convert::read_rope(entry(R"({"type": "linear", "factor": 4})"), "x");
  const auto newer = convert::read_rope(
      entry(R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4})"), "x");
  CHECK(older.spec.rule == RopeRule::linear);
  CHECK(newer.spec.rule == RopeRule::linear);
  CHECK(older.spec.factor == newer.spec.factor);
  CHECK(convert::read_rope(entry("null"), "x").spec.rule == RopeRule::none);
  CHECK(
      convert::read_rope(entry(R"({"rope_type": "default", "rope_theta": 1e4})"), "x").spec.rule ==
      RopeRule::none);
  const auto dynamic = convert::read_rope(entry(R"({"type": "dynamic", "factor": 2})", 2048), "x");
  CHECK(dynamic.spec.original_length == 2048);
  CHECK(dynamic.max_positions == 4096);
  const auto odd =
      convert::read_rope(entry(R"({"type": "linear", "factor": 2, "flavour": 1})"), "x");
  CHECK(odd.unknown_keys == std::vector<std::string>{"x.scaling.flavour"});
}

TEST_CASE("malformed scalings are input errors that name the place") {
  const char* broken[] = {
      R"({"type": "lineer", "factor": 2})",
      R"({"type": "linear"})",
      R"({"type": "linear", "factor": "2"})",
      R"({"type": "linear", "factor": 0})",
      R"({"type": "linear", "factor": -1})",
      R"({"type": 3, "factor": 2})",
      R"({"rope_type": "llama3", "factor": 8})",
      R"({"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 0})",
      R"({"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 64, "low_freq_factor": 4, "high_freq_factor": 4})",
      R"({"rope_type": "yarn", "factor": 4, "beta_fast": -1})",
      R"({"rope_type": "yarn", "factor": 4, "truncate": 1})",
      R"({"rope_type": "longrope", "factor": 4, "original_max_position_embeddings": 64})",
      R"([1, 2])",
      R"("linear")"};
  for (const char* text : broken) {
    CAPTURE(text);
    try {
      const auto reading = convert::read_rope(entry(text), "config.json: rope");
      convert::build_rope(reading.spec, "config.json: rope");
      FAIL("accepted");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::input);
      CHECK(error.where().find("config.json: rope") == 0);
    }
  }
}

TEST_CASE("the user's wishes replace the rule and are announced") {
  auto reading = convert::read_rope(entry("null"), "x");
  convert::Adaptations wishes;
  wishes.rope_scaling = "yarn";
  wishes.rope_scale = 4;
  wishes.yarn_orig_ctx = 2048;
  convert::adapt_rope(wishes, reading);
  CHECK(reading.spec.rule == RopeRule::yarn);
  CHECK(reading.spec.original_length == 2048);
  CHECK(reading.max_positions == 8192);
  CHECK(reading.notices.size() == 4);

  auto linear = convert::read_rope(entry("null"), "x");
  convert::Adaptations scale;
  scale.rope_freq_scale = 0.25;
  convert::adapt_rope(scale, linear);
  CHECK(linear.spec.rule == RopeRule::linear);
  CHECK(linear.spec.factor == 4);
  CHECK(linear.max_positions == 16384);

  auto stretched = convert::read_rope(entry(R"({"type": "yarn", "factor": 4})"), "x");
  convert::Adaptations none;
  none.rope_scaling = "none";
  convert::adapt_rope(none, stretched);
  CHECK(stretched.spec.rule == RopeRule::none);

  for (const auto& break_it : {+[](convert::Adaptations& a) { a.rope_scaling = "yarn"; },
                               +[](convert::Adaptations& a) {
                                 a.rope_scaling = "magic";
                                 a.rope_scale = 2;
                               },
                               +[](convert::Adaptations& a) { a.rope_scale = -2; },
                               +[](convert::Adaptations& a) {
                                 a.rope_scale = 2;
                                 a.rope_freq_scale = 0.5;
                               },
                               +[](convert::Adaptations& a) { a.rope_freq_base = 0; },
                               +[](convert::Adaptations& a) { a.yarn_beta_fast = 16; }}) {
    convert::Adaptations bad;
    break_it(bad);
    auto plain = convert::read_rope(entry("null"), "x");
    CHECK_THROWS_AS(convert::adapt_rope(bad, plain), base::Error);
  }
}

TEST_CASE("wishes out of range are usage errors that name the option") {
  using Field = std::optional<double> convert::Adaptations::*;
  const std::pair<const char*, Field> options[] = {{"--rope-scale", &convert::Adaptations::rope_scale},
                                                   {"--rope-freq-scale", &convert::Adaptations::rope_freq_scale},
                                                   {"--rope-freq-base", &convert::Adaptations::rope_freq_base},
                                                   {"--yarn-ext-factor", &convert::Adaptations::yarn_ext_factor},
                                                   {"--yarn-attn-factor", &convert::Adaptations::yarn_attn_factor},
                                                   {"--yarn-beta-fast", &convert::Adaptations::yarn_beta_fast},
                                                   {"--yarn-beta-slow", &convert::Adaptations::yarn_beta_slow}};
  for (const auto& [name, field] : options)
    for (const double value : {-1.0, 1e308, 1e-308, std::nan(""), double{INFINITY}}) {
      const bool zero_allowed = std::string_view(name) == "--yarn-ext-factor" && value == 1e-308;
      if (zero_allowed) continue;
      CAPTURE(name);
      CAPTURE(value);
      convert::Adaptations wishes;
      wishes.*field = value;
      auto reading = convert::read_rope(entry(R"({"type": "yarn", "factor": 4})"), "x");
      try {
        convert::adapt_rope(wishes, reading);
        FAIL_CHECK("accepted");
      } catch (const base::Error& error) {
        CHECK(error.code() == base::ExitCode::usage);
        CHECK(error.where() == name);
      }
    }
}
