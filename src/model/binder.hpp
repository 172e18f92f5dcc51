// The work behind bind(): looks tensors up by name and builds the parts of the model. Private to
// bind_*.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "contract/tensors.hpp"
#include "model/model.hpp"

namespace quern::model {

kernels::ActivationOp activation_op(contract::Activation activation);

class Binder {
 public:
  Binder(Model& model, std::string_view where)
      : model_(model), contract_(model.contract), where_(where) {}

  // bind.cpp: the tensors are those of the contract; matrices and norms by name.
  void index_tensors(std::span<const weights::TensorView> tensors);
  // bind_ends.cpp
  void bind_ropes();
  void bind_head();
  void bind_pooling();
  // bind_stack.cpp
  Stack stack(std::string_view name, const contract::Stack& spec);

 private:
  const weights::TensorView* tensor(const std::string& name) const { return by_name_.at(name); }
  const float* floats(const std::string& name) const { return tensor(name)->floats(); }
  Linear linear(const std::string& name, bool bias) const;
  Linear linear(const std::string& name, const weights::TensorView* weight, bool bias) const;
  // `prefix` without the dot; `copies`: weights of that many rows of `width` (qk_norm each_head).
  Norm norm(const std::string& kind, const std::string& prefix, std::size_t width,
            std::size_t copies = 1) const;
  std::optional<Norm> optional_norm(const std::optional<std::string>& kind,
                                    const std::string& prefix) const;

  // bind_ends.cpp; `tokens`: the table shared with another embedding, or nullptr.
  Embedding embedding(const contract::Embedding& spec, const std::string& prefix,
                      const weights::TensorView* tokens) const;

  HeadTransform transform(const contract::HeadTransform& spec, const std::string& name) const;

  // A stack in the making, and where each of its layers keeps K and V.
  struct StackPlace {
    const contract::Stack& spec;
    Stack& stack;
    std::vector<std::optional<std::size_t>> cache_of_layer;
  };
  Branch branch(StackPlace& place, const contract::LayerRef& ref, std::size_t index,
                std::size_t layer);

  // bind_ops.cpp
  Attention attention(StackPlace& place, const contract::Attention& spec, const std::string& prefix,
                      std::size_t layer);
  void bind_qk_norm(Attention& attention, const std::string& prefix) const;
  void bind_cache(StackPlace& place, Attention& attention, std::size_t layer) const;
  void bind_reader(StackPlace& place, Attention& attention, std::size_t layer) const;
  Ffn ffn(const contract::Ffn& spec, const std::string& prefix) const;
  // bind_mla.cpp, bind_nsa.cpp, bind_moe.cpp
  Mla mla(StackPlace& place, const contract::Mla& spec, const std::string& prefix) const;
  Indexer indexer(StackPlace& place, const contract::Mla& spec, const std::string& prefix) const;
  Linear latent_matrix(const std::string& name) const;
  Nsa nsa(StackPlace& place, const contract::Nsa& spec, const std::string& prefix) const;
  Nsa::Phi phi(const std::string& prefix) const;
  Moe moe(const contract::Moe& spec, const std::string& prefix);

  void check_tensor(const contract::TensorSpec& spec) const;

  Model& model_;
  const contract::Contract& contract_;
  std::string where_;
  std::unordered_map<std::string_view, const weights::TensorView*> by_name_;
  std::unordered_map<std::string_view, std::size_t> rope_index_;
};

}  // namespace quern::model
