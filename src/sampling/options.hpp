// What the samplers of one answer are told: names, numbers and defaults as people know
// them from other programs. Not here: rules of a checkpoint about tokens (token_rules.hpp), the samplers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern::sampling {

enum class SamplerKind {
  penalties,
  dry,
  top_n_sigma,
  top_k,
  typ_p,
  top_p,
  min_p,
  xtc,
  temperature,
};

// "penalties;dry;...;temperature": the order in which samplers work when nobody says another.
std::vector<SamplerKind> default_samplers();
// Names between ';' (with - or _, and the short forms people type: "temp", "typical", "nucleus").
// Usage errors name what is unknown or there twice.
std::vector<SamplerKind> samplers_by_name(std::string_view names);
// One letter each: e penalties, d dry, s top_n_sigma, k top_k, y typ_p, p top_p, m min_p, x xtc, t
// temperature.
std::vector<SamplerKind> samplers_by_letter(std::string_view letters);
std::string_view sampler_name(SamplerKind kind);

// A text that ends what DRY looks back over: a token of it, or one that begins with its end, and the
// tokens that must follow for it to be whole (dry_breakers.hpp).
struct DryBreaker {
  std::int32_t head;
  std::vector<std::int32_t> tail;
};

inline constexpr std::int64_t kWholeSequence = -1;  // of the *_last_n

struct SamplerOptions {
  std::vector<SamplerKind> samplers = default_samplers();
  std::uint64_t seed = 0;    // the same seed gives the same tokens
  std::size_t min_keep = 1;  // what top_p, typ_p, min_p and xtc leave at least

  double temperature = 0.8;  // <= 0: the best token
  double dynatemp_range = 0, dynatemp_exponent = 1;  // range 0: off

  std::size_t top_k = 40;                              // 0: off
  double top_p = 0.95, min_p = 0.05, typical_p = 1.0;  // 1, 0, 1: off
  double top_n_sigma = -1;                             // <= 0: off
  double xtc_probability = 0, xtc_threshold = 0.1;     // 0, or above 0.5: off

  double repeat_penalty = 1.0;  // 1: off
  double presence_penalty = 0, frequency_penalty = 0;
  std::int64_t repeat_last_n = 64;  // of the three; 0: off

  double dry_multiplier = 0;  // 0: off
  double dry_base = 1.75;     // below 1: off
  std::size_t dry_allowed_length = 2;
  std::int64_t dry_penalty_last_n = 64;  // 0: off
  std::vector<DryBreaker> dry_breakers;

  int mirostat = 0;  // 1 or 2: instead of all samplers but temperature
  double mirostat_ent = 5.0, mirostat_lr = 0.1;

  double adaptive_target = -1;  // below 0: off
  double adaptive_decay = 0.9;

  std::vector<std::pair<std::int32_t, float>> logit_bias;  // -infinity: never
};

// Usage errors for numbers without a meaning.
void check_options(const SamplerOptions& options);

}  // namespace quern::sampling
