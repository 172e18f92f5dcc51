// Rounding of sizes and counts up to a multiple.
#pragma once

#include <cstddef>

namespace quern::base {

constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace quern::base
