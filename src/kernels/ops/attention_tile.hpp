// The two products of attention over one half block of 16 keys, for several query rows at once: scores
// (q k) and outputs (p v). A row's result has one order of operations - dimensions ascending in the scores,
// keys ascending in the outputs - whatever number of rows is taken together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/cache_codes.hpp"

namespace quern::kernels {

inline constexpr std::size_t kHalfBlock = 16;

template <class P>
struct AttentionTile {
  using V16 = typename P::V16;
  using Codes = CacheCodes<P>;

  // Register blocking only: 32 registers of sixteen lanes, or sixteen of eight.
  static constexpr bool kWide = alignof(V16) == 64;
  static constexpr std::size_t kScoreRows = kWide ? 8 : 4;
  static constexpr std::size_t kValueRows = 4;
  static constexpr std::size_t kValueChunks = kWide ? 4 : 1;

  // Half block `half` of a cache block as floats: K [d_k, 16 tokens]. The cache's own memory if that is
  // its form, else `buffer`.
  static const float* expand_k(const CacheLayout& layout, const std::byte* block, std::size_t half,
                               float* buffer) {
    const std::size_t per_word = 4 / cache_value_bytes(layout.k_type);
    const std::size_t n_lines = (layout.d_k + per_word - 1) / per_word;
    const std::byte* lines = block + half * n_lines * 64;
    switch (layout.k_type) {
      case CacheType::f32: return reinterpret_cast<const float*>(lines);
      case CacheType::bf16: expand<CacheType::bf16>(lines, n_lines, 1, buffer); break;
      case CacheType::f16: expand<CacheType::f16>(lines, n_lines, 1, buffer); break;
      case CacheType::int8: expand<CacheType::int8>(lines, n_lines, 1, buffer); break;
      case CacheType::fp8_e4m3: expand<CacheType::fp8_e4m3>(lines, n_lines, 1, buffer); break;
      case CacheType::fp8_e5m2: expand<CacheType::fp8_e5m2>(lines, n_lines, 1, buffer); break;
    }
    return buffer;
  }

  // V [16 tokens, d_v padded to 16].
  static const float* expand_v(const CacheLayout& layout, const std::byte* block, std::size_t half,
                               float* buffer) {
    const std::size_t chunks = (layout.d_v + 15) / 16;
    const std::size_t groups = kHalfBlock * cache_value_bytes(layout.v_type) / 4;
    const std::byte* lines = block + layout.v_offset + half * groups * chunks * 64;
    switch (layout.v_type) {
      case CacheType::f32: return reinterpret_cast<const float*>(lines);
      case CacheType::bf16: expand<CacheType::bf16>(lines, groups, chunks, buffer); break;
      case CacheType::f16: expand<CacheType::f16>(lines, groups, chunks, buffer); break;
      case CacheType::int8: expand<CacheType::int8>(lines, groups, chunks, buffer); break;
      case CacheType::fp8_e4m3: expand<CacheType::fp8_e4m3>(lines, groups, chunks, buffer); break;
      case CacheType::fp8_e5m2: expand<CacheType::fp8_e5m2>(lines, groups, chunks, buffer); break;
    }
    return buffer;
  }

  // out[r * out_stride + lane] = sum over d of q[r * q_stride + d] * k[d][lane], r < kRows.
  template <std::size_t kRows>
  static void dot_rows(const float* q, std::size_t q_stride, const float* k, std::size_t d_k, float* out,
                       std::size_t out_stride) {
    V16 sum[kRows];
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = P::zero();
    for (std::size_t d = 0; d < d_k; ++d) {
      const V16 column = P::load(k + 16 * d);
      for (std::size_t r = 0; r < kRows; ++r)
        sum[r] = P::fma(P::set(q[r * q_stride + d]), column, sum[r]);
    }
    for (std::size_t r = 0; r < kRows; ++r) P::store(out + r * out_stride, sum[r]);
  }

  // The rows' outputs [width] += sum over the 16 keys of p[r * p_stride + key] * v[key].
  struct Values {
    const float* v;    // [16 keys, width]
    std::size_t width;
    const float* p;    // [rows, p_stride]
    std::size_t p_stride;
    float* out;        // [rows, width]
  };
  static void add_values(const Values& a) {
    std::size_t column = 0;
    for (; column + 16 * kValueChunks <= a.width; column += 16 * kValueChunks)
      add_columns<kValueRows, kValueChunks>(a, column);
    for (; column < a.width; column += 16) add_columns<kValueRows, 1>(a, column);
  }

  // The same for the first row and those keys only whose bit is set: the others may hold anything.
  static void add_values_of(const Values& a, std::uint32_t keys) {
    std::size_t column = 0;
    for (; column + 64 <= a.width; column += 64) add_masked<4>(a, column, keys);
    for (; column < a.width; column += 16) add_masked<1>(a, column, keys);
  }

 private:
  // Lines [groups, chunks] of per_word values a lane -> rows [groups * per_word, chunks * 16].
  template <CacheType kType>
  static void expand(const std::byte* lines, std::size_t groups, std::size_t chunks, float* out) {
    constexpr std::size_t kPerWord = 4 / cache_value_bytes(kType);
    const std::size_t stride = chunks * 16;
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t c = 0; c < chunks; ++c, lines += 64)
        Codes::template expand_line<kType>(lines, out + g * kPerWord * stride + c * 16, stride);
  }

  template <std::size_t kRows, std::size_t kChunks>
  static void add_columns(const Values& a, std::size_t column) {
    V16 sum[kRows][kChunks];
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kChunks; ++c)
        sum[r][c] = P::load(a.out + r * a.width + column + 16 * c);
    for (std::size_t key = 0; key < kHalfBlock; ++key) {
      V16 value[kChunks];
      for (std::size_t c = 0; c < kChunks; ++c)
        value[c] = P::load(a.v + key * a.width + column + 16 * c);
      for (std::size_t r = 0; r < kRows; ++r) {
        const V16 weight = P::set(a.p[r * a.p_stride + key]);
        for (std::size_t c = 0; c < kChunks; ++c) sum[r][c] = P::fma(weight, value[c], sum[r][c]);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r)
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
      for (std::size_t c = 0; c < kChunks; ++c) sum[c] = P::fma(weight, P::load(row + 16 * c), sum[c]);
    }
    for (std::size_t c = 0; c < kChunks; ++c) P::store(a.out + column + 16 * c, sum[c]);
  }
};

}  // namespace quern::kernels
