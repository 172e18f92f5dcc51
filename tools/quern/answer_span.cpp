#include "answer_span.hpp"

#include <algorithm>
#include <cmath>

namespace quern::tool {

namespace {

// Softmax over the tokens that may count; 0 for the others. `which`: 0 begins, 1 ends.
std::vector<double> probabilities(std::span<const float> logits, std::span<const std::uint8_t> parts,
                                  std::size_t which) {
  const auto counts = [&](std::size_t i) { return i == 0 || parts[i] == 2; };
  double largest = -INFINITY, sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (counts(i)) largest = std::max(largest, double{logits[2 * i + which]});
  std::vector<double> result(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (counts(i)) sum += result[i] = std::exp(double{logits[2 * i + which]} - largest);
  for (double& p : result) p /= sum;
  return result;
}

}  // namespace

std::vector<AnswerSpan> best_spans(std::span<const float> logits, std::span<const std::uint8_t> parts,
                                   std::size_t longest, std::size_t k) {
  const std::vector<double> begins = probabilities(logits, parts, 0), ends = probabilities(logits, parts, 1);
  std::vector<AnswerSpan> best;
  for (std::size_t first = 0; first < parts.size(); ++first)
    for (std::size_t last = first; last < parts.size() && last - first < longest; ++last) {
      if (parts[first] != 2 || parts[last] != 2) break;
      const AnswerSpan span{first, last, begins[first] * ends[last]};
      if (best.size() == k && span.probability <= best.back().probability) continue;
      const auto after = std::find_if(best.begin(), best.end(),
                                      [&](const AnswerSpan& other) { return other.probability < span.probability; });
      best.insert(after, span);
      if (best.size() > k) best.pop_back();
    }
  return best;
}

}  // namespace quern::tool
