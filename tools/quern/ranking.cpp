#include "ranking.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "sampling/scores.hpp"

namespace quern::tool {

std::vector<Ranked> rank(std::span<const float> logits, std::size_t k, Activation activation,
                         const std::string& where) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (!std::isfinite(logits[i])) base::reject(where, base::cat("the model's output ", i, " is not finite"));
  std::vector<float> scores(logits.begin(), logits.end());
  if (activation == Activation::softmax) sampling::log_softmax(scores);
  std::vector<Ranked> ranked;
  for (const std::size_t i : sampling::best_indexes(scores, k)) {
    const double score = scores[i];
    if (activation == Activation::none) ranked.push_back({i, score});
    else ranked.push_back({i, activation == Activation::softmax ? std::exp(score) : 1 / (1 + std::exp(-score))});
  }
  return ranked;
}

}  // namespace quern::tool
