// The codebooks of GGUF's IQ types as packed indices (scripts/make_gguf_grids.py writes the
// numbers). Unpacked by dequant_grid.cpp.
#pragma once

#include <array>
#include <cstdint>

namespace quern::checkpoint {

// Eight 2-bit indices a word, value 0 in the lowest bits.
extern const std::array<std::uint16_t, 256> kIq2XxsGrid;
extern const std::array<std::uint16_t, 512> kIq2XsGrid;
extern const std::array<std::uint16_t, 1024> kIq2SGrid;
extern const std::array<std::uint16_t, 2048> kIq1Grid;
// Four 4-bit indices a word.
extern const std::array<std::uint16_t, 256> kIq3XxsGrid;
extern const std::array<std::uint16_t, 512> kIq3SGrid;

}  // namespace quern::checkpoint
