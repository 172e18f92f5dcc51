#include "convert/derive.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/small_float.hpp"
#include "base/strings.hpp"
#include "contract/limits.hpp"
#include "contract/vocabulary.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxBuckets = 4096;
constexpr base::EnumName<SlopeOrder> kSlopeOrders[] = {{"power2", SlopeOrder::powers_first},
                                                       {"interleaved", SlopeOrder::interleaved}};

// Slope i (from 1) of n heads, n a power of two.
float slope(std::size_t i, std::size_t n, double max_bias) {
  return static_cast<float>(std::exp2(-max_bias * static_cast<double>(i) / static_cast<double>(n)));
}

Json slopes_of(const Json& rule, const Json& op, std::string_view where) {
  base::JsonObject object(rule, cat(where, ".alibi"));
  base::JsonObject attention(op, std::string(where));
  const std::size_t n_heads = attention.get_size("n_heads", 1, contract::kMaxWidth);
  const SlopeOrder order = object.get_enum("rule", kSlopeOrders);
  const double max_bias = object.has("max_bias") ? object.get_double("max_bias") : 8;
  if (!(max_bias > 0 && max_bias <= 1024))
    base::reject(object.path_of("max_bias"), "out of range", cat(max_bias), "0 .. 1024");
  const bool before_scale = object.get_bool("before_scale");
  const double times = object.has("times") ? object.get_double("times") : 1;
  const std::optional<contract::BiasRound> round =
      object.has("round") && !object.is_null("round")
          ? std::optional(object.get_enum("round", contract::kBiasRounds))
          : std::nullopt;
  object.finish();
  Json slopes = Json::array();
  for (float value : alibi_slopes(n_heads, max_bias, order)) {
    if (round) value = base::bf16_to_float(base::float_to_bf16(value));
    slopes.push_back(static_cast<float>(value * times));
  }
  return {{"slopes", std::move(slopes)},
          {"before_scale", before_scale},
          {"round", round ? Json(base::enum_name(*round, contract::kBiasRounds)) : Json(nullptr)}};
}

Json starts_of(const Json& rule, std::string_view where) {
  base::JsonObject object(rule, cat(where, ".relative_bias"));
  const bool bidirectional = object.get_bool("bidirectional");
  const std::size_t buckets = object.get_size("buckets", 2, kMaxBuckets);
  const std::size_t distance = object.get_size("max_distance", 2, contract::kMaxPositions);
  const bool per_layer = object.get_bool("per_layer");
  object.finish();
  if (bidirectional && buckets % 2 != 0)
    base::reject(object.path_of("buckets"), "both directions share them", cat(buckets),
                 "an even number");
  return {{"bidirectional", bidirectional},
          {"starts", bucket_starts(bidirectional ? buckets / 2 : buckets, distance, object.path())},
          {"per_layer", per_layer}};
}

}  // namespace

std::vector<float> alibi_slopes(std::size_t n_heads, double max_bias, SlopeOrder order) {
  const std::size_t below = std::bit_floor(n_heads), above = std::bit_ceil(n_heads);
  std::vector<float> slopes;
  if (order == SlopeOrder::powers_first || below == n_heads) {
    for (std::size_t i = 1; i <= below; ++i) slopes.push_back(slope(i, below, max_bias));
  } else {
    for (std::size_t i = 2; i <= above; i += 2) slopes.push_back(slope(i, above, max_bias));
  }
  for (std::size_t i = 1; slopes.size() < n_heads; i += 2)
    slopes.push_back(slope(i, above, max_bias));
  slopes.resize(n_heads);
  return slopes;
}

std::vector<std::uint32_t> bucket_starts(std::size_t n_buckets, std::size_t max_distance,
                                         std::string_view where) {
  const std::size_t exact = n_buckets / 2;
  if (exact == 0 || max_distance <= exact)
    base::reject(where, "max_distance", cat(max_distance), cat("above ", exact));
  std::vector<std::uint32_t> starts;
  for (std::size_t i = 0; i < exact; ++i) starts.push_back(static_cast<std::uint32_t>(i));
  const auto whole = static_cast<float>(exact);
  const auto range =
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto log_buckets = static_cast<float>(n_buckets - exact);
  for (std::size_t distance = exact; starts.size() < n_buckets; ++distance) {
    const auto log =
        static_cast<float>(std::log(static_cast<double>(static_cast<float>(distance) / whole)));
    const auto above = static_cast<std::size_t>(log / range * log_buckets);
    // A bucket that no distance falls into begins where the next one does.
    const std::size_t bucket = std::min(exact + above, n_buckets - 1);
    while (bucket >= starts.size()) starts.push_back(static_cast<std::uint32_t>(distance));
  }
  return starts;
}

void derive_attention(Json& op, std::string_view where) {
  if (!op.is_object()) return;
  if (op.contains("alibi") && op["alibi"].is_object() && op["alibi"].contains("rule"))
    op["alibi"] = slopes_of(op["alibi"], op, where);
  if (op.contains("relative_bias") && op["relative_bias"].is_object() &&
      op["relative_bias"].contains("buckets"))
    op["relative_bias"] = starts_of(op["relative_bias"], where);
}

void derive_labels(Json& head, std::string_view where) {
  if (!head.is_object() || !head.contains("labels") || !head["labels"].is_object()) return;
  base::JsonObject object(head["labels"], cat(where, ".labels"));
  const std::size_t count = object.get_size("count", 1, contract::kMaxLabels);
  const Json names = object.get("names");
  object.finish();
  Json labels = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = cat(i);
    const bool named = names.is_object() && names.contains(key) && names[key].is_string();
    labels.push_back(named ? names[key].get<std::string>() : cat("LABEL_", i));
  }
  head["labels"] = std::move(labels);
}

}  // namespace quern::convert
