// Attention in floats: of f32 and int4 caches and latent rows, and the scores alone of any type (score_keys).
// Not here: int8 (attention_integer.hpp), floats of 16 and 8 bits (attention_pairs.hpp) under a softmax.
//
// The two products of attention over one half block of 16 keys, for several query rows at once:
// scores (q k) and outputs (p v). A row's result has one order of operations - dimensions ascending
// in the scores, keys ascending in the outputs - whatever number of rows is taken together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/cache_codes.hpp"
#include "kernels/ops/cache_int4.hpp"

namespace quern::kernels {

template <class P>
struct AttentionTile {
  using V16 = typename P::V16;
  using Codes = CacheCodes<P>;

  // Register blocking only: 32 registers of sixteen lanes, or sixteen of eight.
  static constexpr bool kWide = alignof(V16) == 64;
  static constexpr std::size_t kRows = 4;  // rows taken together

  // K of a block and the rows to multiply it with.
  struct Scores {
    const float* k;      // [2 half blocks][>= d_k][16 tokens]
    std::size_t k_step;  // floats from one half block to the next
    std::size_t d_k;
    const float* q;  // [rows, q_stride]
    std::size_t q_stride;
    float* out;  // [rows, kTileTokens]
  };

  // K of a block as floats: the cache's own memory if that is its form, else `buffer`.
  static Scores expand_k(const CacheLayout& layout, const std::byte* block, float* buffer) {
    if (layout.d_rope != 0) return expand_latent(layout, block, buffer);
    const std::size_t per_word = cache_lane_values(layout.k_type);
    const std::size_t n_lines = cache_lines(layout.k_type, layout.d_k);
    Scores scores{buffer, n_lines * per_word * 16, layout.d_k, nullptr, 0, nullptr};
    if (layout.k_type == CacheType::f32)
      scores.k = reinterpret_cast<const float*>(block);
    else if (layout.k_type == CacheType::int4)
      CacheInt4<P>::expand_k(layout, block, buffer);
    else
      expand_lines(layout.k_type, block, 2 * n_lines, 1, buffer);
    return scores;
  }

  // V of a half block: [16 tokens, d_v padded to 16]. latent_buffer: of latent rows only, half of
  // expanded_k_floats().
  static const float* expand_v(const CacheLayout& layout, const std::byte* block, std::size_t half,
                               float* buffer, float* latent_buffer) {
    if (layout.d_rope != 0) {
      latent_half(layout, block, half, layout.d_v, latent_buffer);
      transpose(latent_buffer, layout.d_v, buffer, (layout.d_v + 15) / 16 * 16);
      return buffer;
    }
    if (layout.v_type == CacheType::int4) {
      CacheInt4<P>::expand_v(layout, block, half, buffer);
      return buffer;
    }
    const std::byte* rows = block + layout.v_offset + half * kHalfBlock * ((layout.d_v + 15) / 16) * 64;
    return reinterpret_cast<const float*>(rows);  // f32
  }

  // The 32 rows of a block of latent rows: out [32, d_k], `stride` floats apart. buffer: expanded_k_floats().
  static void latent_rows(const CacheLayout& layout, const std::byte* block, float* out,
                          std::size_t stride, float* buffer) {
    for (std::size_t half = 0; half < 2; ++half) {
      latent_half(layout, block, half, layout.d_k, buffer);
      for (std::size_t token = 0; token < kHalfBlock; ++token)
        for (std::size_t d = 0; d < layout.d_k; ++d)
          out[(half * kHalfBlock + token) * stride + d] = buffer[d * 16 + token];
    }
  }

  // The scores of n <= kRows rows and a block's 32 keys. Both half blocks at once where registers
  // allow: eight sums hide the latency of fma.
  static void dot_rows(const Scores& a, std::size_t n) {
    switch (n) {
      case 1:
        dot_block<1, 2>(a);
        break;
      case 2:
        dot_block<2, 2>(a);
        break;
      case 3:
        dot_block<3, kWide ? 2 : 1>(a);
        break;
      default:
        dot_block<4, kWide ? 2 : 1>(a);
        break;
    }
  }

  // The rows' outputs [width] += sum over the 16 keys of p[r * p_stride + key] * v[key].
  struct Values {
    const float* v;  // [16 keys, width]
    std::size_t width;
    const float* p;  // [rows, p_stride]
    std::size_t p_stride;
    float* out;  // [rows, width]
  };
  static void add_values(const Values& a, std::size_t n) {  // n <= kRows rows
    switch (n) {
      case 1:
        add_rows<1, 4>(a);
        break;
      case 2:
        add_rows<2, kWide ? 4 : 2>(a);
        break;
      case 3:
        add_rows<3, kWide ? 4 : 1>(a);
        break;
      default:
        add_rows<4, kWide ? 4 : 1>(a);
        break;
    }
  }

  // The same for the first row and those keys only whose bit is set: the others may hold anything.
  static void add_values_of(const Values& a, std::uint32_t keys) {
    std::size_t column = 0;
    for (; column + 64 <= a.width; column += 64) add_masked<4>(a, column, keys);
    for (; column < a.width; column += 16) add_masked<1>(a, column, keys);
  }

 private:
  static void expand_lines(CacheType type, const std::byte* lines, std::size_t groups,
                           std::size_t chunks, float* out) {
    switch (type) {
      case CacheType::f32:
        return expand<CacheType::f32>(lines, groups, chunks, out);
      case CacheType::bf16:
        return expand<CacheType::bf16>(lines, groups, chunks, out);
      case CacheType::f16:
        return expand<CacheType::f16>(lines, groups, chunks, out);
      case CacheType::int8:
        return expand<CacheType::int8>(lines, groups, chunks, out);
      case CacheType::fp8_e4m3:
        return expand<CacheType::fp8_e4m3>(lines, groups, chunks, out);
      case CacheType::fp8_e5m2:
        return expand<CacheType::fp8_e5m2>(lines, groups, chunks, out);
      case CacheType::int4:
        return;  // cache_int4.hpp
    }
  }

  // ---- latent rows: scales are applied here, once for all the heads that read a block ----
  static Scores expand_latent(const CacheLayout& layout, const std::byte* block, float* buffer) {
    const std::size_t step = expanded_k_floats(layout) / 2;
    Scores scores{buffer, step, layout.d_k, nullptr, 0, nullptr};
    if (layout.k_type == CacheType::f32) {
      scores.k = reinterpret_cast<const float*>(block);
      scores.k_step = layout.d_k * 16;
      return scores;
    }
    for (std::size_t half = 0; half < 2; ++half)
      latent_half(layout, block, half, layout.d_k, buffer + half * step);
    return scores;
  }

  // The first `width` dimensions (d_v: the latent; d_k: the rotated key too) of a half block: [width][16].
  static void latent_half(const CacheLayout& layout, const std::byte* block, std::size_t half,
                          std::size_t width, float* out) {
    const std::size_t latent_lines = cache_lines(layout.k_type, layout.d_v);
    const std::size_t rope_lines = cache_lines(layout.k_type, layout.d_rope);
    const std::byte* lines = block + half * (latent_lines + rope_lines) * 64;
    expand_lines(layout.k_type, lines, latent_lines, 1, out);
    scale_rows(layout, block + layout.v_scale_offset, half, layout.d_v, out);
    if (width == layout.d_v) return;
    float* key = out + layout.d_v * 16;  // over the padding of the latent's last line
    expand_lines(layout.k_type, lines + latent_lines * 64, rope_lines, 1, key);
    scale_rows(layout, block + layout.k_scale_offset, half, layout.d_rope, key);
  }

  static void scale_rows(const CacheLayout& layout, const std::byte* scales, std::size_t half,
                         std::size_t n_rows, float* rows) {
    if (!cache_has_scales(layout.k_type)) return;
    const V16 scale = P::load(reinterpret_cast<const float*>(scales) + half * kHalfBlock);
    for (std::size_t d = 0; d < n_rows; ++d)
      P::store(rows + d * 16, P::mul(P::load(rows + d * 16), scale));
  }

  // [width][16 tokens] -> [16 tokens][padded], zeros past width.
  static void transpose(const float* in, std::size_t width, float* __restrict out,
                        std::size_t padded) {
    for (std::size_t d = 0; d < padded; d += 16)
      for (std::size_t token = 0; token < kHalfBlock; ++token)
        for (std::size_t j = 0; j < 16; ++j)
          out[token * padded + d + j] = d + j < width ? in[(d + j) * 16 + token] : 0.0f;
  }

  // Lines [groups, chunks] of per_word values a lane -> rows [groups * per_word, chunks * 16].
  template <CacheType kType>
  static void expand(const std::byte* lines, std::size_t groups, std::size_t chunks, float* out) {
    constexpr std::size_t kPerWord = cache_lane_values(kType);
    const std::size_t stride = chunks * 16;
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t c = 0; c < chunks; ++c, lines += 64)
        Codes::template expand_line<kType>(lines, out + g * kPerWord * stride + c * 16, stride);
  }

  template <std::size_t kN, std::size_t kHalves>
  static void dot_block(const Scores& a) {
    for (std::size_t half = 0; half < 2; half += kHalves) dot<kN, kHalves>(a, half);
  }

  // out[r][16 half + lane] = sum over d of q[r][d] * k[half][d][lane], kHalves half blocks from
  // `first` on.
  template <std::size_t kN, std::size_t kHalves>
  static void dot(const Scores& a, std::size_t first) {
    V16 sum[kN][kHalves];
    for (std::size_t r = 0; r < kN; ++r)
      for (std::size_t h = 0; h < kHalves; ++h) sum[r][h] = P::zero();
    const float* k = a.k + first * a.k_step;
    std::size_t d = 0;
    do {  // d_k > 0; without the empty case the sums never touch memory
      V16 column[kHalves];
      for (std::size_t h = 0; h < kHalves; ++h) column[h] = P::load(k + h * a.k_step + 16 * d);
      for (std::size_t r = 0; r < kN; ++r) {
        const V16 x = P::set(a.q[r * a.q_stride + d]);
        for (std::size_t h = 0; h < kHalves; ++h) sum[r][h] = P::fma(x, column[h], sum[r][h]);
      }
    } while (++d < a.d_k);
    for (std::size_t r = 0; r < kN; ++r)
      for (std::size_t h = 0; h < kHalves; ++h)
        P::store(a.out + r * kTileTokens + (first + h) * kHalfBlock, sum[r][h]);
  }

  template <std::size_t kN, std::size_t kChunks>
  static void add_rows(const Values& a) {
    std::size_t column = 0;
    for (; column + 16 * kChunks <= a.width; column += 16 * kChunks)
      add_columns<kN, kChunks>(a, column);
    for (; column < a.width; column += 16) add_columns<kN, 1>(a, column);
  }

  template <std::size_t kN, std::size_t kChunks>
  static void add_columns(const Values& a, std::size_t column) {
    V16 sum[kN][kChunks];
    for (std::size_t r = 0; r < kN; ++r)
      for (std::size_t c = 0; c < kChunks; ++c)
        sum[r][c] = P::load(a.out + r * a.width + column + 16 * c);
    for (std::size_t key = 0; key < kHalfBlock; ++key) {
      V16 value[kChunks];
      for (std::size_t c = 0; c < kChunks; ++c)
        value[c] = P::load(a.v + key * a.width + column + 16 * c);
      for (std::size_t r = 0; r < kN; ++r) {
        const V16 weight = P::set(a.p[r * a.p_stride + key]);
        for (std::size_t c = 0; c < kChunks; ++c) sum[r][c] = P::fma(weight, value[c], sum[r][c]);
      }
    }
    for (std::size_t r = 0; r < kN; ++r)
      for (std::size_t c = 0; c < kChunks; ++c)
        P::store(a.out + r * a.width + column + 16 * c, sum[r][c]);
  }

  template <std::size_t kChunks>
  static void add_masked(const Values& a, std::size_t column, std::uint32_t keys) {
    V16 sum[kChunks];
    for (std::size_t c = 0; c < kChunks; ++c) sum[c] = P::load(a.out + column + 16 * c);
    for (std::uint32_t rest = keys; rest != 0; rest &= rest - 1) {
      const auto key = static_cast<std::size_t>(__builtin_ctz(rest));
      const V16 weight = P::set(a.p[key]);
      const float* row = a.v + key * a.width + column;
      for (std::size_t c = 0; c < kChunks; ++c)
        sum[c] = P::fma(weight, P::load(row + 16 * c), sum[c]);
    }
    for (std::size_t c = 0; c < kChunks; ++c) P::store(a.out + column + 16 * c, sum[c]);
  }
};

}  // namespace quern::kernels
