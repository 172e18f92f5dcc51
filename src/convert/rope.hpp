// RoPE frequency tables: the scaling rules as formulas, finished into the contract's inv_freq.
// Not here: how a configuration spells them (rope_config.hpp).
//
// Sources of the formulas: position interpolation (Chen et al. 2023), NTK-aware and YaRN (Peng et
// al. 2023), LongRoPE (Ding et al. 2024), and the reference implementations of the checkpoints'
// publishers.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "contract/contract.hpp"

namespace quern::convert {

// bands: wavelengths above one bound are stretched, below another kept, between them blended.
// proportional: all dimensions count in the exponents, the first `rotated` frequencies turn.
enum class RopeRule { none, linear, ntk, dynamic, bands, yarn, longrope, proportional };
// A foreign key: configurations and the contract name that rule after the model it came with.
inline constexpr std::string_view kBandsRule = "llama3";
std::string_view rope_rule_name(RopeRule rule);  // "default" for none, as the contract spells it

// Everything a rule may need; each reads only its own part.
struct RopeSpec {
  std::size_t dims = 0;           // rotated dimensions of a head, even
  std::size_t exponent_dims = 0;  // width in the exponents; 0: dims
  std::size_t rotated = 0;        // proportional: frequencies that are not zero
  contract::RopeLayout layout = contract::RopeLayout::half;
  double base = 10000;  // theta
  RopeRule rule = RopeRule::none;
  double factor = 1;                // stretch of the context, all rules but none
  std::size_t original_length = 0;  // trained length: dynamic, bands, yarn, longrope
  double low_freq_factor = 1, high_freq_factor = 4;  // bands
  double beta_fast = 32, beta_slow = 1;    // yarn: rotations at which the ramp begins and ends
  bool truncate = true;                    // yarn: ramp ends on whole dimensions
  double extrapolation = 1;                // yarn: share of the unscaled angles below the ramp
  std::optional<double> attention_factor;  // factor of cosine and sine where the rule has one
  double mscale = 0, mscale_all_dim = 0;   // yarn: attention_factor as a ratio, 0 = not given
  std::vector<double> short_factor, long_factor;  // longrope: divisors per frequency
  std::vector<float> divisors;  // a finished table of divisors, applied after the rule
};

// The finished table. `where` names the place for values outside a rule's domain (input errors).
contract::Rope build_rope(const RopeSpec& spec, std::string_view where);

}  // namespace quern::convert
