// Tensors that a formula gives and no checkpoint need store: sinusoidal position tables
// (arXiv 1706.03762). Not here: which tensors those are (contract/tensors.hpp:
// TensorSpec::computed).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/tensors.hpp"

namespace quern::convert {

struct ComputedTensor {
  checkpoint::SourceTensor source;  // f32 over `values`
  std::vector<float> values;
};

// The tensor of a spec that is computed; an input error naming `where` when it is too large.
std::unique_ptr<ComputedTensor> compute_tensor(const contract::Contract& contract,
                                               const contract::TensorSpec& spec,
                                               std::string_view where);

// [rows, columns]: sin and cos of row / 10000^(2i / columns) for column pair i, in double, rounded
// once.
std::vector<float> sinusoids(std::size_t rows, std::size_t columns, contract::SinusoidOrder order);

}  // namespace quern::convert
