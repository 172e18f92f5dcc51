// Rows of the KV cache in 4 bits (layout: attention_types.hpp): encoding with a least-squares scale per 32
// values, the rotation of keys and queries, and expansion to floats with the scales applied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/cache_codes.hpp"

namespace quern::kernels {

template <class P>
struct CacheInt4 {
  using V16 = typename P::V16;
  using Codes = CacheCodes<P>;

  static void store_k(const CacheLayout& layout, const float* k, std::byte* block, std::size_t slot) {
    float rotated[kMaxRotated];
    for (std::size_t d = 0; d < layout.d_k; ++d) rotated[d] = k[d];
    rotate(rotated, layout.d_k);
    const std::size_t n_lines = cache_lines(CacheType::int4, layout.d_k);
    std::byte* words = block + ((slot / 16) * n_lines * 16 + slot % 16) * 4;
    for (std::size_t first = 0; first < layout.d_k; first += kCacheGroup) {
      std::uint32_t codes[kCacheGroup];
      encode(rotated + first, rest(layout.d_k, first), codes,
             scale_at(block + layout.k_scale_offset, first, slot));
      for (std::size_t i = 0; i < kCacheGroup / 8 && first / 8 + i < n_lines; ++i) {
        std::uint32_t word = 0;
        for (std::size_t j = 0; j < 8; ++j) word |= codes[8 * i + j] << (4 * j);
        __builtin_memcpy(words + (first / 8 + i) * 64, &word, 4);
      }
    }
  }

  static void store_v(const CacheLayout& layout, const float* v, std::byte* block, std::size_t slot) {
    const std::size_t n_groups = cache_groups(layout.d_v);
    for (std::size_t group = 0; group < n_groups; ++group) {
      std::uint32_t codes[kCacheGroup];
      const std::size_t first = group * kCacheGroup;
      encode(v + first, rest(layout.d_v, first), codes,
             scale_at(block + layout.v_scale_offset, first, slot));
      std::byte* line = block + layout.v_offset + ((slot / 4) * n_groups + group) * 64 + slot % 4;
      for (std::size_t i = 0; i < 16; ++i) line[4 * i] = static_cast<std::byte>(codes[i] | codes[i + 16] << 4);
    }
  }

  // out [d_k]: what gives, multiplied with a stored key, q times the key as it was.
  static void rotate_query(const float* q, std::size_t d_k, float* out) {
    const float inverse = 1.0f / static_cast<float>(hadamard_block(d_k));  // a power of two
    for (std::size_t d = 0; d < d_k; ++d) out[d] = q[d] * inverse;
    rotate(out, d_k);
  }

  // K of a block: [2 half blocks][d_k padded to 8][16 tokens].
  static void expand_k(const CacheLayout& layout, const std::byte* block, float* out) {
    const std::size_t n_lines = cache_lines(CacheType::int4, layout.d_k);
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t i = 0; i < n_lines; ++i, out += 8 * 16) {
        const std::byte* line = block + (half * n_lines + i) * 64;
        const std::byte* scales = block + layout.k_scale_offset + i / (kCacheGroup / 8) * 64 + half * 32;
        const V16 scale = P::load_f16(reinterpret_cast<const std::uint16_t*>(scales));
        expand_word<0>(line, scale, out);
        expand_word<4>(line, scale, out + 16);
        expand_word<8>(line, scale, out + 32);
        expand_word<12>(line, scale, out + 48);
        expand_word<16>(line, scale, out + 64);
        expand_word<20>(line, scale, out + 80);
        expand_word<24>(line, scale, out + 96);
        expand_word<28>(line, scale, out + 112);
      }
  }

  // V of a half block: [16 tokens, d_v padded to 16].
  static void expand_v(const CacheLayout& layout, const std::byte* block, std::size_t half, float* out) {
    const std::size_t n_groups = cache_groups(layout.d_v), stride = (layout.d_v + 15) / 16 * 16;
    const std::byte* scales = block + layout.v_scale_offset;
    for (std::size_t four = 0; four < 4; ++four)
      for (std::size_t group = 0; group < n_groups; ++group) {
        const std::byte* line = block + layout.v_offset + ((half * 4 + four) * n_groups + group) * 64;
        float token_scales[16];
        P::store(token_scales, P::load_f16(reinterpret_cast<const std::uint16_t*>(scales + group * 64 + half * 32)));
        float* to = out + four * 4 * stride + group * kCacheGroup;
        expand_token<0>(line, token_scales[four * 4], to, stride - group * kCacheGroup);
        expand_token<8>(line, token_scales[four * 4 + 1], to + stride, stride - group * kCacheGroup);
        expand_token<16>(line, token_scales[four * 4 + 2], to + 2 * stride, stride - group * kCacheGroup);
        expand_token<24>(line, token_scales[four * 4 + 3], to + 3 * stride, stride - group * kCacheGroup);
      }
  }

 private:
  static std::size_t rest(std::size_t width, std::size_t first) {
    return width - first < kCacheGroup ? width - first : kCacheGroup;
  }
  // Scales lie [group][32 tokens].
  static std::byte* scale_at(std::byte* scales, std::size_t first, std::size_t slot) {
    return scales + (first / kCacheGroup * kBlockTokens + slot) * 2;
  }
  // Walsh-Hadamard butterflies over each block of hadamard_block(n) values; each sum has one order.
  static void rotate(float* x, std::size_t n) {
    const std::size_t block = hadamard_block(n);
    for (float* end = x + n; x < end; x += block)
      for (std::size_t step = 1; step < block; step *= 2)
        for (std::size_t i = 0; i < block; i += 2 * step)
          for (std::size_t j = i; j < i + step; ++j) {
            const float a = x[j], b = x[j + step];
            x[j] = a + b;
            x[j + step] = a - b;
          }
  }

  // Codes [32] in two's complement of four bits, and the f16 scale that fits them best. The extreme value
  // gets code -8, the others the nearest; then least squares: scale = sum(x c) / sum(c c).
  static void encode(const float* x, std::size_t n, std::uint32_t* codes, std::byte* scale_out) {
    std::uint32_t top = 0;
    float extreme = 0.0f;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t magnitude = Codes::bits_of(x[i]) & 0x7fffffffu;
      extreme = magnitude > top ? x[i] : extreme;
      top = magnitude > top ? magnitude : top;
    }
    for (std::size_t i = 0; i < kCacheGroup; ++i) codes[i] = 0;
    std::uint16_t scale = 0;
    if (top >= 0x7f800000u) {
      scale = 0x7e00u;  // NaN: shows up in the logits
    } else if (Codes::float_of(top) >= 0x1p-20f) {  // below, an f16 scale has no bits left
      const float inverse = -8.0f / extreme;
      float xc = 0.0f, cc = 0.0f;
      for (std::size_t i = 0; i < n; ++i) {
        const float code = nearest(x[i] * inverse);
        codes[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(code)) & 15u;
        xc += x[i] * code;
        cc += code * code;
      }
      const std::uint32_t best = Codes::to_f16(xc / cc);
      scale = static_cast<std::uint16_t>((best & 0x7fffu) >= 0x7c00u ? (best & 0x8000u) | 0x7bffu : best);
    }
    __builtin_memcpy(scale_out, &scale, 2);
  }
  // To a whole number in [-8, 7], ties to even; |x| <= 8.
  static float nearest(float x) {
    const float whole = (x + 12582912.0f) - 12582912.0f;
    return whole > 7.0f ? 7.0f : whole;
  }

  // The 4 bits from kBit on of each of 16 words, times `scale`.
  template <int kBit>
  static void expand_word(const std::byte* line, V16 scale, float* out) {
    float values[16];
    expand_bits<kBit>(line, values);
    P::store(out, P::mul(P::load(values), scale));
  }
  template <int kBit>
  static void expand_token(const std::byte* line, float scale, float* out, std::size_t width) {
    expand_word<kBit>(line, P::set(scale), out);
    if (width > 16) expand_word<kBit + 4>(line, P::set(scale), out + 16);
  }
  template <int kBit>
  static void expand_bits(const std::byte* line, float* __restrict out) {
    using Word [[gnu::may_alias]] = std::uint32_t;
    const auto* words = reinterpret_cast<const Word*>(line);
    for (std::size_t i = 0; i < 16; ++i)
      out[i] = static_cast<float>(static_cast<std::int32_t>(words[i] << (28 - kBit)) >> 28);
  }
};

}  // namespace quern::kernels
