// Mixtures of experts.
#include <algorithm>

#include "base/strings.hpp"
#include "model/binder.hpp"

namespace quern::model {

namespace {

void add_group(const Linear& linear, std::vector<std::size_t>& groups) {
  if (linear.weight == nullptr) return;
  const std::size_t group = linear.weight->format->activation_group;
  if (group != 0 && std::find(groups.begin(), groups.end(), group) == groups.end())
    groups.push_back(group);
}

}  // namespace

Moe Binder::moe(const contract::Moe& spec, const std::string& prefix) {
  Moe result;
  result.spec = &spec;
  result.router = linear(prefix + "router", spec.router.bias);
  if (spec.router.select_bias) result.select_bias = floats(prefix + "router.select_bias");
  for (std::size_t e = 0; e < spec.n_experts; ++e) {
    result.experts.push_back(ffn(spec.expert, base::cat(prefix, "expert.", e, ".")));
    const Ffn& expert = result.experts.back();
    add_group(expert.gate, result.groups_in);
    add_group(expert.up, result.groups_in);
    add_group(expert.down, result.groups_down);
  }
  if (spec.shared) {
    result.shared = ffn(spec.shared->ffn, prefix + "shared.");
    if (spec.shared->gate) result.shared_router = linear(prefix + "shared.router", false);
  }
  result.index = model_.n_moe_layers++;
  return result;
}

}  // namespace quern::model
