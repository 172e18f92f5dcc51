#include <algorithm>

#include "contract/rules.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;

namespace {

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
  rules.names("norms", rules.contract.norms);
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
  rules.names("ropes", rules.contract.ropes);
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

void check_ffn(const Rules& rules, const std::string& path, const Ffn& op) {
  rules.range(path + ".d_ff", op.d_ff, 1, kMaxWidth);
  rules.require(op.gated || !op.clamp, path + ".clamp", "belongs to gated feed-forward ops");
  rules.require(op.gated || op.up_offset == 0, path + ".up_offset",
                "belongs to gated feed-forward ops");
  if (op.clamp) rules.positive(path + ".clamp", *op.clamp);
  rules.between(path + ".up_offset", op.up_offset, -1e6, 1e6);
}

void check_router(const Rules& rules, const std::string& path, const Moe& op) {
  const Router& router = op.router;
  rules.range(path + ".n_groups", router.n_groups, 1, op.n_experts);
  rules.range(path + ".top_groups", router.top_groups, 1, router.n_groups);
  if (op.n_experts % router.n_groups != 0)
    rules.fail(path + ".n_groups", "must divide n_experts", cat(router.n_groups),
               cat("a divisor of ", op.n_experts));
  const std::size_t group = op.n_experts / router.n_groups;
  rules.require(router.group_score != GroupScore::top2_sum || group >= 2 || router.n_groups == 1,
                path + ".group_score", "top2_sum needs two experts in a group");
  rules.require(op.top_k <= group * router.top_groups, path + ".top_groups",
                "the best groups hold fewer experts than top_k");
  rules.between(path + ".normalize_eps", router.normalize_eps, 0, 1);
  rules.factor(path + ".scale", router.scale);
}

void check_moe(const Rules& rules, const std::string& path, const Moe& op) {
  rules.range(path + ".n_experts", op.n_experts, 1, kMaxExperts);
  rules.range(path + ".top_k", op.top_k, 1, op.n_experts);
  check_ffn(rules, path + ".expert", op.expert);
  rules.product(path + ".n_experts",
                {"n_experts x d_ff of an expert", op.n_experts, op.expert.d_ff}, kMaxExpertsWidth);
  check_router(rules, path + ".router", op);
  if (op.shared) check_ffn(rules, path + ".shared", op.shared->ffn);
}

}  // namespace

void check_ops(const Rules& rules) {
  rules.names("ops", rules.contract.ops);
  for (const auto& [name, op] : rules.contract.ops) {
    const std::string path = cat("ops.", name);
    rules.require(op.attention.has_value() == (op.kind == OpKind::attention) &&
                      op.mla.has_value() == (op.kind == OpKind::mla) &&
                      op.nsa.has_value() == (op.kind == OpKind::nsa) &&
                      op.ffn.has_value() == (op.kind == OpKind::ffn) &&
                      op.moe.has_value() == (op.kind == OpKind::moe),
                  path + ".kind", "an op holds the keys of its kind");
    if (op.attention) check_attention(rules, path, *op.attention);
    if (op.mla) check_mla(rules, path, *op.mla);
    if (op.nsa) check_nsa(rules, path, *op.nsa);
    if (op.ffn) check_ffn(rules, path, *op.ffn);
    if (op.moe) check_moe(rules, path, *op.moe);
  }
}

}  // namespace quern::contract
