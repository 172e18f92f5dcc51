// Primitives of AMD's Zen 5 and later: those of zen4.hpp, with another way to ask for weights.
#pragma once

#include "kernels/primitives/zen4.hpp"

namespace quern::kernels {

struct Zen5 : Zen4Of<Zen5> {
  static constexpr const char* kName = "zen5";
  static constexpr const char* kDescription = "AVX-512 with VNNI, VBMI, VBMI2, BF16 on AMD Zen 5 and later";

  // As in zen4.hpp, but into L1, whose misses do not hold these cores back. Decode with one thread, 8 KiB ahead into L1
  // against 16 KiB into L2: 1.1B q4_0 x 1.12-1.27, 135M q4_0 x 1.21; with two threads x 1.08-1.13. 2 KiB is too late,
  // 16 KiB evicts.
  static constexpr std::size_t kStreamAhead = 8192;
  [[gnu::always_inline]] static void prefetch_stream(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
  }
};

}  // namespace quern::kernels
