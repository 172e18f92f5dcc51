#include "model/router.hpp"

#include <algorithm>
#include <limits>

namespace quern::model {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The n best of `values`, best first; ties to the lower index, NaN below everything.
void best(const float* values, std::size_t n_values, std::size_t n, std::uint32_t* found) {
  std::size_t held = 0;
  for (std::size_t i = 0; i < n_values; ++i) {
    std::size_t place = held;
    while (place > 0 &&
           (values[i] > values[found[place - 1]] ||
            (values[found[place - 1]] != values[found[place - 1]] && values[i] == values[i])))
      --place;
    if (place == n) continue;
    const std::size_t last = held < n ? held++ : n - 1;
    for (std::size_t at = last; at > place; --at) found[at] = found[at - 1];
    found[place] = static_cast<std::uint32_t>(i);
  }
}

float group_score(contract::GroupScore kind, const float* scores, std::size_t n) {
  float first = kLowest, second = kLowest;
  for (std::size_t i = 0; i < n; ++i) {
    if (scores[i] > first) {
      second = first;
      first = scores[i];
    } else if (scores[i] > second) {
      second = scores[i];
    }
  }
  return kind == contract::GroupScore::max ? first : first + second;
}

// Takes the experts outside the best groups out of the choice.
void limit_groups(const contract::Moe& spec, const RouterScratch& scratch) {
  const contract::Router& router = spec.router;
  const std::size_t size = spec.n_experts / router.n_groups;
  for (std::size_t g = 0; g < router.n_groups; ++g)
    scratch.group_scores[g] = group_score(router.group_score, scratch.choice + g * size, size);
  best(scratch.group_scores, router.n_groups, router.top_groups, scratch.groups);
  std::sort(scratch.groups, scratch.groups + router.top_groups);
  const std::uint32_t* next = scratch.groups;
  for (std::size_t g = 0; g < router.n_groups; ++g) {
    if (next != scratch.groups + router.top_groups && *next == g)
      ++next;
    else  // below every score, NaN included
      std::fill_n(scratch.choice + g * size, size, std::numeric_limits<float>::quiet_NaN());
  }
}

// Weights of the chosen, from their unbiased scores.
void weigh(const contract::Router& router, std::size_t top_k, float* weights) {
  if (router.normalize) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < top_k; ++k) sum += weights[k];
    sum += static_cast<float>(router.normalize_eps);
    for (std::size_t k = 0; k < top_k; ++k) weights[k] /= sum;
  }
  if (router.scale != 1)
    for (std::size_t k = 0; k < top_k; ++k) weights[k] *= static_cast<float>(router.scale);
}

// Ascending experts, so that their outputs are added in one order.
void sort_pairs(std::uint32_t* experts, float* weights, std::size_t n) {
  for (std::size_t i = 1; i < n; ++i)
    for (std::size_t j = i; j > 0 && experts[j - 1] > experts[j]; --j) {
      std::swap(experts[j - 1], experts[j]);
      std::swap(weights[j - 1], weights[j]);
    }
}

}  // namespace

void choose_experts(const kernels::Kernels& kernels, const Moe& op, float* logits,
                    const RouterScratch& scratch, std::uint32_t* experts, float* weights) {
  const contract::Moe& spec = *op.spec;
  const contract::RouterScore kind = spec.router.score;
  if (kind == contract::RouterScore::softmax) kernels.softmax(logits, spec.n_experts);
  if (kind == contract::RouterScore::sigmoid) kernels.sigmoid(logits, spec.n_experts);
  for (std::size_t e = 0; e < spec.n_experts; ++e)
    scratch.choice[e] = op.select_bias == nullptr ? logits[e] : logits[e] + op.select_bias[e];
  if (spec.router.n_groups > 1) limit_groups(spec, scratch);
  best(scratch.choice, spec.n_experts, spec.top_k, experts);
  for (std::size_t k = 0; k < spec.top_k; ++k) weights[k] = logits[experts[k]];
  if (kind == contract::RouterScore::softmax_selected) kernels.softmax(weights, spec.top_k);
  weigh(spec.router, spec.top_k, weights);
  sort_pairs(experts, weights, spec.top_k);
}

}  // namespace quern::model
