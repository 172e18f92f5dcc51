// Which experts a token goes to, and how much each counts: scores in f32, group-limited choice,
// weights (contract::Router). A token's choice depends on its own logits alone. Not here: the
// experts (moe.cpp).
#pragma once

#include <cstdint>

#include "kernels/kernels.hpp"
#include "model/model.hpp"

namespace quern::model {

// Memory for one choice, of one thread; sized for the model's largest router.
struct RouterScratch {
  float* choice;          // [n_experts]: scores the choice goes by
  float* group_scores;    // [n_experts]
  std::uint32_t* groups;  // [n_experts]
};

// logits [n_experts] -> experts [top_k] in ascending order and their weights. Ties go to the lower
// index, NaN is below everything, so there are always top_k different experts. `logits` is
// overwritten.
void choose_experts(const kernels::Kernels& kernels, const Moe& op, float* logits,
                    const RouterScratch& scratch, std::uint32_t* experts, float* weights);

}  // namespace quern::model
