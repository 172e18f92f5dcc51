// Contract + tensors -> Model: every name is looked up, every shape checked, once.
#pragma once

#include <span>
#include <string_view>

#include "model/model.hpp"

namespace quern::model {

// Binds model.contract (validated) to `tensors`, which must be exactly contract::expected_tensors
// and outlive the model. Sets everything but contract, weights and kernels. `where` names the
// weight file in errors.
void bind(Model& model, std::span<const weights::TensorView> tensors, std::string_view where);

}  // namespace quern::model
