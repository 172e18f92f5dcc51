// Numbers of the contract that a rule gives rather than a configuration: slopes and bucket starts.
// Not here: RoPE tables (rope.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"

namespace quern::convert {

// ALiBi slopes (Press et al. 2022) for 2^-max_bias as the smallest of a power of two of heads; the
// other numbers of heads take every other slope of the next power first or last.
enum class SlopeOrder { powers_first, interleaved };
std::vector<float> alibi_slopes(std::size_t n_heads, double max_bias, SlopeOrder order);

// Smallest distance of each of n buckets: the lower half exact, the rest logarithmic up to
// max_distance, decided in float32 as the reference implementation does.
std::vector<std::uint32_t> bucket_starts(std::size_t n_buckets, std::size_t max_distance,
                                         std::string_view where);

// Replaces the rules in an attention op: "alibi": {"rule": ...} and "relative_bias": {"buckets":
// ...}.
void derive_attention(base::Json& op, std::string_view where);

// Replaces the rule of a classifier's outputs: "labels": {"names": id2label or null, "count": n} becomes
// the list of n names; an output without one is LABEL_i, as the reference implementation names it.
void derive_labels(base::Json& head, std::string_view where);

}  // namespace quern::convert
