// Division and rounding of sizes and counts upwards.
#pragma once

#include <cstddef>

namespace quern::base {

// Without n + step - 1, which wraps for numbers that a file may hold.
constexpr std::size_t divide_up(std::size_t n, std::size_t step) {
  return n / step + static_cast<std::size_t>(n % step != 0);
}

// n far below 2^64: the last multiple is no number of 64 bits.
constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return divide_up(n, step) * step;
}

}  // namespace quern::base
