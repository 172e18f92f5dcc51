// Primitives of the path with AMX int8 tiles (Sapphire Rapids and later): the lanes of avx512bf16.hpp, and
// a matrix unit for products of many tokens. The process needs the kernel's leave to use tiles (select.cpp).
#pragma once

#include "kernels/primitives/amx_tiles.hpp"
#include "kernels/primitives/avx512bf16.hpp"

namespace quern::kernels {

// Written as assembler: gcc's intrinsics take tile numbers as text and do not say what memory they read.
struct AmxUnit {
  static void configure(const TileConfig& config) {
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  static void release() { __asm__ volatile("tilerelease" ::); }
  template <int kTile>
  [[gnu::always_inline]] static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  [[gnu::always_inline]] static void load(const void* from, std::size_t stride_bytes) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(kTile) : "memory");
  }
  template <bool kUnsigned, int kSum, int kActivations, int kWeights>
  [[gnu::always_inline]] static void dot() {
    if constexpr (kUnsigned)  // signed activations, unsigned weights
      __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kActivations), "i"(kWeights));
    else
      __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kActivations), "i"(kWeights));
  }
  template <int kTile>
  [[gnu::always_inline]] static void store(void* to, std::size_t stride_bytes) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "i"(kTile) : "memory");
  }
};

struct Amx : Avx512Bf16Of<Amx> {
  static constexpr const char* kName = "amx";
  static constexpr const char* kDescription =
      "AVX-512 with VNNI, VBMI, VBMI2, BF16, and AMX int8 tiles for products of many tokens";
  using Tiles = MatrixTiles<AmxUnit>;
};

}  // namespace quern::kernels
