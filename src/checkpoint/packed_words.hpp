// Codes of 2 to 8 bits in 32-bit words, low bits first; a code of 3 bits may lie in two words.
// For the packed_*.cpp files of this folder only.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

// Words first, first + stride, first + 2 * stride, ... of an array of u32.
struct PackedWords {
  base::Bytes array;
  std::uint64_t stride, first;

  std::uint32_t word(std::uint64_t i) const {
    return load<std::uint32_t>(array.data() + 4 * (first + i * stride));
  }
  unsigned bits(std::uint64_t at, std::uint64_t count) const {
    const std::uint64_t i = at / 32, shift = at % 32;
    std::uint64_t two = word(i);
    if (shift + count > 32) two |= std::uint64_t{word(i + 1)} << 32;
    return static_cast<unsigned>(two >> shift & ((1u << count) - 1));
  }
};

}  // namespace quern::checkpoint
