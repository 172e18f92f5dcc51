// A sequence with its cache blocks, and one way to attend it, for the attention tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/reference_attention.hpp"
#include "kernels/isas.hpp"

namespace quern::kernels {

inline constexpr CacheType kCacheTypes[] = {CacheType::f32,      CacheType::bf16,
                                            CacheType::f16,      CacheType::int8,
                                            CacheType::fp8_e4m3, CacheType::fp8_e5m2, CacheType::int4};

inline std::vector<const IsaInfo*> supported_isas() {
  std::vector<const IsaInfo*> found;
  for (const IsaInfo& isa : tested_isas())
    if (isa.supported) found.push_back(&isa);
  return found;
}

inline std::vector<float> normal_values(std::size_t n, unsigned seed, float sigma = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0.0f, sigma);
  std::vector<float> x(n);
  for (float& value : x) value = distribution(generator);
  return x;
}

struct AttentionCase {
  CacheType k_type = CacheType::f32, v_type = CacheType::f32;
  std::size_t d_k = 64, d_v = 64, n_keys = 0, group = 1;  // group: heads a KV head serves
  std::uint32_t window = 0, sinks = 0;                    // 0: none
  float scale = 0.125f, softcap = 0.0f;
  bool alibi = false, alibi_before_scale = false, sink_logits = false, bias = false;
  bool alibi_bf16 = false;
};

// K, V and Q of n_keys tokens; blocks filled from `kernels`, every byte not written is a NaN
// pattern.
class AttentionSequence {
 public:
  AttentionSequence(const AttentionCase& c, const Kernels& kernels)
      : case_(c),
        layout_(make_cache_layout(c.k_type, c.v_type, c.d_k, c.d_v)),
        kernels_(kernels),
        k_(normal_values(c.n_keys * c.d_k, 1)),
        v_(normal_values(c.n_keys * c.d_v, 2)),
        q_(normal_values(c.n_keys * c.group * c.d_k, 3, 2.0f)) {
    const std::size_t n_tiles = (c.n_keys + kTileTokens - 1) / kTileTokens;
    blocks_ = base::Buffer<std::byte>(n_tiles * kTileBlocks * layout_.block_bytes);
    std::memset(blocks_.data(), 0xff, blocks_.size());
  }

  const CacheLayout& layout() const { return layout_; }
  std::vector<float>& k() { return k_; }
  std::vector<float>& v() { return v_; }
  std::vector<float>& q() { return q_; }
  std::byte* block_of(std::size_t key) {
    return blocks_.data() + key / kBlockTokens * layout_.block_bytes;
  }
  std::vector<std::byte> bytes() const { return {blocks_.data(), blocks_.data() + blocks_.size()}; }

  void store(std::size_t first, std::size_t end) {
    for (std::size_t t = first; t < end; ++t)
      kernels_.store_kv(layout_, &k_[t * case_.d_k], &v_[t * case_.d_v], block_of(t),
                        t % kBlockTokens);
  }

  // Outputs [tokens * group, d_v] of tokens [first, end), taken together, causal.
  std::vector<float> attend(std::size_t first, std::size_t end) {
    const std::size_t n = (end - first) * case_.group, stride = (case_.d_v + 15) / 16 * 16;
    std::vector<float> max(n, -std::numeric_limits<float>::infinity()), sum(n, 0.0f),
        o(n * stride, 0.0f);
    base::Buffer<float> scratch(attend_scratch_floats(n, layout_));
    std::vector<float> slopes(n);
    std::vector<std::uint32_t> begins(n), ends(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t token = first + i / case_.group;
      ends[i] = static_cast<std::uint32_t>(token + 1);
      begins[i] = begin_of(token);
      slopes[i] = slope_of(i % case_.group);
    }
    std::vector<float> biases(case_.bias ? n * kTileTokens : 0);
    std::vector<const float*> bias(n);
    const std::vector<float> q = stored_queries(kernels_, layout_, &q_[first * case_.group * case_.d_k], n);
    for (std::size_t tile = 0; tile * kTileTokens < end; ++tile) {
      for (std::size_t i = 0; i < n && case_.bias; ++i) {
        bias[i] = &biases[i * kTileTokens];
        for (std::size_t key = 0; key < kTileTokens; ++key)
          biases[i * kTileTokens + key] =
              bias_of(first + i / case_.group, i % case_.group, tile * kTileTokens + key);
      }
      std::vector<const std::byte*> blocks;
      for (std::size_t b = 0; b < kTileBlocks && tile * kTileTokens + b * kBlockTokens < end; ++b)
        blocks.push_back(block_of(tile * kTileTokens + b * kBlockTokens));
      std::vector<const std::byte*> next;  // of no effect: every other call has them
      if (n % 2 == 0)
        for (std::size_t key = (tile + 1) * kTileTokens; key < end && next.size() < kTileBlocks; key += kBlockTokens)
          next.push_back(block_of(key));
      kernels_.attend({&layout_,
                       blocks.data(),
                       blocks.size(),
                       tile * kTileTokens,
                       n,
                       q.data(),
                       query_floats(case_.d_k),
                       begins.data(),
                       ends.data(),
                       case_.sinks,
                       case_.scale,
                       case_.softcap,
                       case_.alibi ? slopes.data() : nullptr,
                       case_.alibi_before_scale,
                       case_.bias ? bias.data() : nullptr,
                       {max.data(), sum.data(), o.data(), stride},
                       scratch.data(),
                       nullptr,
                       case_.alibi_bf16,
                       next.data(),
                       next.size()});
    }
    std::vector<float> logits(n), output(n * case_.d_v);
    for (std::size_t i = 0; i < n; ++i) logits[i] = sink_of(i % case_.group);
    kernels_.finish_attention({max.data(), sum.data(), o.data(), stride}, n, case_.d_v,
                              output.data(), case_.d_v,
                              case_.sink_logits ? logits.data() : nullptr);
    return output;
  }

  struct Wanted {
    std::vector<double> output;
    double slack;  // of a code that rounds the other way
  };
  // Output of one row from the values the (filled) cache holds, in float64.
  Wanted reference(std::size_t token, std::size_t head) {
    for (std::size_t t = n_held_; t < case_.n_keys; ++t, ++n_held_) {
      reference_load_kv(layout_, block_of(t), t % kBlockTokens, &held_k_[t * case_.d_k],
                        &held_v_[t * case_.d_v]);
      reference_round_kv(layout_, &held_k_[t * case_.d_k], &held_v_[t * case_.d_v]);
      v_scale_.push_back(reference_v_scale(layout_, block_of(t), t % kBlockTokens));
    }
    const float sink = sink_of(head);
    std::vector<double> output(case_.d_v);
    std::vector<float> bias(case_.n_keys);
    for (std::size_t key = 0; key < case_.n_keys; ++key) bias[key] = bias_of(token, head, key);
    const std::vector<float> q = query(token, head);
    const double slack = reference_attention(
        {q.data(), held_k_.data(), held_v_.data(), case_.d_k,
         case_.d_v, begin_of(token), token + 1, case_.sinks, static_cast<double>(case_.scale),
         static_cast<double>(case_.softcap),
         case_.alibi ? static_cast<double>(slope_of(head)) : 0.0, case_.alibi_before_scale,
         case_.sink_logits ? &sink : nullptr, case_.bias ? bias.data() : nullptr,
         case_.alibi_bf16, cache_has_scales(case_.v_type) ? v_scale_.data() : nullptr, reference_weights(layout_)},
        output.data());
    return {output, slack};
  }

 private:
  std::vector<float> query(std::size_t token, std::size_t head) const {
    return reference_query(kernels_, layout_, &q_[(token * case_.group + head) * case_.d_k]);
  }
  std::uint32_t begin_of(std::size_t token) const {
    const auto end = static_cast<std::uint32_t>(token + 1);
    return case_.window != 0 && end > case_.window ? end - case_.window : 0u;
  }
  static float bias_of(std::size_t token, std::size_t head, std::size_t key) {
    return static_cast<float>((7 * token + 5 * head + 3 * key) % 17) / 8.0f - 1.0f;
  }
  static float slope_of(std::size_t head) { return 0.25f / static_cast<float>(head + 1); }
  static float sink_of(std::size_t head) { return 1.5f - static_cast<float>(head); }

  AttentionCase case_;
  CacheLayout layout_;
  const Kernels& kernels_;
  std::vector<float> k_, v_, q_, held_k_ = k_, held_v_ = v_, v_scale_;
  std::size_t n_held_ = 0;
  base::Buffer<std::byte> blocks_;
};

inline std::string describe(const AttentionCase& c) {
  return "K type " + std::to_string(static_cast<int>(c.k_type)) + " V type " +
         std::to_string(static_cast<int>(c.v_type)) + " d_k " + std::to_string(c.d_k) + " d_v " +
         std::to_string(c.d_v) + " keys " + std::to_string(c.n_keys) + " group " +
         std::to_string(c.group) + " window " + std::to_string(c.window) + " sinks " +
         std::to_string(c.sinks);
}

}  // namespace quern::kernels
