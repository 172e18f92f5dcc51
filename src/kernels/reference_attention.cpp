#include "kernels/reference_attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/small_float.hpp"

namespace quern::kernels {

namespace {

float to_bf16(float x) {
  return base::bf16_to_float(base::float_to_bf16(x));
}

double alibi_bias(const ReferenceQuery& query, std::size_t key) {
  if (!query.alibi_bf16) return query.alibi * static_cast<double>(key);
  return double{to_bf16(static_cast<float>(query.alibi) * to_bf16(static_cast<float>(key)))};
}

double score(const ReferenceQuery& query, std::size_t key) {
  double dot = 0.0;
  for (std::size_t d = 0; d < query.d_k; ++d)
    dot += static_cast<double>(query.q[d]) * static_cast<double>(query.k[key * query.d_k + d]);
  const double bias = alibi_bias(query, key);
  if (query.alibi_before_scale) dot += bias;
  dot *= query.scale;
  if (query.softcap != 0.0) dot = query.softcap * std::tanh(dot / query.softcap);
  if (!query.alibi_before_scale) dot += bias;
  return query.bias == nullptr ? dot : dot + static_cast<double>(query.bias[key]);
}

float load_value(CacheType type, const std::byte* p) {
  std::uint32_t code = 0;
  std::memcpy(&code, p, cache_value_bits(type) / 8);
  switch (type) {
    case CacheType::f32:
      return std::bit_cast<float>(code);
    case CacheType::bf16:
      return base::bf16_to_float(static_cast<base::Bf16>(code));
    case CacheType::f16:
      return base::f16_to_float(static_cast<base::F16>(code));
    case CacheType::int8:
      return static_cast<float>(static_cast<std::int8_t>(code));
    case CacheType::fp8_e4m3:
      return base::f8_e4m3_to_float(static_cast<base::F8>(code));
    case CacheType::fp8_e5m2:
      return base::f8_e5m2_to_float(static_cast<base::F8>(code));
    case CacheType::int4:
      break;  // load_int4_k, load_int4_v
  }
  return 0.0f;
}

float load_scale(CacheType type, const std::byte* scales, std::size_t slot) {
  float scale = 1.0f;
  if (cache_has_scales(type)) std::memcpy(&scale, scales + slot * sizeof(float), sizeof(float));
  return scale;
}

}  // namespace

namespace {

// softmax(scores) of one query, keys ascending, before the division by `sum`.
struct Weights {
  std::vector<std::size_t> keys;
  std::vector<double> scores, weight;
  double top = 0, sum = 0;
};

Weights softmax_weights(const ReferenceQuery& query) {
  Weights w;
  for (std::size_t key = 0; key < query.end; ++key)
    if (key >= query.begin || key < query.sinks) w.keys.push_back(key);
  if (w.keys.empty()) return w;
  for (std::size_t key : w.keys) w.scores.push_back(score(query, key));
  w.top = *std::max_element(w.scores.begin(), w.scores.end());
  if (query.sink_logit != nullptr) {
    w.top = std::max(w.top, static_cast<double>(*query.sink_logit));
    w.sum = std::exp(static_cast<double>(*query.sink_logit) - w.top);
  }
  for (double s : w.scores) {
    w.weight.push_back(std::exp(s - w.top));
    w.sum += w.weight.back();
  }
  return w;
}

// Weights [first, end), of one block of keys, to whole codes of their largest product with a value's scale. Returns
// what one code is worth, times the largest code of a value.
double round_block(const ReferenceQuery& query, Weights& w, std::size_t first, std::size_t end) {
  constexpr double kCodes = 249, kLargestValue = 127;  // as kernels/ops/attention_shares.hpp has them
  double largest = 0;
  for (std::size_t i = first; i < end; ++i)
    largest = std::max(largest, w.weight[i] * static_cast<double>(query.v_scale[w.keys[i]]));
  const double unit = largest / kCodes;
  for (std::size_t i = first; i < end; ++i) {
    const auto scale = static_cast<double>(query.v_scale[w.keys[i]]);
    w.weight[i] = scale == 0 || unit == 0 ? 0 : std::nearbyint(w.weight[i] * scale / unit) * unit / scale;
  }
  return unit * kLargestValue;
}

// Weights [first, end), of one tile of keys, to bf16 numbers beside its largest score. Returns the largest output that
// the distance of a weight to its neighbour gives.
double round_tile(const ReferenceQuery& query, Weights& w, std::size_t first, std::size_t end) {
  constexpr double kNext = 0x1p-7;  // relative
  const double top = *std::max_element(w.scores.data() + first, w.scores.data() + end);
  const double unit = std::exp(top - w.top);
  double slack = 0;
  for (std::size_t i = first; i < end; ++i) {
    const double scale = query.v_scale == nullptr ? 1.0 : static_cast<double>(query.v_scale[w.keys[i]]);
    if (scale != 0) w.weight[i] = double{to_bf16(static_cast<float>(std::exp(w.scores[i] - top) * scale))} / scale * unit;
    const float* v = query.v + w.keys[i] * query.d_v;
    for (std::size_t d = 0; d < query.d_v; ++d)
      slack = std::max(slack, kNext * w.weight[i] * std::fabs(static_cast<double>(v[d])));
  }
  return slack;
}

// All weights, by blocks or tiles. Returns the largest output that a weight's next number is away.
double round_weights(const ReferenceQuery& query, Weights& w) {
  if (query.weights == ReferenceQuery::Weights::exact) return 0;
  const bool codes = query.weights == ReferenceQuery::Weights::codes;
  const std::size_t n = codes ? kBlockTokens : kTileTokens;
  double slack = 0;
  for (std::size_t i = 0, end = 0; i < w.keys.size(); i = end) {
    while (end < w.keys.size() && w.keys[end] / n == w.keys[i] / n) ++end;
    slack = std::max(slack, codes ? round_block(query, w, i, end) : round_tile(query, w, i, end));
  }
  return slack;
}

}  // namespace

double reference_attention(const ReferenceQuery& query, double* output) {
  std::fill(output, output + query.d_v, 0.0);
  Weights w = softmax_weights(query);
  if (w.keys.empty()) return 0;
  const double slack = round_weights(query, w);
  for (std::size_t i = 0; i < w.keys.size(); ++i)
    for (std::size_t d = 0; d < query.d_v; ++d)
      output[d] += w.weight[i] * static_cast<double>(query.v[w.keys[i] * query.d_v + d]);
  for (std::size_t d = 0; d < query.d_v; ++d) output[d] /= w.sum;
  return slack / w.sum;
}

namespace {

// Value d of K's lines: [slot / 16][lines][slot % 16][values per lane], the row beginning at `first_line`.
float load_k(const CacheLayout& layout, const std::byte* block, std::size_t slot, std::size_t lines,
             std::size_t d) {
  const std::size_t bytes = cache_value_bits(layout.k_type) / 8, lane = 4 / bytes;
  const std::size_t index = (((slot / 16) * lines + d / lane) * 16 + slot % 16) * lane + d % lane;
  return load_value(layout.k_type, block + index * bytes);
}

float int4_value(std::uint32_t code, const std::byte* scales, std::size_t d, std::size_t slot) {
  std::uint16_t scale;
  std::memcpy(&scale, scales + (d / kCacheGroup * kBlockTokens + slot) * 2, 2);
  const int value = static_cast<int>(code & 15u);
  return static_cast<float>(value < 8 ? value : value - 16) * base::f16_to_float(scale);
}

// The key before its rotation: a Hadamard matrix of n rows is its own inverse but for 1 / n.
void load_int4_k(const CacheLayout& layout, const std::byte* block, std::size_t slot, float* k) {
  const std::size_t lines = cache_lines(CacheType::int4, layout.d_k), n = hadamard_block(layout.d_k);
  std::vector<double> stored(layout.d_k);
  for (std::size_t d = 0; d < layout.d_k; ++d) {
    std::uint32_t word;
    std::memcpy(&word, block + (((slot / 16) * lines + d / 8) * 16 + slot % 16) * 4, 4);
    stored[d] = static_cast<double>(int4_value(word >> (4 * (d % 8)), block + layout.k_scale_offset, d, slot));
  }
  for (std::size_t d = 0; d < layout.d_k; ++d) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double x = stored[d / n * n + i];
      sum += std::popcount(i & (d % n)) % 2 == 0 ? x : -x;
    }
    k[d] = static_cast<float>(sum / static_cast<double>(n));
  }
}

void load_int4_v(const CacheLayout& layout, const std::byte* block, std::size_t slot, float* v) {
  for (std::size_t d = 0; d < layout.d_v; ++d) {
    const std::size_t line = (slot / 4) * cache_groups(layout.d_v) + d / kCacheGroup;
    const auto byte = std::to_integer<std::uint32_t>(
        block[layout.v_offset + line * 64 + (d % 16) * 4 + slot % 4]);
    v[d] = int4_value(d % kCacheGroup < 16 ? byte : byte >> 4, block + layout.v_scale_offset, d, slot);
  }
}

}  // namespace

namespace {

// q [n] -> codes times their scale.
void round_part(const Kernels& kernels, float* q, std::size_t n) {
  std::vector<std::int8_t> codes((n + 63) / 64 * 64);
  float scale = 0;
  std::int32_t sum = 0;
  kernels.quantize(q, n, 1, n, n, {codes.data(), &scale, &sum, codes.size(), 1});
  for (std::size_t d = 0; d < n; ++d) q[d] = scale * static_cast<float>(codes[d]);
}

}  // namespace

std::vector<float> reference_query(const Kernels& kernels, const CacheLayout& layout, const float* q) {
  std::vector<float> seen(q, q + layout.d_k);
  if (cache_has_bf16_products(layout, layout.k_type))
    for (float& x : seen) x = to_bf16(x);
  if (layout.k_type != CacheType::int8) return seen;
  const std::size_t first = layout.d_k - layout.d_rope;
  round_part(kernels, seen.data(), first);
  if (layout.d_rope != 0) round_part(kernels, seen.data() + first, layout.d_rope);
  return seen;
}

std::vector<float> stored_queries(const Kernels& kernels, const CacheLayout& layout, const float* q, std::size_t n) {
  std::vector<float> rows(n * query_floats(layout.d_k));
  for (std::size_t i = 0; i < n; ++i)
    kernels.store_query(layout, q + i * layout.d_k, rows.data() + i * query_floats(layout.d_k));
  return rows;
}

ReferenceQuery::Weights reference_weights(const CacheLayout& layout) {
  if (layout.v_type == CacheType::int8) return ReferenceQuery::Weights::codes;
  return cache_has_bf16_products(layout, layout.v_type) ? ReferenceQuery::Weights::bf16 : ReferenceQuery::Weights::exact;
}

void reference_round_kv(const CacheLayout& layout, float* k, float* v) {
  const auto rounds = [&](CacheType type) { return type == CacheType::f16 && cache_has_bf16_products(layout, type); };
  for (std::size_t d = 0; d < layout.d_k && rounds(layout.k_type); ++d) k[d] = to_bf16(k[d]);
  for (std::size_t d = 0; d < layout.d_v && rounds(layout.v_type); ++d) v[d] = to_bf16(v[d]);
}

float reference_v_scale(const CacheLayout& layout, const std::byte* block, std::size_t slot) {
  return load_scale(layout.v_type, block + layout.v_scale_offset, slot);
}

void reference_load_kv(const CacheLayout& layout, const std::byte* block, std::size_t slot,
                       float* k, float* v) {
  const bool latent = layout.d_rope != 0;
  const std::size_t k_width = latent ? layout.d_rope : layout.d_k;
  const std::size_t lane = cache_lane_values(layout.k_type);
  const std::size_t v_lines = latent ? cache_lines(layout.k_type, layout.d_v) : 0;
  const std::size_t lines = v_lines + cache_lines(layout.k_type, k_width);
  const float k_scale = load_scale(layout.k_type, block + layout.k_scale_offset, slot);
  for (std::size_t d = 0; d < k_width && layout.k_type != CacheType::int4; ++d)
    k[d] = load_k(layout, block, slot, lines, v_lines * lane + d) * k_scale;
  if (layout.k_type == CacheType::int4) load_int4_k(layout, block, slot, k);
  if (layout.v_type == CacheType::int4) return load_int4_v(layout, block, slot, v);
  const std::size_t v_bytes = cache_value_bits(layout.v_type) / 8, v_lane = 4 / v_bytes;
  const std::size_t v_chunks = (layout.d_v + 15) / 16;
  const float v_scale = load_scale(layout.v_type, block + layout.v_scale_offset, slot);
  for (std::size_t d = 0; d < layout.d_v; ++d) {
    // [slot / v_lane][d / 16][d % 16][slot % v_lane]
    const std::size_t index =
        (((slot / v_lane) * v_chunks + d / 16) * 16 + d % 16) * v_lane + slot % v_lane;
    v[d] = latent ? load_k(layout, block, slot, lines, d) * v_scale
                  : load_value(layout.v_type, block + layout.v_offset + index * v_bytes) * v_scale;
  }
}

}  // namespace quern::kernels
