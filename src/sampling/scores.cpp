#include "sampling/scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::sampling {

void check_finite(std::span<const float> logits, std::size_t step) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  constexpr std::size_t kBlock = 64;  // looked at together, so that compilers make vectors of it
  const auto bad = [&](std::size_t i) {
    std::uint32_t bits;
    std::memcpy(&bits, &logits[i], sizeof bits);
    return (bits & kExponent) == kExponent;
  };
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, logits.size());
    std::uint32_t any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= bad(i) ? 1U : 0U;
    if (any == 0) continue;
    std::size_t first = begin;
    while (!bad(first)) ++first;
    base::reject("model", base::cat("logit of token ", first, " is not finite at step ", step),
                 base::cat(logits[first]));
  }
}

void log_softmax(std::span<float> scores) {
  if (scores.empty()) return;
  const float largest = *std::max_element(scores.begin(), scores.end());
  if (largest == -std::numeric_limits<float>::infinity()) return;
  double sum = 0;
  for (const float score : scores) sum += std::exp(double{score} - double{largest});
  const double shift = double{largest} + std::log(sum);
  for (float& score : scores) score = static_cast<float>(double{score} - shift);
}

std::vector<std::size_t> best_indexes(std::span<const float> values, std::size_t k) {
  const auto before = [&](std::size_t a, std::size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  // A heap whose front is the worst of the k kept so far.
  std::vector<std::size_t> best;
  best.reserve(std::min(k, values.size()));
  for (std::size_t i = 0; i < values.size() && k > 0; ++i) {
    if (best.size() == k) {
      if (!before(i, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), before);
      best.pop_back();
    }
    best.push_back(i);
    std::push_heap(best.begin(), best.end(), before);
  }
  std::sort_heap(best.begin(), best.end(), before);
  return best;
}

}  // namespace quern::sampling
