// Tensors that no file holds as they are: tables of sinusoids, and matrices put together from
// vectors of their own. Not here: which tensor of the contract needs one (tensor_plan.hpp).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "convert/recipe.hpp"

namespace quern::convert {

// One row per tensor, all of one length.
std::unique_ptr<MadeTensor> stacked_rows(
    const std::vector<const checkpoint::SourceTensor*>& tensors, std::string_view where);

// Row i of the answer = matrix * row i of the table: [n, k] and [m, k] -> [n, m], sums in float64.
std::unique_ptr<MadeTensor> projected_rows(const checkpoint::SourceTensor& table,
                                           const checkpoint::SourceTensor& matrix,
                                           std::string_view where);

bool is_made(const checkpoint::SourceTensor& tensor);

}  // namespace quern::convert
