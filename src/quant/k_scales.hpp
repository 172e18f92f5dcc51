// What q4_k and q5_k share: 6-bit scales and minima per row and 32 columns under one f16 of each per
// row and 256 columns. In a super-block of G groups: low[G][16], one byte: the low four bits of the
// scale, then of the minimum; high[(G + 1) / 2][16]: of an even group g bits 0-1 the scale's high bits
// and bits 2-3 the minimum's, of g + 1 bits 4-7 in the same way; f16 d[16]; f16 dmin[16].
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/format.hpp"

namespace quern::quant {

struct KScales {
  static constexpr std::size_t high_offset(std::size_t groups) { return groups * kPanelRows; }
  static constexpr std::size_t d_offset(std::size_t groups) {
    return high_offset(groups) + (groups + 1) / 2 * kPanelRows;
  }
  static constexpr std::size_t dmin_offset(std::size_t groups) {
    return d_offset(groups) + kPanelRows * 2;
  }
  static constexpr std::size_t bytes(std::size_t groups) {
    return dmin_offset(groups) + kPanelRows * 2;
  }

  // Kernels: d * scale and -(dmin * minimum) of a group; `at`: where the scales of the super-block lie.
  template <class P>
  [[gnu::always_inline]] static typename P::V16 scale(const std::byte* at, std::size_t groups,
                                                      std::size_t group) {
    const typename P::I16 low = P::iand(low_bits<P>(at, group), P::iset(15));
    const typename P::I16 high =
        P::template shift_left<4>(P::iand(high_bits<P>(at, groups, group), P::iset(3)));
    return P::mul(f16<P>(at + d_offset(groups)), P::to_float(P::ior(low, high)));
  }
  template <class P>
  [[gnu::always_inline]] static typename P::V16 minimum(const std::byte* at, std::size_t groups,
                                                        std::size_t group) {
    const typename P::I16 low = P::template shift_right<4>(low_bits<P>(at, group));
    const typename P::I16 high =
        P::template shift_left<2>(P::iand(high_bits<P>(at, groups, group), P::iset(12)));
    const typename P::V16 product =
        P::mul(f16<P>(at + dmin_offset(groups)), P::to_float(P::ior(low, high)));
    return P::sub(P::zero(), product);
  }

 private:
  template <class P>
  [[gnu::always_inline]] static typename P::V16 f16(const std::byte* at) {
    return P::load_f16(reinterpret_cast<const std::uint16_t*>(at));
  }
  template <class P>
  [[gnu::always_inline]] static typename P::I16 low_bits(const std::byte* at, std::size_t group) {
    return P::load_u8(reinterpret_cast<const std::uint8_t*>(at) + group * kPanelRows);
  }
  template <class P>
  [[gnu::always_inline]] static typename P::I16 high_bits(const std::byte* at, std::size_t groups,
                                                          std::size_t group) {
    const typename P::I16 both = P::load_u8(reinterpret_cast<const std::uint8_t*>(at) +
                                            high_offset(groups) + group / 2 * kPanelRows);
    return group % 2 == 0 ? both : P::template shift_right<4>(both);
  }
};

}  // namespace quern::quant
