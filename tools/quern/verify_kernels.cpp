// Checks of `quern verify` of the kernels in use against float64 scalar arithmetic, on this model's shapes.
// The tolerance is derived from the norms: |error| <= tolerance * sum |w| |x|.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>
#include <tuple>

#include "base/buffer.hpp"
#include "base/strings.hpp"
#include "kernels/reference_attention.hpp"
#include "quant/formats.hpp"
#include "verify.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kTokens = 3;
// f32 sums of K terms in blocks of 256: the error stays well below K/256 + 256 roundings of 2^-24.
constexpr double kMatmulTolerance = 2e-5;
constexpr double kAttentionTolerance = 5e-5;

std::string scientific(double value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%.1e", value);
  return text.data();
}

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

namespace {

struct AttentionCase {
  const VerifyContext& context;
  const contract::Attention& spec;
  kernels::CacheLayout layout;
  std::size_t n_keys;
};

// One KV head: n_keys random keys in the cache, the queries of its group at the last position.
double attention_error(const AttentionCase& c) {
  const kernels::Kernels& kernels = *c.context.model().kernels;
  const contract::Attention& spec = c.spec;
  const std::size_t n_queries = std::min(spec.n_heads / spec.n_kv_heads, kernels::kAttendQueries);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto fill = [&](std::size_t n) {
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    return values;
  };
  const std::vector<float> q = fill(n_queries * spec.d_k), k = fill(c.n_keys * spec.d_k), v = fill(c.n_keys * spec.d_v);
  const std::size_t n_blocks = (c.n_keys + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
  base::Buffer<std::byte> memory(n_blocks * c.layout.block_bytes);
  std::vector<const std::byte*> blocks;
  for (std::size_t i = 0; i < n_blocks; ++i) blocks.push_back(memory.data() + i * c.layout.block_bytes);
  std::vector<float> held_k(k.size()), held_v(v.size());
  for (std::size_t t = 0; t < c.n_keys; ++t) {
    std::byte* block = memory.data() + t / kernels::kBlockTokens * c.layout.block_bytes;
    kernels.store_kv(c.layout, &k[t * spec.d_k], &v[t * spec.d_v], block, t % kernels::kBlockTokens);
    kernels::reference_load_kv(c.layout, block, t % kernels::kBlockTokens, &held_k[t * spec.d_k], &held_v[t * spec.d_v]);
  }
  const std::size_t o_stride = (spec.d_v + 15) / 16 * 16;
  base::Buffer<float> max(n_queries), sum(n_queries), o(n_queries * o_stride), out(n_queries * o_stride);
  base::Buffer<float> scratch(kernels::attend_scratch_floats(n_queries, c.layout));
  std::fill(max.data(), max.data() + n_queries, -HUGE_VALF);
  // What the contract says of the last position: window, sinks, ALiBi, sink logits.
  const std::size_t first_seen =
      spec.mask.window && c.n_keys > *spec.mask.window ? c.n_keys - *spec.mask.window : 0;
  const std::size_t sinks = spec.mask.window ? spec.mask.sinks : 0;
  const std::vector<std::uint32_t> begin(n_queries, static_cast<std::uint32_t>(first_seen));
  const std::vector<std::uint32_t> end(n_queries, static_cast<std::uint32_t>(c.n_keys));
  const float* alibi = spec.alibi ? spec.alibi->slopes.data() : nullptr;
  const bool before = spec.alibi && spec.alibi->before_scale;
  const bool rounded = spec.alibi && spec.alibi->round == contract::BiasRound::bf16;
  const std::vector<float> sink_logits = spec.sink_logits ? fill(n_queries) : std::vector<float>();
  const kernels::AttendState state{max.data(), sum.data(), o.data(), o_stride};
  for (std::size_t first = 0; first < c.n_keys; first += kernels::kTileTokens) {
    const std::size_t block = first / kernels::kBlockTokens;
    kernels.attend({&c.layout, blocks.data() + block, std::min(n_blocks - block, kernels::kTileBlocks), first, n_queries,
                    q.data(), spec.d_k, begin.data(), end.data(), static_cast<std::uint32_t>(sinks),
                    static_cast<float>(spec.scale), static_cast<float>(spec.softcap.value_or(0)), alibi, before,
                    nullptr, state, scratch.data(), nullptr, rounded});
  }
  kernels.finish_attention(state, n_queries, spec.d_v, out.data(), o_stride,
                           spec.sink_logits ? sink_logits.data() : nullptr);
  std::vector<double> expected(spec.d_v);
  double worst = 0;
  for (std::size_t i = 0; i < n_queries; ++i) {
    kernels::reference_attention({&q[i * spec.d_k], held_k.data(), held_v.data(), spec.d_k, spec.d_v, first_seen, c.n_keys,
                                  sinks, spec.scale, spec.softcap.value_or(0), alibi != nullptr ? double{alibi[i]} : 0.0,
                                  before, spec.sink_logits ? &sink_logits[i] : nullptr, nullptr, rounded}, expected.data());
    for (std::size_t d = 0; d < spec.d_v; ++d)
      raise_to(worst, std::fabs(double{out[i * o_stride + d]} - expected[d]));
  }
  return worst;
}

}  // namespace

CheckResult check_attention(const VerifyContext& context) {
  const kernels::CacheType k = parse_cache_type(context.options.k_type, "-ctk");
  const kernels::CacheType v = parse_cache_type(context.options.v_type, "-ctv");
  double worst = 0;
  std::size_t cases = 0;
  for (const auto& [name, op] : context.model().contract.ops) {
    if (!op.attention) continue;
    const contract::Attention& spec = *op.attention;
    for (const std::size_t n_keys : {1u, 31u, 257u, 600u}) {
      const AttentionCase one{context, spec, kernels::make_cache_layout(k, v, spec.d_k, spec.d_v), n_keys};
      raise_to(worst, attention_error(one));
      ++cases;
    }
  }
  return {worst <= kAttentionTolerance, base::cat(context.model().kernels->name, ", cache ", context.options.k_type, "/",
                                        context.options.v_type, ", ", cases, " cases up to 600 keys: worst error ",
                                        scientific(worst), " of values with deviation 1, tolerance ", scientific(kAttentionTolerance))};
}

}  // namespace quern::tool
