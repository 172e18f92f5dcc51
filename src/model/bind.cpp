#include "model/bind.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/binder.hpp"
#include "quant/formats.hpp"

namespace quern::model {

using base::cat;

// The tensors of the file and those of the contract are the same set, with the same shapes.
void Binder::index_tensors(std::span<const weights::TensorView> tensors) {
  for (const weights::TensorView& view : tensors) by_name_.emplace(view.name, &view);
  const std::vector<contract::TensorSpec> expected = contract::expected_tensors(contract_);
  for (const contract::TensorSpec& spec : expected) check_tensor(spec);
  if (by_name_.size() == expected.size()) return;
  std::vector<std::string_view> names;
  for (const contract::TensorSpec& spec : expected) names.push_back(spec.name);
  std::sort(names.begin(), names.end());
  for (const weights::TensorView& view : tensors)
    if (!std::binary_search(names.begin(), names.end(), std::string_view(view.name)))
      base::reject(cat(where_, ": ", view.name), "tensor that the contract does not have");
}

void Binder::check_tensor(const contract::TensorSpec& spec) const {
  const std::string where = cat(where_, ": ", spec.name);
  const auto found = by_name_.find(spec.name);
  if (found == by_name_.end()) base::reject(where, "tensor is missing");
  const weights::TensorView& view = *found->second;
  if (view.rows != spec.rows || view.columns != spec.columns)
    base::reject(where, "wrong shape", cat("[", view.rows, ", ", view.columns, "]"),
                 cat("[", spec.rows, ", ", spec.columns, "]"));
  const bool table = view.format->id == quant::FormatId::rows_f32;
  if (spec.matrix == table)
    base::reject(where, "wrong format", view.format->name,
                 spec.matrix ? "a matrix format" : "rows_f32");
}

Linear Binder::linear(const std::string& name, bool bias) const {
  return linear(name, tensor(name + ".weight"), bias);
}

// A matrix that goes by another name (the tied head), with the bias of `name`.
Linear Binder::linear(const std::string& name, const weights::TensorView* weight, bool bias) const {
  Linear result;
  result.weight = weight;
  result.bias = bias ? floats(name + ".bias") : nullptr;
  result.matmul = model_.kernels->matmul[quant::format_index(weight->format->id)];
  if (result.matmul == nullptr)
    base::reject(cat(where_, ": ", name), "no kernel for this format", weight->format->name);
  result.out = weight->rows;
  result.in = weight->columns;
  result.panel_bytes = quant::panel_bytes(*weight->format, weight->columns);
  result.n_panels = quant::n_panels(weight->rows);
  return result;
}

Norm Binder::norm(const std::string& kind, const std::string& prefix, std::size_t width,
                  std::size_t copies) const {
  const contract::Norm& spec = contract_.norms.at(kind);
  Norm result;
  result.args.op = spec.kind == contract::NormKind::rms_norm ? kernels::NormOp::rms_norm
                                                             : kernels::NormOp::layer_norm;
  result.args.n = width;
  result.args.eps = static_cast<float>(spec.eps);
  result.args.weight = spec.weight ? floats(prefix + ".weight") : nullptr;
  result.args.bias = spec.bias ? floats(prefix + ".bias") : nullptr;
  result.args.accumulate_f64 = spec.accumulate == contract::Accumulate::f64;
  if (spec.weight && spec.weight_offset != 0) {
    result.weight.assign(result.args.weight, result.args.weight + copies * width);
    for (float& w : result.weight) w += static_cast<float>(spec.weight_offset);
    result.args.weight = result.weight.data();
  }
  return result;
}

std::optional<Norm> Binder::optional_norm(const std::optional<std::string>& kind,
                                          const std::string& prefix) const {
  if (!kind) return std::nullopt;
  return norm(*kind, prefix, contract_.d_model);
}

void bind(Model& model, std::span<const weights::TensorView> tensors, std::string_view where) {
  Binder binder(model, where);
  binder.index_tensors(tensors);
  binder.bind_ropes();
  if (model.contract.encoder) model.encoder = binder.stack("encoder", *model.contract.encoder);
  if (model.contract.decoder) model.decoder = binder.stack("decoder", *model.contract.decoder);
  binder.bind_head();
  binder.bind_pooling();
}

}  // namespace quern::model
