// The zen4 path with its instructions in software (avx512_software.hpp): runs on every CPU with AVX2.
#pragma once

#include "kernels/emulated/avx512_names.hpp"

// After the names.
#include "kernels/primitives/zen4.hpp"

namespace quern::kernels {

struct Zen4Emulated : Zen4 {
  static constexpr const char* kName = "zen4_emulated";
};

}  // namespace quern::kernels
