// Products of pairs of bf16 numbers, 16 lanes of two, in the arithmetic of vdpbf16ps: sum = fma(odd, odd, sum), then
// fma(even, even, sum), each rounded once. CPUs with that instruction have it as P::dot_pairs, the others do the same
// on floats. They differ where a float would be subnormal, which the instruction takes for 0: what becomes bf16, here
// and in the cache (cache_codes.hpp), is 0 then, and a sum below 2^-126 is nothing beside others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/ops/cache_codes.hpp"

namespace quern::kernels {

template <class P>
struct PairProducts {
  using V16 = typename P::V16;
  using I16 = typename P::I16;

  static constexpr bool kNative = requires(V16 sum, I16 pairs) { P::dot_pairs(sum, pairs, pairs); };
  struct Split {
    V16 even, odd;
  };
  using Operand = std::conditional_t<kNative, I16, Split>;
  [[gnu::always_inline]] static V16 dot(V16 sum, const Operand& a, const Operand& b) {
    if constexpr (kNative)
      return P::dot_pairs(sum, a, b);
    else
      return P::fma(a.even, b.even, P::fma(a.odd, b.odd, sum));
  }

  // ---- operands in memory: 16 pairs in a line, or what convert() makes of others ----
  enum class Form { pairs, converted };
  static constexpr std::size_t bytes_of(Form form) { return !kNative && form == Form::converted ? 128 : 64; }
  // `keep`: all of each pair, or its even or odd half, and zero for the other.
  enum class Keep { both, even, odd };

  template <Form kForm>
  [[gnu::always_inline]] static Operand load(const std::byte* p) {
    if constexpr (!kNative && kForm == Form::converted)
      return {P::load(reinterpret_cast<const float*>(p)), P::load(reinterpret_cast<const float*>(p) + 16)};
    else
      return operand(P::iload(reinterpret_cast<const std::int32_t*>(p)));
  }
  template <Form kForm>
  [[gnu::always_inline]] static Operand load(const std::byte* p, Keep keep) {
    if constexpr (kNative) {
      const I16 halves = P::iset(keep == Keep::both ? -1 : keep == Keep::even ? 0xffff : kOdd);
      return P::iand(P::iload(reinterpret_cast<const std::int32_t*>(p)), halves);
    } else {
      Operand x = load<kForm>(p);
      if (keep == Keep::odd) x.even = P::zero();
      if (keep == Keep::even) x.odd = P::zero();
      return x;
    }
  }
  // One pair in memory, to be met by every lane.
  [[gnu::always_inline]] static Operand broadcast(const std::byte* pair) {
    std::int32_t word;
    __builtin_memcpy(&word, pair, sizeof word);
    return operand(P::iset(word));
  }

  // A line of the cache, 16 lanes of 2 or 4 values, to operands `stride` bytes apart: a pair of each lane in one.
  template <CacheType kType>
  [[gnu::always_inline]] static void convert(const std::byte* line, std::byte* to, std::size_t stride) {
    if constexpr (kType == CacheType::f16) {
      V16 even, odd;
      P::load_f16_pairs(reinterpret_cast<const std::uint16_t*>(line), even, odd);
      put(even, odd, to);
    } else if constexpr (kNative) {
      I16 pairs[2];
      P::widen_bytes(line, tables<kType>(), pairs);
      for (std::size_t i = 0; i < 2; ++i) P::istore(reinterpret_cast<std::int32_t*>(to + i * stride), pairs[i]);
    } else {  // exact as they are
      for (std::size_t i = 0; i < 2; ++i) {
        float* out = reinterpret_cast<float*>(to + i * stride);
        Codes::template expand_byte<kType>(line, 2 * i, out);
        Codes::template expand_byte<kType>(line, 2 * i + 1, out + 16);
      }
    }
  }

  // The nearest bf16 of each lane, ties to even; finite lanes only.
  static V16 nearest(V16 x) {
    return P::bits_float(P::iand(nearest_bits(P::float_bits(x)), P::iset(kOdd)));
  }
  // n floats to n bf16 numbers in their order, 0 below 2^-126.
  static void round(const float* x, std::size_t n, std::byte* to) {
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) store(to + 2 * i, P::load(x + i));
    if (i == n) return;
    std::byte rest[32];
    store(rest, P::load_n(x + i, n - i));
    __builtin_memcpy(to + 2 * i, rest, 2 * (n - i));
  }
  static void store(std::byte* to, V16 x) {
    if constexpr (requires { P::store_bf16(to, x); }) {
      P::store_bf16(to, x);
    } else {
      std::int32_t bits[16];
      P::istore(bits, rounded(x));
      std::uint16_t halves[16];
      for (std::size_t i = 0; i < 16; ++i)
        halves[i] = static_cast<std::uint16_t>(static_cast<std::uint32_t>(bits[i]) >> 16);
      __builtin_memcpy(to, halves, sizeof halves);
    }
  }

 private:
  using Codes = CacheCodes<P>;
  static constexpr std::int32_t kOdd = static_cast<std::int32_t>(0xffff0000u);

  [[gnu::always_inline]] static Operand operand(I16 pairs) {
    if constexpr (kNative)
      return pairs;
    else
      return {P::bits_float(P::template shift_left<16>(pairs)), P::bits_float(P::iand(pairs, P::iset(kOdd)))};
  }
  // Lanes of two floats that came from f16 ones, none subnormal, as an operand.
  [[gnu::always_inline]] static void put(V16 even, V16 odd, std::byte* to) {
    if constexpr (kNative) {
      P::istore(reinterpret_cast<std::int32_t*>(to), P::join_pairs(even, odd));
    } else {
      auto* out = reinterpret_cast<std::int32_t*>(to);
      P::istore(out, P::iand(nearest_or_nan(even, P::abs(even)), P::iset(kOdd)));
      P::istore(out + 16, P::iand(nearest_or_nan(odd, P::abs(odd)), P::iset(kOdd)));
    }
  }
  // Float bits of which the upper half is that of the nearest bf16, ties to even; not for NaN with all its bits set.
  static I16 nearest_bits(I16 bits) {
    const I16 odd = P::iand(P::template shift_right<16>(bits), P::iset(1));
    return P::iadd(P::iadd(bits, P::iset(0x7fff)), odd);
  }
  // The same of any floats, 0 below 2^-126.
  static I16 rounded(V16 x) {
    const V16 magnitude = P::abs(x);
    const V16 normal = P::select_less(magnitude, P::set(0x1p-126f), P::mul(x, P::zero()), x);
    return nearest_or_nan(normal, magnitude);
  }
  // NaN, whose bits must not overflow, is made quiet; infinities stay.
  static I16 nearest_or_nan(V16 x, V16 magnitude) {
    const V16 number = P::bits_float(nearest_bits(P::float_bits(x)));
    return P::float_bits(P::select_less(magnitude, P::set(__builtin_inff()), number, P::add(x, x)));
  }

  // The bf16 numbers of the codes 0 .. 127 of a type of 8 bits: their low bytes, then their high
  // ones.
  template <CacheType kType>
  static const std::uint8_t (&tables())[256] {
    static constexpr Tables kTables = make_tables(kType);
    return kTables.bytes;
  }
  struct Tables {
    std::uint8_t bytes[256];
  };
  static constexpr Tables make_tables(CacheType type) {
    Tables tables{};
    for (std::uint32_t code = 0; code < 128; ++code) {
      const float x = type == CacheType::fp8_e4m3 ? CacheCodes<P>::from_e4m3(code)
                                                  : CacheCodes<P>::from_e5m2(code);
      const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x) >> 16;
      tables.bytes[code] = static_cast<std::uint8_t>(bits & 0xffu);
      tables.bytes[128 + code] = static_cast<std::uint8_t>(bits >> 8);
    }
    return tables;
  }
};

}  // namespace quern::kernels
