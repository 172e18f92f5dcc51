#include "convert/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;
constexpr double kTwoPi = 2 * std::numbers::pi;

// theta^(-2i / width), i < dims / 2; in double, rounded once at the end (the reference rounds each
// step to f32, which differs by one unit in the last place).
std::vector<double> plain_table(const RopeSpec& spec, double base) {
  const std::size_t width = spec.exponent_dims != 0 ? spec.exponent_dims : spec.dims;
  std::vector<double> table(spec.dims / 2);
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
  return table;
}

// NTK-aware: a larger base, so that the lowest frequency is stretched by `factor` and the highest
// kept.
double ntk_base(const RopeSpec& spec) {
  const double dims = static_cast<double>(spec.dims);
  return spec.base * std::pow(spec.factor, dims / (dims - 2));
}

void apply_bands(const RopeSpec& spec, std::vector<double>& table) {
  const double original = static_cast<double>(spec.original_length);
  const double longest = original / spec.low_freq_factor;    // wavelengths above: interpolated
  const double shortest = original / spec.high_freq_factor;  // wavelengths below: kept
  for (double& inv : table) {
    const double wavelength = kTwoPi / inv;
    if (wavelength < shortest) continue;
    if (wavelength > longest) {
      inv /= spec.factor;
      continue;
    }
    const double smooth = (original / wavelength - spec.low_freq_factor) /
                          (spec.high_freq_factor - spec.low_freq_factor);
    inv *= (1 - smooth) / spec.factor + smooth;
  }
}

void apply_yarn(const RopeSpec& spec, std::vector<double>& table) {
  const double dims = static_cast<double>(spec.dims);
  // Dimension whose angle turns `rotations` times over the trained length.
  const auto dimension = [&](double rotations) {
    return dims * std::log(static_cast<double>(spec.original_length) / (rotations * kTwoPi)) /
           (2 * std::log(spec.base));
  };
  double low = dimension(spec.beta_fast), high = dimension(spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double keep = (1 - ramp) * spec.extrapolation;
    table[i] = table[i] / spec.factor * (1 - keep) + table[i] * keep;
  }
}

double yarn_attention_factor(const RopeSpec& spec) {
  if (spec.attention_factor) return *spec.attention_factor;
  const auto temperature = [&](double m) {
    return spec.factor <= 1 ? 1.0 : 0.1 * m * std::log(spec.factor) + 1;
  };
  if (spec.mscale != 0 && spec.mscale_all_dim != 0)
    return temperature(spec.mscale) / temperature(spec.mscale_all_dim);
  return temperature(1);
}

double longrope_attention_factor(const RopeSpec& spec) {
  if (spec.attention_factor) return *spec.attention_factor;
  if (spec.factor <= 1) return 1;
  return std::sqrt(1 + std::log(spec.factor) / std::log(static_cast<double>(spec.original_length)));
}

std::vector<float> rounded(const std::vector<double>& table, std::string_view where) {
  std::vector<float> result;
  result.reserve(table.size());
  for (const double value : table) {
    if (!std::isfinite(value) || value < 0) base::reject(where, "the RoPE table is not finite");
    result.push_back(static_cast<float>(value));
  }
  return result;
}

std::vector<float> divided(const std::vector<double>& table, const std::vector<double>& divisors,
                           std::string_view where) {
  std::vector<double> result = table;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] /= divisors[i];
  return rounded(result, where);
}

void check_range(double value, double above, std::string_view what, std::string_view where) {
  if (!(value > above) || !std::isfinite(value))
    base::reject(where, cat(what, " out of range"), cat(value), cat("a number above ", above));
}

void check(const RopeSpec& spec, std::string_view where) {
  if (spec.dims < 2 || spec.dims % 2 != 0)
    base::reject(where, "rotated dimensions", cat(spec.dims), "an even number");
  check_range(spec.base, 1, "base", where);
  if (spec.rule == RopeRule::none) return;
  check_range(spec.factor, 0, "factor", where);
  const bool needs_length = spec.rule != RopeRule::linear && spec.rule != RopeRule::ntk &&
                            spec.rule != RopeRule::proportional;
  if (needs_length && spec.original_length == 0)
    base::reject(where, cat("rule ", rope_rule_name(spec.rule), " needs the trained length"));
  if ((spec.rule == RopeRule::ntk || spec.rule == RopeRule::dynamic) && spec.dims < 4)
    base::reject(where, "NTK scaling needs at least 4 rotated dimensions", cat(spec.dims));
  if (spec.rule == RopeRule::bands) {
    check_range(spec.low_freq_factor, 0, "low_freq_factor", where);
    check_range(spec.high_freq_factor, spec.low_freq_factor, "high_freq_factor", where);
  }
  if (spec.rule == RopeRule::yarn) {
    if (spec.exponent_dims % 2 != 0)
      base::reject(where, "rotated dimensions under yarn", cat(spec.exponent_dims),
                   "an even number");
    check_range(spec.beta_slow, 0, "beta_slow", where);
    check_range(spec.beta_fast, 0, "beta_fast", where);
  }
  if (spec.attention_factor) check_range(*spec.attention_factor, 0, "attention_factor", where);
}

void check_divisors(const std::vector<double>& divisors, std::size_t expected,
                    std::string_view what, std::string_view where) {
  if (divisors.size() != expected)
    base::reject(where, cat("length of ", what), cat(divisors.size()), cat(expected));
  for (const double divisor : divisors) check_range(divisor, 0, what, where);
}

void build_longrope(const RopeSpec& spec, const std::vector<double>& table, std::string_view where,
                    contract::Rope& rope) {
  check_divisors(spec.short_factor, table.size(), "short_factor", where);
  check_divisors(spec.long_factor, table.size(), "long_factor", where);
  rope.inv_freq = divided(table, spec.short_factor, where);
  rope.mscale = longrope_attention_factor(spec);
  contract::RopeSwitch rule{};
  rule.kind = contract::RopeSwitchKind::longrope;
  rule.original_length = spec.original_length;
  rule.long_inv_freq = divided(table, spec.long_factor, where);
  rule.long_mscale = rope.mscale;
  rope.switch_rule = std::move(rule);
}

contract::RopeSwitch dynamic_switch(const RopeSpec& spec) {
  contract::RopeSwitch rule{};
  rule.kind = contract::RopeSwitchKind::dynamic_ntk;
  rule.original_length = spec.original_length;
  rule.base = spec.base;
  rule.factor = spec.factor;
  return rule;
}

}  // namespace

std::string_view rope_rule_name(RopeRule rule) {
  constexpr std::string_view kNames[] = {"default",  "linear", "ntk",      "dynamic",
                                         kBandsRule, "yarn",   "longrope", "proportional"};
  return kNames[static_cast<std::size_t>(rule)];
}

contract::Rope build_rope(const RopeSpec& spec, std::string_view where) {
  check(spec, where);
  contract::Rope rope{};
  rope.dims = spec.dims;
  rope.layout = spec.layout;
  rope.mscale = 1;
  rope.rule = rope_rule_name(spec.rule);
  rope.base = spec.base;
  std::vector<double> table =
      plain_table(spec, spec.rule == RopeRule::ntk ? ntk_base(spec) : spec.base);
  if (spec.rule == RopeRule::linear || spec.rule == RopeRule::proportional)
    for (double& inv : table) inv /= spec.factor;
  if (spec.rule == RopeRule::proportional)
    for (std::size_t i = spec.rotated; i < table.size(); ++i) table[i] = 0;
  if (spec.rule == RopeRule::bands) apply_bands(spec, table);
  if (spec.rule == RopeRule::yarn) {
    apply_yarn(spec, table);
    rope.mscale = yarn_attention_factor(spec);
  }
  if (!spec.divisors.empty()) {
    const std::vector<double> divisors(spec.divisors.begin(), spec.divisors.end());
    check_divisors(divisors, table.size(), "the tensor of RoPE divisors", where);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] /= divisors[i];
  }
  if (spec.rule == RopeRule::longrope) {
    build_longrope(spec, table, where, rope);
    return rope;
  }
  rope.inv_freq = rounded(table, where);
  if (spec.rule == RopeRule::dynamic) rope.switch_rule = dynamic_switch(spec);
  return rope;
}

}  // namespace quern::convert
