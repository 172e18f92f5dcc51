// A share of the cases, for runs under an emulator: QUERN_TEST_SAMPLE=n takes every n-th of the long lists (n <= 7).
// Lists are crossed so that every format, width, cache type, shape and mechanism still has cases of its own.
// Not here: which instruction sets are run (isas.hpp).
#pragma once

#include <cstddef>
#include <cstdlib>

namespace quern::kernels {

inline std::size_t sample_step() {
  static const std::size_t step = [] {
    const char* text = std::getenv("QUERN_TEST_SAMPLE");
    const long n = text == nullptr ? 1 : std::strtol(text, nullptr, 10);
    return static_cast<std::size_t>(n < 1 ? 1 : n > 7 ? 7 : n);
  }();
  return step;
}

inline bool sampled(std::size_t index) {
  return index % sample_step() == 0;
}

}  // namespace quern::kernels
