#include "kernels/reference.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace quern::kernels {

namespace {

double activation(const ReferenceProblem& p, std::size_t token, std::size_t k) {
  if (!p.format->integer) return double{p.x[token * p.x_stride + k]};
  const double scale =
      double{p.q.scales[token * p.q.groups_stride + k / p.format->activation_group]};
  return scale * p.q.codes[token * p.q.codes_stride + k];
}

}  // namespace

void reference_matmul(const ReferenceProblem& p, double* out, double* magnitude) {
  const std::size_t bytes = quant::panel_bytes(*p.format, p.columns);
  std::vector<float> row(p.columns);
  for (std::size_t r = 0; r < p.rows; ++r) {
    quant::decode_row(*p.format, p.weights + r / quant::kPanelRows * bytes, r % quant::kPanelRows,
                      p.columns, row.data());
    for (std::size_t t = 0; t < p.n_tokens; ++t) {
      double sum = 0, absolute = 0;
      for (std::size_t k = 0; k < p.columns; ++k) {
        const double term = double{row[k]} * activation(p, t, k);
        sum += term;
        absolute += std::fabs(term);
      }
      out[t * p.rows + r] = sum;
      magnitude[t * p.rows + r] = absolute;
    }
  }
}

void reference_quantize(const float* x, std::size_t x_stride, std::size_t n_tokens,
                        std::size_t columns, std::size_t group, const QuantizedRows& q) {
  for (std::size_t t = 0; t < n_tokens; ++t) {
    std::fill_n(q.codes + t * q.codes_stride, q.codes_stride, std::int8_t{0});
    for (std::size_t begin = 0; begin < columns; begin += group) {
      const std::size_t end = std::min(columns, begin + group);
      double largest = 0;
      for (std::size_t k = begin; k < end; ++k)
        largest = std::max(largest, std::fabs(double{x[t * x_stride + k]}));
      if (largest < 0x1p-110) largest = 0;
      std::int32_t sum = 0;
      for (std::size_t k = begin; k < end; ++k) {
        const double code =
            largest == 0 ? 0 : std::nearbyint(x[t * x_stride + k] * 127.0 / largest);
        q.codes[t * q.codes_stride + k] = static_cast<std::int8_t>(code);
        sum += static_cast<std::int32_t>(code);
      }
      q.scales[t * q.groups_stride + begin / group] = static_cast<float>(largest / 127.0);
      q.sums[t * q.groups_stride + begin / group] = sum;
    }
  }
}

}  // namespace quern::kernels
