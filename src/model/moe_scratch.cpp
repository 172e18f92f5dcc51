#include "model/moe_scratch.hpp"

#include <algorithm>

#include "base/round_up.hpp"
#include "model/model.hpp"

namespace quern::model {

namespace {

// Largest of each number over the model's mixtures of experts.
struct Need {
  std::size_t n_experts = 0, top_k = 0, d_ff = 0, shared = 0;
  std::vector<std::size_t> groups;

  void add(const Moe& op) {
    n_experts = std::max(n_experts, op.spec->n_experts);
    top_k = std::max(top_k, op.spec->top_k);
    d_ff = std::max(d_ff, op.spec->expert.d_ff);
    if (op.shared_router) shared = 1;
    for (const auto* list : {&op.groups_in, &op.groups_down})
      for (const std::size_t group : *list)
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
};

}  // namespace

MoeScratch::MoeScratch(const Model& model, std::size_t max_chunk, std::size_t n_threads) {
  Need need;
  for_branches(model, [&](const Branch& branch) {
    if (!branch.moe) return;
    need.add(*branch.moe);
    loads.emplace_back(branch.moe->spec->n_experts, 0);
  });
  if (need.n_experts == 0) return;
  const std::size_t d_model = model.contract.d_model, n_rows = max_chunk * need.top_k;
  scores = RowBuffer(max_chunk, need.n_experts);
  shared_scores = RowBuffer(max_chunk, need.shared);
  experts = LazyArray<std::uint32_t>(n_rows);
  weights = LazyArray<float>(n_rows);
  row_of = LazyArray<std::uint32_t>(n_rows);
  token_of = LazyArray<std::uint32_t>(n_rows);
  first_row.resize(need.n_experts + 1);
  active.reserve(need.n_experts);
  input = RowBuffer(n_rows, d_model);
  out = RowBuffer(n_rows, d_model);
  gate = RowBuffer(n_rows, need.d_ff);
  up = RowBuffer(n_rows, need.d_ff);
  for (const std::size_t group : need.groups)
    quantized.emplace_back(group, n_rows, std::max(d_model, need.d_ff));
  router_stride = base::round_up(need.n_experts, 16);
  choice = LazyArray<float>(2 * n_threads * router_stride);
  groups = LazyArray<std::uint32_t>(n_threads * router_stride);
}

std::size_t MoeScratch::bytes() const {
  std::size_t total = weights.bytes() * 4 + choice.bytes() + groups.bytes();
  for (const RowBuffer* buffer : {&scores, &shared_scores, &input, &gate, &up, &out})
    total += buffer->memory.bytes();
  for (const QuantizedInput& rows : quantized) total += rows.bytes();
  return total;
}

}  // namespace quern::model
