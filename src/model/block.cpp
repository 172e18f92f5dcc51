#include "model/block.hpp"

#include <cstring>
#include <utility>

#include "base/strings.hpp"
#include "model/attention.hpp"
#include "model/ffn.hpp"
#include "model/mla.hpp"
#include "model/moe.hpp"
#include "model/nsa.hpp"

namespace quern::model {

namespace {

// What the branch makes of a row of the stream for its op to read, in h, which may be the same row. In a normed block
// the stream itself becomes what the norm made of it.
void input_row(const kernels::Kernels& kernels, const Branch& branch, bool normed, float* stream, const Rows& h,
               std::size_t t) {
  const float* from = stream;
  if (branch.norm_in) {
    float* to = normed ? stream : h.row(t);
    kernels.norm(branch.norm_in->args, stream, to);
    from = to;
  }
  if (h.row(t) != from) std::memcpy(h.row(t), from, h.width * sizeof(float));
  if (branch.in_scale != 1) kernels.scale(h.row(t), branch.in_scale, h.width);
}

// stored: the keys of this attention are in the cache.
void run_op(Step& step, const Branch& branch, const LazyRows& h, const Rows& y, bool stored) {
  switch (branch.kind) {
    case contract::OpKind::attention:
      return run_attention(step, *branch.attention, h, y, stored);
    case contract::OpKind::ffn:
      return run_ffn(step, *branch.ffn, h, y);
    case contract::OpKind::mla:
      step.begins(Part::other_op);
      return run_mla(step, *branch.mla, h, y);
    case contract::OpKind::moe:
      step.begins(Part::other_op);
      return run_moe(step, *branch.moe, h, y);
    case contract::OpKind::nsa:
      step.begins(Part::other_op);
      return run_nsa(step, *branch.nsa, h, y);
  }
}

// sum = skip_scale * sum + out_scale * y, with the norms before and after it.
void add_row(const kernels::Kernels& kernels, const Addition& addition, std::size_t t) {
  const Branch& branch = *addition.branch;
  const Rows& rows = addition.sum;
  float *sum = rows.row(t), *y = addition.y.row(t);
  if (branch.norm_out) kernels.norm(branch.norm_out->args, y, y);
  if (addition.skip_scale == 1 && branch.out_scale == 1)
    kernels.add(sum, y, rows.width);
  else
    kernels.scaled_add(sum, addition.skip_scale, y, branch.out_scale, rows.width);
  if (branch.norm_after) kernels.norm(branch.norm_after->args, sum, sum);
}

void observe(const Step& step, std::size_t layer, std::size_t branch, const char* part,
             const Rows& rows) {
  if (step.tap == nullptr) return;
  (*step.tap)(base::cat(step.stack.name, ".", layer, ".", branch, ".", part), rows.data, rows.n, rows.width,
              rows.stride);
}

}  // namespace

void run_block(Step& step, const Layer& layer, std::size_t layer_index, Addition& left) {
  const kernels::Kernels& kernels = *step.model.kernels;
  const std::size_t d_model = step.model.contract.d_model;
  const bool parallel = layer.residual == contract::Residual::parallel;
  const bool normed = layer.residual == contract::Residual::normed;
  Rows stream = step.scratch.stream.rows(step.n_tokens(), d_model);
  // In a parallel block every branch reads the block's own input, so the sum grows beside it.
  Rows sum = parallel ? step.scratch.next_stream.rows(step.n_tokens(), d_model) : stream;
  Rows h = stream;
  for (std::size_t b = 0; b < layer.branches.size(); ++b) {
    const Branch& branch = layer.branches[b];
    const bool in_place = branch.in_scale == 1 && (normed || !branch.norm_in);
    if (!branch.shared_norm_in) h = in_place ? stream : step.scratch.normed.rows(step.n_tokens(), d_model);
    auto make = [&, before = left](std::size_t t) {
      if (before.branch != nullptr) add_row(kernels, before, t);
      if (parallel && b == 0) std::memcpy(sum.row(t), stream.row(t), d_model * sizeof(float));
      if (!branch.shared_norm_in) input_row(kernels, branch, normed, stream.row(t), h, t);
    };
    LazyRows input{h, make};
    const bool ends = step.drops_unwanted() && step.stack.last_store == BranchPlace{layer_index, b};
    const bool stored = ends && branch.attention;
    if (stored) {
      store_keys(step, *branch.attention, input);
      step.keep_wanted({&stream, &sum, &h});
      input = h;
    }
    Rows y = step.scratch.branch_out.rows(step.n_tokens(), d_model);
    run_op(step, branch, input, y, stored);
    if (ends && !stored) step.keep_wanted({&stream, &sum, &h, &y});
    left = {sum, y, &branch, parallel && b > 0 ? 1.0F : layer.skip_scale};
    if (step.tap == nullptr) continue;
    observe(step, layer_index, b, "norm_in", h);
    finish_addition(step, left);
    observe(step, layer_index, b, "out", y);
    observe(step, layer_index, b, "stream", sum);
  }
  if (parallel) std::swap(step.scratch.stream, step.scratch.next_stream);
}

void finish_addition(Step& step, Addition& left) {
  if (left.branch == nullptr) return;
  for_tokens(step, left.sum.n, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) add_row(*step.model.kernels, left, t);
  });
  left = {};
}

}  // namespace quern::model
