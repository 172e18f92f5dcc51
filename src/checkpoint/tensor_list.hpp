// The tensors of a checkpoint with a look-up by name. Built once, then constant.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

class TensorList {
 public:
  TensorList() = default;
  explicit TensorList(std::vector<SourceTensor> tensors) : tensors_(std::move(tensors)) {
    by_name_.reserve(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (!by_name_.emplace(tensors_[i].name, i).second && duplicate_ == nullptr)
        duplicate_ = &tensors_[i];
  }
  TensorList(TensorList&&) =
      default;  // the names stay where they are: a moved vector keeps its elements
  TensorList& operator=(TensorList&&) = default;

  const std::vector<SourceTensor>& all() const { return tensors_; }
  // The first tensor whose name another one has already, or nullptr.
  const SourceTensor* duplicate() const { return duplicate_; }
  const SourceTensor* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &tensors_[found->second];
  }

 private:
  std::vector<SourceTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  const SourceTensor* duplicate_ = nullptr;
};

}  // namespace quern::checkpoint
