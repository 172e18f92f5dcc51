// Values of the KV cache: encoding to each cache type and expansion to float, line by line.
// Integer arithmetic in plain loops over sixteen lanes, which every compiler turns into vectors; no
// rounding depends on how. No float here is ever subnormal where it matters, so flush modes change
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_types.hpp"

namespace quern::kernels {

template <class P>
struct CacheCodes {
  using V16 = typename P::V16;

  // ---- float -> code ----
  static constexpr std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
  static constexpr float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

  // 0 below 2^-126, as products of bf16 pairs take such numbers (pair_products.hpp).
  static std::uint32_t to_bf16(float x) {
    std::uint32_t bits = bits_of(x);
    bits = (bits & 0x7fffffffu) < 0x00800000u ? bits & 0x80000000u : bits;
    const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded;
  }

  // To a float with kMantissa bits and exponent bias kBias, ties to even, for magnitudes that do
  // not overflow. Below the smallest normal the sum with a float whose last bit is the smallest
  // subnormal rounds.
  template <int kMantissa, int kBias>
  static std::uint32_t narrow(std::uint32_t magnitude) {
    constexpr int kDrop = 23 - kMantissa;
    constexpr std::uint32_t kSmallestNormal = std::uint32_t{127 + 1 - kBias} << 23;
    constexpr std::uint32_t kMagic = std::uint32_t{127 + 1 - kBias + kDrop} << 23;
    const std::uint32_t odd = magnitude >> kDrop & 1u;
    const std::uint32_t normal =
        (magnitude - (std::uint32_t{127 - kBias} << 23) + ((1u << (kDrop - 1)) - 1u) + odd) >>
        kDrop;
    const std::uint32_t subnormal = bits_of(float_of(magnitude) + float_of(kMagic)) - kMagic;
    return magnitude < kSmallestNormal ? subnormal : normal;
  }

  static std::uint32_t to_f16(float x) {
    const std::uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
    const std::uint32_t limit = 0x477ff000u;  // 65520 and more round to infinity
    std::uint32_t code = narrow<10, 15>(magnitude < limit ? magnitude : 0u);
    code = magnitude >= limit ? 0x7c00u : code;
    code = magnitude > 0x7f800000u ? 0x7e00u : code;
    return (bits >> 16 & 0x8000u) | code;
  }
  static std::uint32_t to_e4m3(float x) { return to_f8<3, 7, 0x43e00000u, 0x7fu>(x); }   // 448
  static std::uint32_t to_e5m2(float x) { return to_f8<2, 15, 0x47600000u, 0x7fu>(x); }  // 57344

  // |x| < 2^22: the sum leaves the whole number in the low bits. Clamped to the symmetric range.
  static std::uint32_t to_i8(float x) {
    std::int32_t code = static_cast<std::int32_t>(bits_of(x + 12582912.0f)) - 0x4b400000;
    code = code > 127 ? 127 : code;
    code = code < -127 ? -127 : code;
    return static_cast<std::uint32_t>(code) & 0xffu;
  }

  template <CacheType kType>
  static std::uint32_t encode(float x) {
    if constexpr (kType == CacheType::f32) return bits_of(x);
    if constexpr (kType == CacheType::bf16) return to_bf16(x);
    if constexpr (kType == CacheType::f16) return to_f16(x);
    if constexpr (kType == CacheType::int8) return to_i8(x);
    if constexpr (kType == CacheType::fp8_e4m3) return to_e4m3(x);
    if constexpr (kType == CacheType::fp8_e5m2) return to_e5m2(x);
  }
  // The largest magnitude a scaled type's codes stand for.
  static constexpr float largest(CacheType type) {
    return type == CacheType::int8 ? 127.0f : type == CacheType::fp8_e4m3 ? 448.0f : 57344.0f;
  }

  // ---- code -> float ----
  static constexpr float from_e4m3(std::uint32_t code) {
    const std::uint32_t m = code & 0x7fu;
    const std::uint32_t subnormal =
        bits_of(static_cast<float>(static_cast<std::int32_t>(m)) * 0x1p-9f);
    std::uint32_t bits = m < 8u ? subnormal : (m << 20) + (120u << 23);
    bits = m == 0x7fu ? 0x7fc00000u : bits;
    return float_of(bits | (code & 0x80u) << 24);
  }
  static constexpr float from_e5m2(std::uint32_t code) {
    const std::uint32_t m = code & 0x7fu;
    const std::uint32_t subnormal =
        bits_of(static_cast<float>(static_cast<std::int32_t>(m)) * 0x1p-16f);
    std::uint32_t bits = m < 4u ? subnormal : (m << 21) + (112u << 23);
    bits = m >= 0x7cu ? (m == 0x7cu ? 0x7f800000u : 0x7fc00000u) : bits;
    return float_of(bits | (code & 0x80u) << 24);
  }

  // One 64-byte line, 16 lanes of 4 / 2 / 1 values: value j of every lane becomes the row out + j *
  // stride.
  template <CacheType kType>
  static void expand_line(const std::byte* line, float* out, std::size_t stride) {
    if constexpr (kType == CacheType::f32) {
      P::store(out, P::load(reinterpret_cast<const float*>(line)));
    } else if constexpr (kType == CacheType::bf16 || kType == CacheType::f16) {
      V16 even, odd;
      const auto* codes = reinterpret_cast<const std::uint16_t*>(line);
      if constexpr (kType == CacheType::bf16) P::load_bf16_pairs(codes, even, odd);
      if constexpr (kType == CacheType::f16) P::load_f16_pairs(codes, even, odd);
      P::store(out, even);
      P::store(out + stride, odd);
    } else {
      for (std::size_t j = 0; j < 4; ++j) expand_byte<kType>(line, j, out + j * stride);
    }
  }
  // Value j of every lane of a line of 4.
  template <CacheType kType>
  [[gnu::always_inline]] static void expand_byte(const std::byte* line, std::size_t j, float* __restrict out) {
    using Word [[gnu::may_alias]] = std::uint32_t;
    const auto* words = reinterpret_cast<const Word*>(line);
    for (std::size_t i = 0; i < 16; ++i) {
      if constexpr (kType == CacheType::int8) {
        out[i] = static_cast<float>(static_cast<std::int32_t>(words[i] << (24 - 8 * j)) >> 24);
      } else {
        const std::uint32_t code = words[i] >> (8 * j) & 0xffu;
        out[i] = kType == CacheType::fp8_e4m3 ? from_e4m3(code) : from_e5m2(code);
      }
    }
  }

 private:
  template <int kMantissa, int kBias, std::uint32_t kLargest, std::uint32_t kNan>
  static std::uint32_t to_f8(float x) {
    const std::uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
    const std::uint32_t code =
        narrow<kMantissa, kBias>(magnitude < kLargest ? magnitude : kLargest);
    return (bits >> 24 & 0x80u) | (magnitude > 0x7f800000u ? kNan : code);
  }
};

}  // namespace quern::kernels
