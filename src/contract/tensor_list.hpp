// The list of tensors while it is collected: one call per tensor, in the order of the forward pass.
// Internal to contract/. Not here: which tensors a part has (tensors.cpp, tensors_ops.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "contract/tensors.hpp"

namespace quern::contract {

struct TensorList {
  explicit TensorList(const Contract& subject) : contract(subject) {}

  const Contract& contract;
  std::vector<TensorSpec> specs;

  void matrix(std::string name, std::size_t rows, std::size_t columns, TensorRole role) {
    specs.push_back({std::move(name), rows, columns, role, true});
  }
  void table(std::string name, std::size_t rows, std::size_t columns, TensorRole role) {
    specs.push_back({std::move(name), rows, columns, role, false});
  }
  void linear(const std::string& name, std::size_t rows, std::size_t columns, TensorRole role,
              bool bias) {
    matrix(name + ".weight", rows, columns, role);
    if (bias) table(name + ".bias", 1, rows, TensorRole::bias);
  }
  // The norm `name` of the contract; the prefix ends with a dot.
  void norm(const std::string& prefix, const std::string& name, std::size_t width) {
    const Norm& spec = contract.norms.at(name);
    if (spec.weight) table(prefix + "weight", 1, width, TensorRole::norm);
    if (spec.bias) table(prefix + "bias", 1, width, TensorRole::norm);
  }
  void optional_norm(const std::string& prefix, const std::optional<std::string>& name,
                     std::size_t width) {
    if (name) norm(prefix, *name, width);
  }
};

// tensors_ops.cpp
void add_op(TensorList& list, const std::string& prefix, const Op& op);

}  // namespace quern::contract
