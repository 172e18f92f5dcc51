// The AMX path with tiles in software, exact, as Intel's manual defines the instructions, over the lanes of
// the emulated AVX-VNNI path (the same unsigned operand lines): runs on every CPU with AVX2.
#pragma once

#include <cstdlib>
#include <cstring>

#include "kernels/emulated/avxvnni.hpp"
#include "kernels/primitives/amx_tiles.hpp"

namespace quern::kernels {

struct SoftwareTileUnit {
  struct State {
    TileConfig config;
    bool configured = false;
    std::uint8_t tiles[8][kTileRows][64];
  };
  static State& state() {
    static thread_local State state;
    return state;
  }
  static void configure(const TileConfig& config) {
    State& s = state();
    if (config.palette != 1) std::abort();
    s.config = config;
    s.configured = true;
    std::memset(s.tiles, 0, sizeof(s.tiles));
  }
  static void release() { state().configured = false; }
  template <int kTile>
  static void zero() {
    if (!state().configured) std::abort();
    std::memset(state().tiles[kTile], 0, sizeof(state().tiles[kTile]));
  }
  template <int kTile>
  static void load(const void* from, std::size_t stride_bytes) {
    State& s = state();
    if (!s.configured) std::abort();
    std::memset(s.tiles[kTile], 0, sizeof(s.tiles[kTile]));
    for (std::size_t row = 0; row < s.config.rows[kTile]; ++row)
      std::memcpy(s.tiles[kTile][row], static_cast<const std::uint8_t*>(from) + row * stride_bytes,
                  s.config.row_bytes[kTile]);
  }
  template <bool kUnsigned, int kSum, int kActivations, int kWeights>
  static void dot() {
    State& s = state();
    if (s.config.row_bytes[kActivations] / 4 != s.config.rows[kWeights]) std::abort();  // #UD
    for (std::size_t m = 0; m < s.config.rows[kSum]; ++m)
      for (std::size_t n = 0; n < s.config.row_bytes[kSum] / 4u; ++n) {
        std::int32_t sum;
        std::memcpy(&sum, s.tiles[kSum][m] + 4 * n, 4);
        for (std::size_t k = 0; k < s.config.rows[kWeights]; ++k)
          for (std::size_t j = 0; j < 4; ++j) {
            const auto a = static_cast<std::int8_t>(s.tiles[kActivations][m][4 * k + j]);
            const std::uint8_t w = s.tiles[kWeights][k][4 * n + j];
            sum += std::int32_t{a} * (kUnsigned ? std::int32_t{w} : std::int32_t{static_cast<std::int8_t>(w)});
          }
        std::memcpy(s.tiles[kSum][m] + 4 * n, &sum, 4);
      }
  }
  template <int kTile>
  static void store(void* to, std::size_t stride_bytes) {
    const State& s = state();
    if (!s.configured) std::abort();
    for (std::size_t row = 0; row < s.config.rows[kTile]; ++row)
      std::memcpy(static_cast<std::uint8_t*>(to) + row * stride_bytes, s.tiles[kTile][row],
                  s.config.row_bytes[kTile]);
  }
};

struct AmxEmulated : AvxVnniEmulated {
  static constexpr const char* kName = "amx_emulated";
  using Tiles = MatrixTiles<SoftwareTileUnit>;
};

}  // namespace quern::kernels
