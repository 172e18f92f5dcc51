// The check of `quern verify` of the matrix products in use against float64 scalar arithmetic, on this model's shapes.
// The tolerance is derived from the norms: |error| <= tolerance * sum |w| |x|.

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <tuple>

#include "base/buffer.hpp"
#include "base/strings.hpp"
#include "quant/formats.hpp"
#include "verify.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kTokens = 3;
// f32 sums of K terms in blocks of 256: the error stays well below K/256 + 256 roundings of 2^-24.
constexpr double kMatmulTolerance = 2e-5;

// Activations of one matrix as the kernels see them: floats, and int8 codes for integer formats.
struct Activations {
  explicit Activations(const VerifyContext& context, const weights::TensorView& tensor) {
    const std::size_t columns = tensor.columns, group = tensor.format->activation_group;
    stride = (columns + 255) / 256 * 256;
    x = base::Buffer<float>(kTokens * stride);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t k = 0; k < columns; ++k) x[t * stride + k] = normal(random);
    seen.assign(x.data(), x.data() + kTokens * stride);
    if (!tensor.format->integer) return;
    const std::size_t groups = stride / group + 1;
    codes = base::Buffer<std::int8_t>(kTokens * stride);
    scales = base::Buffer<float>(kTokens * groups);
    sums = base::Buffer<std::int32_t>(kTokens * groups);
    q = {codes.data(), scales.data(), sums.data(), stride, groups};
    context.model().kernels->quantize(x.data(), stride, kTokens, columns, group, q);
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t k = 0; k < columns; ++k)
        seen[t * stride + k] = static_cast<float>(codes[t * stride + k]) * scales[t * groups + k / group];
  }
  std::size_t stride = 0;
  base::Buffer<float> x, scales;
  base::Buffer<std::int8_t> codes;
  base::Buffer<std::int32_t> sums;
  kernels::QuantizedRows q{};
  std::vector<float> seen;   // the values after quantization
};

// Worst |kernel - float64| / sum |w| |x| over the rows of one panel.
double panel_error(const VerifyContext& context, const weights::TensorView& tensor, std::size_t panel) {
  const kernels::Kernels& kernels = *context.model().kernels;
  const Activations input(context, tensor);
  base::Buffer<std::byte> scratch(kernels.matmul_scratch_bytes(tensor.columns));
  const std::size_t out_stride = quant::padded_rows(tensor.rows);
  base::Buffer<float> out(kTokens * out_stride);
  const std::size_t bytes = quant::panel_bytes(*tensor.format, tensor.columns);
  const kernels::MatmulArgs args{tensor.bytes.data(), bytes, tensor.columns, panel, panel + 1, kTokens,
                                 input.x.data(), input.stride, input.q, out.data(), out_stride, scratch.data()};
  kernels.matmul[quant::format_index(tensor.format->id)](args);
  std::vector<float> row(tensor.columns);
  double worst = 0;
  for (std::size_t r = panel * quant::kPanelRows; r < std::min(tensor.rows, (panel + 1) * quant::kPanelRows); ++r) {
    quant::decode_row(*tensor.format, tensor.panel(panel), r % quant::kPanelRows, tensor.columns, row.data());
    for (std::size_t t = 0; t < kTokens; ++t) {
      double sum = 0, magnitude = 1e-30;
      for (std::size_t k = 0; k < tensor.columns; ++k) {
        const double product = double{row[k]} * double{input.seen[t * input.stride + k]};
        sum += product;
        magnitude += std::fabs(product);
      }
      raise_to(worst, std::fabs(double{out[t * out_stride + r]} - sum) / magnitude);
    }
  }
  return worst;
}

}  // namespace

CheckResult check_matmul(const VerifyContext& context) {
  std::set<std::tuple<quant::FormatId, std::size_t, std::size_t>> shapes;
  std::string formats;
  double worst = 0;
  for (const weights::TensorView& tensor : context.model().weights.tensors()) {
    if (tensor.format->id == quant::FormatId::rows_f32) continue;
    if (!shapes.insert({tensor.format->id, tensor.rows, tensor.columns}).second) continue;
    if (formats.find(tensor.format->name) == std::string::npos)
      formats += base::cat(formats.empty() ? "" : ", ", tensor.format->name);
    const std::size_t panels = quant::n_panels(tensor.rows);
    for (const std::size_t panel : std::set<std::size_t>{0, panels / 2, panels - 1})
      raise_to(worst, panel_error(context, tensor, panel));
  }
  return {worst <= kMatmulTolerance,
          base::cat(context.model().kernels->name, ", ", shapes.size(), " shapes in ", formats, ": worst error ",
                    scientific(worst), " of sum |w||x|, tolerance ", scientific(kMatmulTolerance))};
}

}  // namespace quern::tool
