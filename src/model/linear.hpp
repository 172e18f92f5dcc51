// y = W x + b for rows of activations: several matrices that share one input run in one parallel
// region, after one that makes the input's rows. Not here: how a matrix is stored (quant) or multiplied (kernels).
#pragma once

#include <span>

#include "model/step.hpp"

namespace quern::model {

struct LinearJob {
  const Linear* linear;
  Rows out;  // [n, linear->out], stride >= out padded to 16
};

// Makes the rows of `input`. Integer formats see them as int8 codes, quantized once for all jobs of the same activation
// group.
void run_linears(Step& step, const LazyRows& input, std::span<const LinearJob> jobs);

// Rows of a matmul's input: floats, and the same rows as codes, one set per activation group.
struct MatmulInput {
  Rows rows;
  std::span<const QuantizedInput> quantized;
};

// Makes the rows of `input`, and their codes for each of `groups`.
void make_rows(const Step& step, const LazyRows& input, std::span<const QuantizedInput> quantized,
               std::span<const std::size_t> groups);

// Panels [first, end) of a matrix meet rows [row, row + n_rows) of its input.
struct Piece {
  std::size_t first, end, row, n_rows;
};
// On the calling thread; row 0 of `out` is the piece's first row. Bias included.
void run_piece(const Step& step, const MatmulInput& input, const Linear& linear, const Piece& piece,
               const Rows& out, std::size_t thread);

inline void run_linear(Step& step, const LazyRows& input, const Linear& linear, const Rows& out) {
  const LinearJob job{&linear, out};
  run_linears(step, input, {&job, 1});
}

}  // namespace quern::model
