#include "quant/uniform_fit.hpp"

#include <algorithm>
#include <cmath>

#include "quant/f16_scale.hpp"

namespace quern::quant {

namespace {

constexpr int kCandidates = 19;  // steps around the one that just covers the range

struct Group {
  float x[kGroupColumns];
  float weight[kGroupColumns];
};

Group prepare(const float* values, const float* weights) {
  Group group;
  float largest = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    group.x[k] = representable(values[k]);
    group.weight[k] = weights == nullptr ? 1 : weights[k];
    largest = std::max(largest, group.weight[k]);
  }
  // Relative importance only; without any, every column counts the same.
  for (float& weight : group.weight) weight = largest > 0 ? weight / largest : 1;
  return group;
}

// Codes of the group for `scale * (code - zero) + minimum`, into fit.codes; returns the error.
double assign(const Group& group, int zero, int largest, UniformGroup& fit) {
  const float inverse = fit.scale == 0 ? 0 : 1 / fit.scale;
  double error = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    const float real = (group.x[k] - fit.minimum) * inverse + static_cast<float>(zero);
    const float code = round_to_even(std::clamp(real, 0.0F, static_cast<float>(largest)));
    const float value = fit.scale * (code - static_cast<float>(zero)) + fit.minimum;
    const float difference = group.x[k] - value;
    fit.codes[k] = static_cast<std::uint8_t>(code);
    error += static_cast<double>(group.weight[k] * (difference * difference));
  }
  return error;
}

void keep_better(const UniformGroup& fit, double error, UniformGroup& best, double& best_error) {
  if (!(error < best_error)) return;
  best = fit;
  best_error = error;
}

// Least squares of the scale for the codes of `fit`.
float refit_scale(const Group& group, int zero, const UniformGroup& fit) {
  double product = 0, square = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    const double code = fit.codes[k] - zero;
    product += code * static_cast<double>(group.weight[k]) * static_cast<double>(group.x[k]);
    square += code * static_cast<double>(group.weight[k]) * code;
  }
  return square > 0 ? round_to_f16(static_cast<float>(product / square)) : fit.scale;
}

// Least squares of scale and minimum together.
void refit_affine(const Group& group, UniformGroup& fit) {
  double sum = 0, codes = 0, squares = 0, values = 0, products = 0;
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    const double weight = static_cast<double>(group.weight[k]);
    const double code = fit.codes[k], x = static_cast<double>(group.x[k]);
    sum += weight;
    codes += weight * code;
    squares += weight * code * code;
    values += weight * x;
    products += weight * code * x;
  }
  const double determinant = sum * squares - codes * codes;
  if (!(determinant > 1e-9 * sum * squares)) return;
  const double scale = (sum * products - codes * values) / determinant;
  fit.scale = round_to_f16(static_cast<float>(scale));
  // The minimum belongs to the scale that is stored, not to the one before rounding.
  fit.minimum =
      round_to_f16(static_cast<float>((values - static_cast<double>(fit.scale) * codes) / sum));
}

}  // namespace

UniformGroup fit_symmetric(const float* values, const float* weights, int zero) {
  const Group group = prepare(values, weights);
  float extreme = 0;  // with its sign: the code range reaches one step further on the negative side
  for (const float x : group.x)
    if (std::fabs(x) > std::fabs(extreme)) extreme = x;
  UniformGroup best;
  best.scale = 0;
  double best_error = assign(group, zero, 2 * zero - 1, best);  // all zero
  for (int i = 0; i < kCandidates && extreme != 0; ++i) {
    const float steps = static_cast<float>(zero) + 0.1F * static_cast<float>(i - kCandidates / 2);
    UniformGroup fit;
    fit.scale = round_to_f16(-extreme / steps);
    if (fit.scale == 0) fit.scale = kSmallestF16;
    keep_better(fit, assign(group, zero, 2 * zero - 1, fit), best, best_error);
    fit.scale = refit_scale(group, zero, fit);
    keep_better(fit, assign(group, zero, 2 * zero - 1, fit), best, best_error);
  }
  return best;
}

UniformGroup fit_affine(const float* values, const float* weights, int largest) {
  const Group group = prepare(values, weights);
  const auto [low, high] = std::minmax_element(std::begin(group.x), std::end(group.x));
  UniformGroup best;
  best.minimum = round_to_f16(*low);
  double best_error = assign(group, 0, largest, best);  // scale 0: enough when all are equal
  for (int i = 0; i < kCandidates && *low < *high; ++i) {
    const float steps = static_cast<float>(largest) + 0.1F * static_cast<float>(i - 5);
    UniformGroup fit;
    fit.minimum = round_to_f16(*low);
    fit.scale = round_to_f16((*high - *low) / steps);
    if (fit.scale == 0) fit.scale = kSmallestF16;
    keep_better(fit, assign(group, 0, largest, fit), best, best_error);
    refit_affine(group, fit);
    keep_better(fit, assign(group, 0, largest, fit), best, best_error);
    // From the centre of the range: candidates wider than the range are shifted down by half a
    // step.
    fit.minimum =
        round_to_f16(*low - 0.5F * (fit.scale * static_cast<float>(largest) - (*high - *low)));
    keep_better(fit, assign(group, 0, largest, fit), best, best_error);
  }
  return best;
}

}  // namespace quern::quant
