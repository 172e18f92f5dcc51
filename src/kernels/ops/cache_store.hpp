// Writes one token's K and V rows of one KV head into its cache block (layout:
// attention_types.hpp). Only that token's bytes are written, so tokens of one block may be stored
// in any order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/cache_codes.hpp"
#include "kernels/ops/cache_int4.hpp"

namespace quern::kernels {

template <class P>
struct CacheStore {
  using Codes = CacheCodes<P>;
  using Int4 = CacheInt4<P>;

  static void store_kv(const CacheLayout& layout, const float* k, const float* v, std::byte* block,
                       std::size_t slot) {
    if (layout.k_type == CacheType::int4) Int4::store_k(layout, k, block, slot);
    if (layout.v_type == CacheType::int4) Int4::store_v(layout, v, block, slot);
    const bool latent = layout.d_rope != 0;
    const std::size_t k_width = latent ? layout.d_rope : layout.d_k;
    const Row k_row = scaled_row(layout.k_type, k, k_width, block + layout.k_scale_offset, slot);
    const Row v_row = scaled_row(layout.v_type, v, layout.d_v, block + layout.v_scale_offset, slot);
    const std::size_t k_lines = cache_lines(layout.k_type, k_width);
    const std::size_t v_lines = latent ? cache_lines(layout.v_type, layout.d_v) : 0;
    std::byte* words = block + (slot / 16) * (v_lines + k_lines) * 64 + (slot % 16) * 4;
    if (latent)
      store_k(layout.v_type, v_row, words);
    else
      store_v(layout.v_type, v_row, block + layout.v_offset, slot);
    store_k(layout.k_type, k_row, words + v_lines * 64);
  }

 private:
  struct Row;

  static void store_k(CacheType type, const Row& row, std::byte* words) {
    switch (type) {
      case CacheType::f32:
        return store_k<CacheType::f32>(row, words);
      case CacheType::bf16:
        return store_k<CacheType::bf16>(row, words);
      case CacheType::f16:
        return store_k<CacheType::f16>(row, words);
      case CacheType::int8:
        return store_k<CacheType::int8>(row, words);
      case CacheType::fp8_e4m3:
        return store_k<CacheType::fp8_e4m3>(row, words);
      case CacheType::fp8_e5m2:
        return store_k<CacheType::fp8_e5m2>(row, words);
      case CacheType::int4:
        return;  // cache_int4.hpp
    }
  }
  static void store_v(CacheType type, const Row& row, std::byte* values, std::size_t slot) {
    switch (type) {
      case CacheType::f32:
        return store_v<CacheType::f32>(row, values, slot);
      case CacheType::bf16:
        return store_v<CacheType::bf16>(row, values, slot);
      case CacheType::f16:
        return store_v<CacheType::f16>(row, values, slot);
      case CacheType::int8:
        return store_v<CacheType::int8>(row, values, slot);
      case CacheType::fp8_e4m3:
        return store_v<CacheType::fp8_e4m3>(row, values, slot);
      case CacheType::fp8_e5m2:
        return store_v<CacheType::fp8_e5m2>(row, values, slot);
      case CacheType::int4:
        return;  // cache_int4.hpp
    }
  }

  struct Row {
    const float* x;
    std::size_t n;
    float inverse;  // 1 / scale; 0 for a row stored as zeros
    bool plain;     // no scale
  };

  // Writes the row's scale, if its type has one. A non-finite row keeps a NaN scale, so that it
  // shows up in the logits instead of passing for zeros.
  static Row scaled_row(CacheType type, const float* x, std::size_t n, std::byte* scales,
                        std::size_t slot) {
    if (!cache_has_scales(type)) return {x, n, 1.0f, true};
    std::uint32_t top = 0;  // magnitudes compare as integers; NaN is above infinity
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t magnitude = Codes::bits_of(x[i]) & 0x7fffffffu;
      top = magnitude > top ? magnitude : top;
    }
    const float largest = Codes::float_of(top);
    float scale = 0.0f, inverse = 0.0f;
    if (top >= 0x7f800000u) {
      scale = Codes::float_of(0x7fc00000u);
    } else if (largest >= 1e-30f) {  // below, the inverse would overflow
      scale = largest / Codes::largest(type);
      inverse = Codes::largest(type) / largest;
    }
    __builtin_memcpy(scales + slot * sizeof(float), &scale, sizeof(float));
    return {x, n, inverse, false};
  }

  static constexpr std::size_t kChunk = 64;

  // Codes of values [first, first + kChunk), zeros past the row's end and for a row of inverse 0.
  template <CacheType kType>
  static void encode_chunk(const Row& row, std::size_t first, std::uint32_t* codes) {
    const std::size_t n = row.n - first < kChunk ? row.n - first : kChunk;
    float values[kChunk] = {};
    if (row.plain) {
      for (std::size_t i = 0; i < n; ++i) values[i] = row.x[first + i];
    } else if (row.inverse != 0.0f) {
      for (std::size_t i = 0; i < n; ++i) values[i] = row.x[first + i] * row.inverse;
    }
    for (std::size_t i = 0; i < kChunk; ++i) codes[i] = Codes::template encode<kType>(values[i]);
  }

  // [2 half blocks][d_k / e lines][16 tokens][e values]: a word of e values in each line of its
  // half block; `words` is the one in the row's first line.
  template <CacheType kType>
  static void store_k(const Row& row, std::byte* words) {
    constexpr std::size_t kBytes = cache_value_bits(kType) / 8, kPerWord = 4 / kBytes;
    const std::size_t n_lines = (row.n + kPerWord - 1) / kPerWord;
    std::uint32_t codes[kChunk];
    for (std::size_t first = 0; first < row.n; first += kChunk) {
      encode_chunk<kType>(row, first, codes);
      const std::size_t first_line = first / kPerWord;
      const std::size_t rest = n_lines - first_line;
      const std::size_t n = rest < kChunk / kPerWord ? rest : kChunk / kPerWord;
      for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t word = 0;
        for (std::size_t j = 0; j < kPerWord; ++j)
          word |= codes[i * kPerWord + j] << (8 * kBytes * j);
        __builtin_memcpy(words + (first_line + i) * 64, &word, 4);
      }
    }
  }

  // [32 / e][d_v / 16 lines][16 dims][e tokens]: one value in each word of its group of tokens.
  template <CacheType kType>
  static void store_v(const Row& row, std::byte* values, std::size_t slot) {
    constexpr std::size_t kBytes = cache_value_bits(kType) / 8, kPerWord = 4 / kBytes;
    const std::size_t width = (row.n + 15) / 16 * 16;
    std::byte* out = values + (slot / kPerWord) * width * 4 + (slot % kPerWord) * kBytes;
    std::uint32_t codes[kChunk];
    for (std::size_t first = 0; first < row.n; first += kChunk) {
      encode_chunk<kType>(row, first, codes);
      const std::size_t n = width - first < kChunk ? width - first : kChunk;
      // Little-endian: the low bytes of the code are the value.
      for (std::size_t i = 0; i < n; ++i)
        __builtin_memcpy(out + (first + i) * 4, &codes[i], kBytes);
    }
  }
};

}  // namespace quern::kernels
