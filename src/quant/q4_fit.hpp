// The fit of one row of a q4 super-block. Not here: where the codes lie (q4.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/small_float.hpp"
#include "quant/format.hpp"
#include "quant/q4.hpp"

namespace quern::quant {

struct Q4Row {
  static constexpr std::size_t kGroups = kSuperColumns / Q4::kIdColumns;
  base::F16 scale;            // of the whole row
  std::uint8_t ids[kGroups];  // sub-scale per 16 columns
  std::uint8_t codes[kSuperColumns];
};

// Smallest weighted squared error found over the scale (32 candidates around the one that just
// covers the largest value, the best 3 refitted by least squares) and, for each scale, the exact
// best id and codes. columns: a multiple of 16, <= 256. weights: [columns], not negative, or
// nullptr.
Q4Row fit_q4_row(const float* values, std::size_t columns, const float* weights);

}  // namespace quern::quant
