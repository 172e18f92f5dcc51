// The avx512vnni path with its instructions in software (avx512_software.hpp): runs on every CPU with AVX2.
#pragma once

#include "kernels/emulated/avx512_names.hpp"

// After the names.
#include "kernels/primitives/avx512vnni.hpp"

namespace quern::kernels {

struct Avx512VnniEmulated : Avx512Vnni {
  static constexpr const char* kName = "avx512vnni_emulated";
};

}  // namespace quern::kernels
