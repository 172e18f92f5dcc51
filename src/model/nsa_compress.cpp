#include <algorithm>
#include <cstring>

#include "model/linear.hpp"
#include "model/nsa.hpp"

namespace quern::model {

using kernels::kBlockTokens;

namespace {

// A block of tokens that became complete: `index` counts the compressed rows of its sequence.
struct NewBlock {
  const Run* run;
  std::size_t index;
};

std::size_t n_new(const Nsa& op, const Run& run) {
  return op.compressed_rows(run.first_position + run.n_tokens) -
         op.compressed_rows(run.first_position);
}

NewBlock new_block(const Step& step, const Nsa& op, std::size_t item) {
  const Run* run = step.runs.data();
  while (item >= n_new(op, *run)) item -= n_new(op, *run++);
  return {run, op.compressed_rows(run->first_position) + item};
}

// K and V of one token and KV head from a cache layer that keeps exact values.
void read_exact(const kernels::CacheLayout& layout, const std::byte* block, std::size_t slot,
                float* k, float* v) {
  const auto* keys = reinterpret_cast<const float*>(block);
  for (std::size_t d = 0; d < layout.d_k; ++d)
    k[d] = keys[((slot / 16) * layout.d_k + d) * 16 + slot % 16];
  const auto* values = reinterpret_cast<const float*>(block + layout.v_offset);
  std::memcpy(v, values + slot * ((layout.d_v + 15) / 16 * 16), layout.d_v * sizeof(float));
}

// Rows of the blocks, the position table added: [blocks, compress_block * width] of K and of V.
void gather(Step& step, const Nsa& op, std::size_t kv_head, const Rows& k, const Rows& v) {
  const contract::Nsa& spec = *op.spec;
  const std::size_t layer = op.branches[0].cache_layer;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t item = begin; item < end; ++item) {
      const NewBlock block = new_block(step, op, item);
      for (std::size_t j = 0; j < spec.compress_block; ++j) {
        const std::size_t row = block.run->first_row + block.index * spec.compress_stride + j;
        read_exact(step.cache.layout(layer),
                   step.cache.block(layer, block.run->cache_sequence, kv_head, row),
                   row % kBlockTokens, k.row(item) + j * spec.d_k, v.row(item) + j * spec.d_v);
      }
      step.model.kernels->add(k.row(item), op.phi_k.position, k.width);
      step.model.kernels->add(v.row(item), op.phi_v.position, v.width);
    }
  };
  step.pool.parallel_for(k.n, 1, work);
}

// out(relu(in(rows))).
void run_phi(Step& step, const Nsa::Phi& phi, const Rows& rows, const Rows& out) {
  const Rows hidden = step.scratch.nsa.hidden.rows(rows.n, phi.in.out);
  run_linear(step, rows, phi.in, hidden);
  for (std::size_t i = 0; i < hidden.n; ++i)
    step.model.kernels->activate(kernels::ActivationOp::relu, hidden.row(i), hidden.width);
  run_linear(step, hidden, phi.out, out);
}

void store(Step& step, const Nsa& op, std::size_t kv_head, const Rows& k, const Rows& v) {
  const std::size_t layer = op.compressed.cache_layer;
  for (std::size_t item = 0; item < k.n; ++item) {
    const NewBlock block = new_block(step, op, item);
    const std::size_t row = block.run->first_row + block.index;
    step.model.kernels->store_kv(step.cache.layout(layer), k.row(item), v.row(item),
                                 step.cache.block(layer, block.run->cache_sequence, kv_head, row),
                                 row % kBlockTokens);
  }
}

}  // namespace

void compress_blocks(Step& step, const Nsa& op) {
  const contract::Nsa& spec = *op.spec;
  const NsaScratch& memory = step.scratch.nsa;
  std::size_t n = 0;  // at most one block a token
  for (const Run& run : step.runs) n += n_new(op, run);
  if (n == 0) return;
  const Rows flat_k = memory.flat_k.rows(n, spec.compress_block * spec.d_k);
  const Rows flat_v = memory.flat_v.rows(n, spec.compress_block * spec.d_v);
  const Rows k = memory.row_k.rows(n, spec.d_k), v = memory.row_v.rows(n, spec.d_v);
  for (std::size_t head = 0; head < spec.n_kv_heads; ++head) {
    gather(step, op, head, flat_k, flat_v);
    run_phi(step, op.phi_k, flat_k, k);
    run_phi(step, op.phi_v, flat_v, v);
    store(step, op, head, k, v);
  }
}

}  // namespace quern::model
