#include "contract/rules.hpp"

namespace quern::contract {

using base::cat;

namespace {

void check_branch(const Rules& rules, const std::string& path, const Block& block,
                  std::size_t index) {
  const Branch& branch = block.branches[index];
  if (branch.norm_in == kSharedNorm) {
    rules.require(block.residual == Residual::parallel, path + ".norm_in",
                  "\"shared\" is for parallel blocks (in a sequential one the input has changed)");
    rules.require(index > 0, path + ".norm_in", "\"shared\" needs a branch before it");
    rules.require(block.branches[index - 1].norm_in.has_value(), path + ".norm_in",
                  "\"shared\" needs a norm_in in the branch before it");
    rules.require(branch.in_scale == 1, path + ".in_scale",
                  "is 1 beside \"shared\", which takes the branch's input as it is");
  } else {
    rules.norm_resolves(path + ".norm_in", branch.norm_in);
    rules.require(branch.norm_in || block.residual != Residual::normed, path + ".norm_in",
                  "a \"normed\" block adds to the normed stream, so every branch has a norm");
  }
  rules.resolves(path + ".op", branch.op, rules.contract.ops, "ops");
  rules.norm_resolves(path + ".norm_out", branch.norm_out);
  rules.norm_resolves(path + ".norm_after", branch.norm_after);
  rules.require(!branch.norm_after || block.residual != Residual::parallel, path + ".norm_after",
                "a norm on the sum after each branch belongs to sequential blocks");
  rules.factor(path + ".in_scale", branch.in_scale);
  rules.factor(path + ".out_scale", branch.out_scale);
}

}  // namespace

void check_blocks(const Rules& rules) {
  rules.names("blocks", rules.contract.blocks);
  for (const auto& [name, block] : rules.contract.blocks) {
    const std::string path = cat("blocks.", name);
    rules.range(path + ".branches", block.branches.size(), 1, kMaxBranchesOfBlock);
    rules.factor(path + ".skip_scale", block.skip_scale);
    for (std::size_t i = 0; i < block.branches.size(); ++i)
      check_branch(rules, cat(path, ".branches[", i, "]"), block, i);
  }
}

namespace {

// Bounds before anything is unrolled; every name resolves.
void check_groups(const Rules& rules, const std::string& path, const Stack& stack) {
  rules.range(path + ".layers", stack.layers.size(), 1, kMaxLayers);
  std::size_t n_layers = 0, n_branches = 0;
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    const LayerGroup& group = stack.layers[i];
    const std::string place = cat(path, ".layers[", i, "]");
    rules.range(place + ".repeat", group.repeat, 1, kMaxLayers);
    rules.range(place + ".pattern", group.pattern.size(), 1, kMaxLayers);
    n_layers += group.repeat * group.pattern.size();
    for (std::size_t j = 0; j < group.pattern.size(); ++j) {
      rules.resolves(cat(place, ".pattern[", j, "]"), group.pattern[j], rules.contract.blocks,
                     "blocks");
      n_branches += group.repeat * rules.contract.blocks.at(group.pattern[j]).branches.size();
    }
    if (n_layers > kMaxLayers)
      rules.fail(place, "too many layers", cat(n_layers), cat("at most ", kMaxLayers));
    if (n_branches > kMaxBranchesOfStack)
      rules.fail(place, "too many branches", cat(n_branches), cat("at most ", kMaxBranchesOfStack));
  }
  rules.norm_resolves(path + ".final_norm", stack.final_norm);
}

std::vector<const Attention*> attentions_of(const Contract& contract, const Block& block) {
  std::vector<const Attention*> out;
  for (const Branch& branch : block.branches)
    if (const auto& op = contract.ops.at(branch.op).attention) out.push_back(&*op);
  return out;
}

// The layer whose cache `reader` reads exists, comes earlier, owns one cache, and stored it in
// equal form.
void check_reader(const Rules& rules, const std::vector<LayerRef>& layers, std::size_t layer,
                  const Branch& branch) {
  const Attention& reader = *rules.contract.ops.at(branch.op).attention;
  const std::string path = cat("ops.", branch.op, ".kv_from");
  const std::size_t source = *reader.kv_from;
  if (source >= layer)
    rules.fail(path, "reads a layer that does not come before it", cat(source),
               cat("below ", layer, ", the first layer with this op"));
  const std::vector<const Attention*> owners = attentions_of(rules.contract, *layers[source].block);
  rules.require(owners.size() == 1 && !owners[0]->kv_from, path,
                cat("layer ", source, " does not own exactly one cache"));
  const Attention& owner = *owners[0];
  rules.require(
      owner.n_kv_heads == reader.n_kv_heads && owner.d_k == reader.d_k && owner.d_v == reader.d_v,
      path, cat("layer ", source, " stores n_kv_heads, d_k, d_v of another shape"));
  rules.require(owner.rope == reader.rope, path,
                cat("layer ", source, " rotates its keys by another rope"));
}

// Masks and sources that fit the stack's place.
void check_place(const Rules& rules, const Branch& branch, StackPlace place) {
  const bool in_encoder = place == StackPlace::encoder;
  const Op& op = rules.contract.ops.at(branch.op);
  const std::string path = cat("ops.", branch.op);
  if (op.attention) {
    const bool cross = op.attention->source == AttentionSource::encoder;
    rules.require(!cross || (!in_encoder && rules.contract.kind == ModelKind::encoder_decoder),
                  path + ".source", "only the decoder of an encoder_decoder reads the encoder");
    const bool both_ways = op.attention->mask.kind == MaskKind::bidirectional;
    rules.require(
        cross || both_ways == in_encoder, path + ".mask.kind",
        in_encoder ? "an encoder's mask is bidirectional" : "a decoder's mask is causal or prefix");
    rules.require(!in_encoder || !op.attention->kv_from, path + ".kv_from",
                  "an encoder keeps no cache to read");
  }
  rules.require(!in_encoder || (!op.mla && !op.nsa), path + ".kind",
                "latent and native sparse attention belong to decoders");
}

void check_stack(const Rules& rules, const std::string& path, const Stack& stack,
                 StackPlace place) {
  check_groups(rules, path, stack);
  const std::vector<LayerRef> layers = unroll(rules.contract, stack);
  std::optional<std::string> biased;  // the op whose relative bias the stack's table is of
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (const Branch& branch : layers[layer].block->branches) {
      check_place(rules, branch, place);
      const auto& op = rules.contract.ops.at(branch.op).attention;
      if (!op) continue;
      if (op->kv_from) check_reader(rules, layers, layer, branch);
      if (!op->relative_bias || op->relative_bias->per_layer) continue;
      if (!biased) biased = branch.op;
      const Attention& first = *rules.contract.ops.at(*biased).attention;
      rules.require(first.n_heads == op->n_heads &&
                        first.relative_bias->starts == op->relative_bias->starts &&
                        first.relative_bias->bidirectional == op->relative_bias->bidirectional,
                    cat("ops.", branch.op, ".relative_bias"),
                    cat("the stack has one table, and ops.", *biased, " has another shape of it"));
    }
}

}  // namespace

void check_stacks(const Rules& rules) {
  const Contract& contract = rules.contract;
  const bool encoder = contract.kind != ModelKind::decoder;
  const bool decoder = contract.kind != ModelKind::encoder;
  rules.require(
      contract.encoder.has_value() == encoder, "encoder",
      encoder ? "this kind of model has an encoder stack" : "a decoder has no encoder stack");
  rules.require(
      contract.decoder.has_value() == decoder, "decoder",
      decoder ? "this kind of model has a decoder stack" : "an encoder has no decoder stack");
  if (encoder) check_stack(rules, "encoder", *contract.encoder, StackPlace::encoder);
  if (decoder) check_stack(rules, "decoder", *contract.decoder, StackPlace::decoder);
}

}  // namespace quern::contract
