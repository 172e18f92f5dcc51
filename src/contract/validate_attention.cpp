#include <algorithm>

#include "contract/rules.hpp"

namespace quern::contract {

using base::cat;

namespace {

void check_heads(const Rules& rules, const std::string& path, const Attention& op) {
  rules.range(path + ".n_heads", op.n_heads, 1, kMaxWidth);
  rules.range(path + ".n_kv_heads", op.n_kv_heads, 1, kMaxWidth);
  rules.range(path + ".d_k", op.d_k, 1, kMaxWidth);
  rules.range(path + ".d_v", op.d_v, 1, kMaxWidth);
  if (op.n_heads % op.n_kv_heads != 0)
    rules.fail(path + ".n_kv_heads", "must divide n_heads", cat(op.n_kv_heads),
               cat("a divisor of ", op.n_heads));
  rules.product(path + ".d_k", {"n_heads x d_k", op.n_heads, op.d_k}, kMaxWidth);
  rules.product(path + ".d_v", {"n_heads x d_v", op.n_heads, op.d_v}, kMaxWidth);
  rules.factor(path + ".scale", op.scale);
}

void check_rotation(const Rules& rules, const std::string& path, const Attention& op) {
  rules.resolves(path + ".rope", *op.rope, rules.contract.ropes, "ropes");
  rules.require(op.d_k % 2 == 0, path + ".d_k", "heads that are rotated have an even width");
  const std::size_t dims = rules.contract.ropes.at(*op.rope).dims;
  if (dims > op.d_k)
    rules.fail(path + ".rope", "rotates more dimensions than a head has", cat(dims),
               cat("at most ", op.d_k));
}

void check_mask(const Rules& rules, const std::string& path, const Mask& mask) {
  if (mask.window) rules.range(path + ".window", *mask.window, 1, kMaxPositions);
  rules.range(path + ".sinks", mask.sinks, 0, kMaxPositions);
  rules.require(mask.window || mask.sinks == 0, path + ".sinks", "sinks belong to a window");
  rules.require(mask.kind == MaskKind::causal || mask.sinks == 0, path + ".sinks",
                "sinks belong to a causal window");
  rules.require(mask.kind != MaskKind::prefix || !mask.window, path + ".window",
                "a prefix mask has no window");
}

void check_alibi(const Rules& rules, const std::string& path, const Attention& op) {
  if (op.alibi->slopes.size() != op.n_heads)
    rules.fail(path + ".slopes", "one slope per head", cat(op.alibi->slopes.size()),
               cat(op.n_heads));
  for (std::size_t i = 0; i < op.n_heads; ++i)
    rules.require(std::isfinite(op.alibi->slopes[i]), cat(path, ".slopes[", i, "]"),
                  "a slope is finite");
}

void check_relative_bias(const Rules& rules, const std::string& path, const RelativeBias& bias) {
  rules.range(path + ".starts", bias.starts.size(), 1, kMaxBuckets);
  rules.require(bias.starts[0] == 0, path + ".starts[0]", "the first bucket starts at distance 0");
  for (std::size_t i = 1; i < bias.starts.size(); ++i)
    rules.require(bias.starts[i] >= bias.starts[i - 1], cat(path, ".starts[", i, "]"),
                  "distances ascend");
}

// What cross-attention cannot have: it knows no positions and no order.
void check_cross(const Rules& rules, const std::string& path, const Attention& op) {
  rules.require(!op.rope && !op.alibi && !op.relative_bias, path + ".source",
                "attention over the encoder has no positions (rope, alibi, relative_bias)");
  rules.require(op.mask.kind == MaskKind::bidirectional && !op.mask.window, path + ".mask",
                "attention over the encoder sees all of it (bidirectional, no window)");
  rules.require(!op.kv_from, path + ".kv_from",
                "attention over the encoder has K and V of its own");
}

void check_indexer(const Rules& rules, const std::string& path, const Mla& op) {
  const Indexer& index = *op.indexer;
  rules.require(op.q_rank.has_value(), path, "an indexer reads the query latent (q_rank)");
  rules.require(op.mask.kind == MaskKind::causal && !op.mask.window, path,
                "an indexer chooses among the keys of a plain causal mask");
  rules.range(path + ".n_heads", index.n_heads, 1, kMaxWidth);
  rules.range(path + ".d_k", index.d_k, 1, kMaxWidth / index.n_heads);
  rules.range(path + ".top_k", index.top_k, 1, kMaxPositions);
  rules.factor(path + ".scale", index.scale);
  rules.resolves(path + ".k_norm", index.k_norm, rules.contract.norms, "norms");
  if (!index.rope) return;
  rules.resolves(path + ".rope", *index.rope, rules.contract.ropes, "ropes");
  rules.require(rules.contract.ropes.at(*index.rope).dims <= index.d_k, path + ".rope",
                "rotates more dimensions than an indexer key has");
}

}  // namespace

void check_attention(const Rules& rules, const std::string& path, const Attention& op) {
  check_heads(rules, path, op);
  if (op.qk_norm) rules.norm_resolves(path + ".qk_norm.norm", op.qk_norm->norm);
  if (op.rope) check_rotation(rules, path, op);
  check_mask(rules, path + ".mask", op.mask);
  if (op.softcap) rules.positive(path + ".softcap", *op.softcap);
  if (op.alibi) check_alibi(rules, path + ".alibi", op);
  if (op.relative_bias) check_relative_bias(rules, path + ".relative_bias", *op.relative_bias);
  if (op.clip_qkv) rules.positive(path + ".clip_qkv", *op.clip_qkv);
  if (op.source == AttentionSource::encoder) check_cross(rules, path, op);
  rules.require(!op.kv_from || (!op.bias_k && !op.bias_v), path + ".bias",
                "an op that reads another layer's cache has no K and V projections to bias");
}

void check_mla(const Rules& rules, const std::string& path, const Mla& op) {
  rules.range(path + ".n_heads", op.n_heads, 1, kMaxWidth);
  if (op.q_rank) rules.range(path + ".q_rank", *op.q_rank, 1, kMaxWidth);
  rules.range(path + ".kv_rank", op.kv_rank, 1, kMaxWidth / 2);
  rules.range(path + ".d_rope", op.d_rope, 2, kMaxWidth / 2);
  rules.range(path + ".d_nope", op.d_nope, 1, kMaxWidth);
  rules.range(path + ".d_v", op.d_v, 1, kMaxWidth);
  rules.product(path + ".n_heads",
                {"n_heads x (d_nope + d_rope)", op.n_heads, op.d_nope + op.d_rope}, kMaxWidth);
  rules.product(path + ".n_heads", {"n_heads x d_v", op.n_heads, op.d_v}, kMaxWidth);
  rules.product(path + ".n_heads", {"n_heads x kv_rank", op.n_heads, op.kv_rank}, kMaxLatentWidth);
  rules.factor(path + ".scale", op.scale);
  rules.require(op.q_rank || !op.q_norm, path + ".q_norm", "belongs to q_rank");
  rules.norm_resolves(path + ".q_norm", op.q_norm);
  rules.resolves(path + ".kv_norm", op.kv_norm, rules.contract.norms, "norms");
  rules.resolves(path + ".rope", op.rope, rules.contract.ropes, "ropes");
  const std::size_t dims = rules.contract.ropes.at(op.rope).dims;
  if (dims != op.d_rope)
    rules.fail(path + ".rope", "rotates the whole rope part of a head", cat(dims),
               cat("d_rope = ", op.d_rope));
  check_mask(rules, path + ".mask", op.mask);
  rules.require(op.mask.kind == MaskKind::causal, path + ".mask.kind",
                "latent attention is causal");
  if (op.indexer) check_indexer(rules, path + ".indexer", op);
}

void check_nsa(const Rules& rules, const std::string& path, const Nsa& op) {
  Attention shape{};
  shape.n_heads = op.n_heads;
  shape.n_kv_heads = op.n_kv_heads;
  shape.d_k = op.d_k;
  shape.d_v = op.d_v;
  shape.scale = op.scale;
  shape.rope = op.rope;
  check_heads(rules, path, shape);
  if (op.rope) check_rotation(rules, path, shape);
  rules.range(path + ".compress_block", op.compress_block, 1, kMaxSelectBlock);
  rules.product(path + ".compress_block",
                {"compress_block x width of a head", op.compress_block, std::max(op.d_k, op.d_v)},
                kMaxWidth);
  rules.range(path + ".compress_stride", op.compress_stride, 1, op.compress_block);
  rules.range(path + ".compress_hidden", op.compress_hidden, 1, kMaxWidth);
  rules.range(path + ".select_block", op.select_block, 1, kMaxSelectBlock);
  rules.range(path + ".n_initial", op.n_initial, 0, kMaxSelectBlock);
  rules.range(path + ".n_local", op.n_local, 1, kMaxSelectBlock);
  rules.range(path + ".n_selected", op.n_selected, op.n_initial + op.n_local, 2 * kMaxSelectBlock);
  rules.range(path + ".window", op.window, 1, kMaxPositions);
  rules.require(
      op.compress_block % op.compress_stride == 0 && op.select_block % op.compress_stride == 0,
      path + ".compress_stride", "divides compress_block and select_block");
}

}  // namespace quern::contract
