// Matrix products by format: which loop serves which, and the scratch they need. The loops
// themselves: matmul_integer.hpp and matmul_float.hpp. A new format needs nothing here.
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"
#include "kernels/ops/matmul_float.hpp"
#include "kernels/ops/matmul_integer.hpp"
#include "kernels/ops/matmul_transposed.hpp"

namespace quern::kernels {

template <class P>
struct MatmulOps {
  template <class F>
  static void run(const MatmulArgs& args) {
    if constexpr (F::kInteger)
      IntegerMatmul<P, F>::run(args);
    else
      FloatMatmul<P, F>::run(args);
  }

  template <class F>
  static constexpr TransposedFn transposed() {
    if constexpr (F::kInteger || FloatMatmul<P, F>::kScaled)
      return nullptr;
    else
      return &TransposedMatmul<P, F>::run;
  }

  // Four expanded super-blocks (76 KiB), whatever the width of the matrix.
  static std::size_t scratch_bytes(std::size_t) { return 4 * sizeof(ExpandedBlock); }
};

}  // namespace quern::kernels
