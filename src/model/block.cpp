#include "model/block.hpp"

#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "model/attention.hpp"
#include "model/ffn.hpp"
#include "model/mla.hpp"
#include "model/moe.hpp"
#include "model/norm.hpp"
#include "model/nsa.hpp"

namespace quern::model {

namespace {

// What the branch reads: the stream, normed and scaled; `previous` is the input of the branch
// before. In a normed block the stream itself becomes what the norm made of it.
Rows branch_input(Step& step, const Layer& layer, const Branch& branch, const Rows& stream, const Rows& previous) {
  if (branch.shared_norm_in) return previous;
  const bool in_place = layer.residual == contract::Residual::normed;
  if (in_place) normalize(step, *branch.norm_in, stream, stream);
  const bool norm = branch.norm_in && !in_place;
  if (!norm && branch.in_scale == 1) return stream;
  const Rows h = step.scratch.normed.rows(stream.n, stream.width);
  if (norm)
    normalize(step, *branch.norm_in, stream, h);
  else
    std::memcpy(h.data, stream.data, stream.n * stream.stride * sizeof(float));
  if (branch.in_scale != 1)
    for (std::size_t t = 0; t < h.n; ++t)
      step.model.kernels->scale(h.row(t), branch.in_scale, h.width);
  return h;
}

void run_op(Step& step, const Branch& branch, const Rows& h, const Rows& y) {
  switch (branch.kind) {
    case contract::OpKind::attention:
      return run_attention(step, *branch.attention, h, y);
    case contract::OpKind::ffn:
      return run_ffn(step, *branch.ffn, h, y);
    case contract::OpKind::mla:
      return run_mla(step, *branch.mla, h, y);
    case contract::OpKind::moe:
      return run_moe(step, *branch.moe, h, y);
    case contract::OpKind::nsa:
      return run_nsa(step, *branch.nsa, h, y);
  }
}

// stream = skip_scale * stream + out_scale * y.
void add_branch(Step& step, const Rows& stream, float skip_scale, const Rows& y, float out_scale) {
  const kernels::Kernels& kernels = *step.model.kernels;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      if (skip_scale == 1 && out_scale == 1)
        kernels.add(stream.row(t), y.row(t), stream.width);
      else
        kernels.scaled_add(stream.row(t), skip_scale, y.row(t), out_scale, stream.width);
    }
  };
  for_tokens(step, stream.n, work);
}

void observe(const Step& step, std::size_t layer, std::size_t branch, const char* part,
             const Rows& rows) {
  if (step.tap == nullptr) return;
  (*step.tap)(base::cat(step.stack.name, ".", layer, ".", branch, ".", part), rows.data, rows.n, rows.width,
              rows.stride);
}

}  // namespace

void run_block(Step& step, const Layer& layer, std::size_t layer_index) {
  Scratch& scratch = step.scratch;
  const std::size_t n = step.n_tokens(), d_model = step.model.contract.d_model;
  const bool parallel = layer.residual == contract::Residual::parallel;
  const Rows stream = scratch.stream.rows(n, d_model);
  // In a parallel block every branch reads the block's own input, so the sum grows beside it.
  const Rows sum = parallel ? scratch.next_stream.rows(n, d_model) : stream;
  if (parallel) std::memcpy(sum.data, stream.data, n * stream.stride * sizeof(float));
  const Rows y = scratch.branch_out.rows(n, d_model);
  Rows h = stream;
  for (std::size_t b = 0; b < layer.branches.size(); ++b) {
    const Branch& branch = layer.branches[b];
    h = branch_input(step, layer, branch, stream, h);
    observe(step, layer_index, b, "norm_in", h);
    run_op(step, branch, h, y);
    if (branch.norm_out) normalize(step, *branch.norm_out, y, y);
    observe(step, layer_index, b, "out", y);
    add_branch(step, sum, parallel && b > 0 ? 1.0F : layer.skip_scale, y, branch.out_scale);
    if (branch.norm_after) normalize(step, *branch.norm_after, sum, sum);
    observe(step, layer_index, b, "stream", sum);
  }
  if (parallel) std::swap(scratch.stream, scratch.next_stream);
}

}  // namespace quern::model
