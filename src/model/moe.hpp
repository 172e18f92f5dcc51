// A mixture of experts: y = sum over a token's experts of weight * expert(x), plus the shared
// expert. Tokens are sorted by expert, each expert multiplies its rows at once, and each token adds
// its experts in ascending order: the bits do not depend on threads, chunks or which tokens come
// together. No token is dropped. Not here: the choice (router.cpp).
#pragma once

#include "model/step.hpp"

namespace quern::model {

void run_moe(Step& step, const Moe& op, const LazyRows& input, const Rows& out);

}  // namespace quern::model
