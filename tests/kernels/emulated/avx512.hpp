// The avx512 path with its instructions in software (avx512_software.hpp): runs on every CPU with AVX2.
#pragma once

#include "kernels/emulated/avx512_names.hpp"

// After the names.
#include "kernels/primitives/avx512.hpp"

namespace quern::kernels {

struct Avx512Emulated : Avx512 {
  static constexpr const char* kName = "avx512_emulated";
};

}  // namespace quern::kernels
