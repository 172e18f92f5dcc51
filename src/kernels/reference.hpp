// The oracle of the kernels: what a product should be, in double and in the plainest order. Used by
// tests and by `quern verify`; never by inference.
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"
#include "quant/format.hpp"

namespace quern::kernels {

struct ReferenceProblem {
  const quant::FormatTraits* format;
  const std::byte* weights;  // panels of [rows, columns]
  std::size_t rows, columns;
  std::size_t n_tokens;
  const float* x;  // [tokens, x_stride]: float formats
  std::size_t x_stride;
  QuantizedRows q;  // integer formats: the very codes the kernel is given
};

// out[t, r] = sum over k of w[r, k] * a[t, k], w the decoded weight, a the activation (scale * code
// for integer formats). magnitude[t, r] = sum of |w * a|, what rounding errors are measured
// against. Both [tokens, rows].
void reference_matmul(const ReferenceProblem& problem, double* out, double* magnitude);

// Same contract as Kernels::quantize; scales and codes from double arithmetic, so a code may differ
// by one where x / scale lies within 1e-6 of a tie.
void reference_quantize(const float* x, std::size_t x_stride, std::size_t n_tokens,
                        std::size_t columns, std::size_t group, const QuantizedRows& q);

}  // namespace quern::kernels
