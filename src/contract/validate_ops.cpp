#include <algorithm>

#include "contract/rules.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;

namespace {

// Names of the model's own: short words of letters, digits and "_".
template <class Items>
void check_names(const Rules& rules, std::string_view section, const Items& items) {
  if (items.size() > kMaxNames)
    rules.fail(section, "too many entries", cat(items.size()), cat("at most ", kMaxNames));
  for (const auto& item : items) {
    const std::string& name = item.first;
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (name.empty() || name.size() > kMaxNameBytes || !plain)
      rules.fail(cat(section, ".", base::printable(name, kMaxNameBytes)),
                 "a name is 1 to 64 letters, digits and underscores");
  }
}

void check_table(const Rules& rules, const std::string& path, const std::vector<float>& table,
                 std::size_t dims) {
  if (table.size() != dims / 2)
    rules.fail(path, "one frequency per rotated pair", cat(table.size()),
               cat("dims/2 = ", dims / 2));
  for (std::size_t i = 0; i < table.size(); ++i)
    if (!(std::isfinite(table[i]) && table[i] >= 0))
      rules.fail(cat(path, "[", i, "]"), "a frequency is finite and not negative", cat(table[i]));
}

void check_switch(const Rules& rules, const std::string& path, const Rope& rope) {
  const RopeSwitch& rule = *rope.switch_rule;
  rules.range(path + ".original_length", rule.original_length, 1, kMaxPositions);
  if (rule.kind == RopeSwitchKind::dynamic_ntk) {
    rules.positive(path + ".base", rule.base);
    rules.between(path + ".factor", rule.factor, 1, 1e6);
    rules.require(rope.dims > 2, path, "dynamic_ntk needs more than 2 rotated dimensions");
    rules.require(rule.long_inv_freq.empty(), path, "dynamic_ntk has no long table");
  } else {
    check_table(rules, path + ".long_inv_freq", rule.long_inv_freq, rope.dims);
    rules.factor(path + ".long_mscale", rule.long_mscale);
  }
}

}  // namespace

void check_norms(const Rules& rules) {
  check_names(rules, "norms", rules.contract.norms);
  for (const auto& [name, norm] : rules.contract.norms) {
    const std::string path = cat("norms.", name);
    rules.require(name != kSharedNorm, path,
                  "the name \"shared\" is taken by norm_in of parallel blocks");
    rules.positive(path + ".eps", norm.eps);
    rules.require(static_cast<float>(norm.eps) > 0 && norm.eps <= 1, path + ".eps",
                  "eps is above 0 in float32 and at most 1");
    rules.between(path + ".weight_offset", norm.weight_offset, -1e6, 1e6);
    rules.require(norm.weight || norm.weight_offset == 0, path + ".weight_offset",
                  "a norm without a weight has no weight offset");
  }
}

void check_ropes(const Rules& rules) {
  check_names(rules, "ropes", rules.contract.ropes);
  for (const auto& [name, rope] : rules.contract.ropes) {
    const std::string path = cat("ropes.", name);
    rules.range(path + ".dims", rope.dims, 2, kMaxWidth);
    rules.require(rope.dims % 2 == 0, path + ".dims",
                  "rotated dimensions come in pairs (dims is even)");
    rules.positive(path + ".base", rope.base);
    rules.factor(path + ".mscale", rope.mscale);
    check_table(rules, path + ".inv_freq", rope.inv_freq, rope.dims);
    if (rope.switch_rule) check_switch(rules, path + ".switch", rope);
    const auto known = [&](const auto& entry) { return entry.name == rope.rule; };
    rules.require(std::any_of(std::begin(kRopeRules), std::end(kRopeRules), known), path + ".rule",
                  cat("unknown value \"", base::printable(rope.rule, 60), "\""));
  }
}

namespace {

void check_heads(const Rules& rules, const std::string& path, const Attention& op) {
  rules.range(path + ".n_heads", op.n_heads, 1, kMaxWidth);
  rules.range(path + ".n_kv_heads", op.n_kv_heads, 1, kMaxWidth);
  rules.range(path + ".d_k", op.d_k, 1, kMaxWidth);
  rules.range(path + ".d_v", op.d_v, 1, kMaxWidth);
  if (op.n_heads % op.n_kv_heads != 0)
    rules.fail(path + ".n_kv_heads", "must divide n_heads", cat(op.n_kv_heads),
               cat("a divisor of ", op.n_heads));
  rules.require(op.n_heads <= kMaxWidth / op.d_k, path + ".d_k",
                cat("n_heads x d_k is at most ", kMaxWidth));
  rules.require(op.n_heads <= kMaxWidth / op.d_v, path + ".d_v",
                cat("n_heads x d_v is at most ", kMaxWidth));
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
  rules.require(mask.kind == MaskKind::causal, path + ".kind", "a decoder's mask is causal");
  if (mask.window) rules.range(path + ".window", *mask.window, 1, kMaxPositions);
  rules.range(path + ".sinks", mask.sinks, 0, kMaxPositions);
  rules.require(mask.window || mask.sinks == 0, path + ".sinks", "sinks belong to a window");
}

void check_alibi(const Rules& rules, const std::string& path, const Attention& op) {
  if (op.alibi->slopes.size() != op.n_heads)
    rules.fail(path + ".slopes", "one slope per head", cat(op.alibi->slopes.size()),
               cat(op.n_heads));
  for (std::size_t i = 0; i < op.n_heads; ++i)
    rules.require(std::isfinite(op.alibi->slopes[i]), cat(path, ".slopes[", i, "]"),
                  "a slope is finite");
}

void check_attention(const Rules& rules, const std::string& path, const Attention& op) {
  check_heads(rules, path, op);
  if (op.qk_norm) rules.norm_resolves(path + ".qk_norm.norm", op.qk_norm->norm);
  if (op.rope) check_rotation(rules, path, op);
  check_mask(rules, path + ".mask", op.mask);
  if (op.softcap) rules.positive(path + ".softcap", *op.softcap);
  if (op.alibi) check_alibi(rules, path + ".alibi", op);
  rules.require(!op.kv_from || (!op.bias_k && !op.bias_v), path + ".bias",
                "an op that reads another layer's cache has no K and V projections to bias");
}

}  // namespace

void check_ops(const Rules& rules) {
  check_names(rules, "ops", rules.contract.ops);
  for (const auto& [name, op] : rules.contract.ops) {
    const std::string path = cat("ops.", name);
    rules.require(op.attention.has_value() == (op.kind == OpKind::attention) &&
                      op.ffn.has_value() == (op.kind == OpKind::ffn),
                  path + ".kind", "an op holds the keys of its kind");
    if (op.attention) check_attention(rules, path, *op.attention);
    if (op.ffn) rules.range(path + ".d_ff", op.ffn->d_ff, 1, kMaxWidth);
  }
  check_names(rules, "blocks", rules.contract.blocks);
}

}  // namespace quern::contract
