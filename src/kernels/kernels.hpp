// The table of compute kernels: one per instruction set, chosen once at start (select.hpp), passed down.
// Kernels know no threads and no models: they work on a range of panels, tokens or heads that the caller
// gives, write nothing else, never allocate, throw or lock.
//
// Every kernel is written once over P::V16, sixteen float lanes on every ISA (primitives/), with one order
// of operations, so all ISAs give the same bits for the same input (tests/kernels holds them to it), but for sums
// below 2^-126 of bf16 products (ops/pair_products.hpp).
// Shapes are row-major, [rows, columns]; strides are in elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_types.hpp"
#include "quant/format.hpp"

namespace quern::kernels {

// Activations quantized to int8 for an integer weight format: symmetric, one f32 scale per group of
// `group` columns (quant::FormatTraits::activation_group), codes round-to-nearest-even in [-127, 127].
struct QuantizedRows {
  std::int8_t* codes;      // [tokens, codes_stride], columns beyond the matrix are zero
  float* scales;           // [tokens, groups_stride]
  std::int32_t* sums;      // [tokens, groups_stride]: sum of the codes of the group
  std::size_t codes_stride;   // multiple of 64
  std::size_t groups_stride;
};

// out[t, r] = sum over k of w[r, k] * x[t, k] for the rows of panels [first_panel, end_panel) and tokens
// [0, n_tokens). Writes whole panels: out has at least quant::padded_rows(rows) columns.
struct MatmulArgs {
  const std::byte* weights;   // the tensor's first panel
  std::size_t panel_bytes;
  std::size_t columns;        // of the matrix
  std::size_t first_panel, end_panel;
  std::size_t n_tokens;
  const float* x;             // [tokens, x_stride]: float formats only
  std::size_t x_stride;
  QuantizedRows q;            // integer formats only
  float* out;                 // [tokens, out_stride]
  std::size_t out_stride;
  std::byte* scratch;         // matmul_scratch_bytes() of this thread, 64-byte aligned
};
using MatmulFn = void (*)(const MatmulArgs&);

// out[t, c] = sum over r of w[r, c] * x[t, r - first_row], rows r in [first_row, end_row): a product with the
// transpose of those rows, for all columns of a float matrix.
inline constexpr std::size_t kTransposedTokens = 4;  // taken together; no effect on the result
struct TransposedArgs {
  const std::byte* weights;   // the tensor's first panel
  std::size_t panel_bytes;
  std::size_t columns;        // of the matrix
  std::size_t first_row, end_row;
  std::size_t n_tokens;
  const float* x;             // [tokens, x_stride]
  std::size_t x_stride;
  float* out;                 // [tokens, out_stride]
  std::size_t out_stride;
  float* scratch;             // transposed_scratch_floats(end_row - first_row)
};
using TransposedFn = void (*)(const TransposedArgs&);
constexpr std::size_t transposed_scratch_floats(std::size_t rows) {
  return (rows / quant::kPanelRows + 2) * quant::kPanelRows * kTransposedTokens;
}

// Quantizes x [n_tokens, columns] into q, `group` columns a scale. Tokens [0, n_tokens).
using QuantizeFn = void (*)(const float* x, std::size_t x_stride, std::size_t n_tokens,
                            std::size_t columns, std::size_t group, const QuantizedRows& q);

enum class NormOp { rms_norm, layer_norm };
struct NormArgs {
  NormOp op;
  std::size_t n;              // width d
  float eps;
  const float* weight;        // [n] with weight_offset already added, or nullptr
  const float* bias;          // [n] or nullptr
  bool accumulate_f64;
};

enum class ActivationOp { relu, silu, gelu_erf, gelu_tanh, gelu_quick, tanh };

inline constexpr std::size_t kMaxFormats = 32;

struct Kernels {
  const char* name;                        // "avx512vnni"
  const char* description;
  MatmulFn matmul[kMaxFormats];            // by quant::format_index()
  TransposedFn transposed[kMaxFormats];    // nullptr for integer formats
  std::size_t (*matmul_scratch_bytes)(std::size_t columns);
  QuantizeFn quantize;

  // y[n] = norm(x[n]); y may be x.
  void (*norm)(const NormArgs& args, const float* x, float* y);
  // Rotates x[0, 2 * half) in place by angle i: cosine[i], sine[i], i < half. `pairs`: (2i, 2i+1), else
  // (i, i + half).
  void (*rope)(float* x, const float* cosine, const float* sine, std::size_t half, bool pairs);
  void (*activate)(ActivationOp op, float* x, std::size_t n);                       // x = act(x)
  void (*activate_gated)(ActivationOp op, const float* gate, float* up, std::size_t n);  // up *= act(gate)
  void (*softmax)(float* x, std::size_t n);                                         // in place
  void (*sigmoid)(float* x, std::size_t n);                                         // in place
  void (*add_relu)(float* out, const float* x, float weight, std::size_t n);        // out += weight * max(x, 0)
  void (*scale)(float* x, float factor, std::size_t n);                             // x *= factor
  void (*add)(float* x, const float* y, std::size_t n);                             // x += y
  void (*scaled_add)(float* x, float x_scale, const float* y, float y_scale, std::size_t n);
  void (*clamp)(float* x, float low, float high, std::size_t n);                    // NaN stays NaN
  void (*shift)(float* x, float amount, std::size_t n);                             // x += amount
  void (*softcap)(float* x, float cap, std::size_t n);                              // cap * tanh(x / cap)

  // Cache: writes one token's k [d_k] and v [d_v] of one KV head into slot [0, kBlockTokens) of its block.
  // Latent rows: k is the rotated key [d_rope], v the latent [d_v].
  void (*store_kv)(const CacheLayout& layout, const float* k, const float* v, std::byte* block,
                   std::size_t slot);
  // A query [d_k] -> row, at most query_floats(d_k), in the form that attend() takes with keys of this layout.
  void (*store_query)(const CacheLayout& layout, const float* q, float* row);
  // One tile of kTileTokens keys for the queries of one KV head: running state <- merge(state, tile).
  void (*attend)(const AttendArgs& args);
  void (*score_keys)(const ScoreArgs& args);
  // Latent rows of a block as floats, out [kBlockTokens, d_k]; scratch: expanded_k_floats().
  void (*latent_rows)(const CacheLayout& layout, const std::byte* block, float* out, std::size_t stride,
                      float* scratch);
  // state <- merge(state, tile) of each query, where `tile` is one tile attended from an empty state: the
  // fold of attend(), for tiles that different threads computed.
  void (*merge_attention)(const AttendState& state, const AttendState& tile, std::size_t n_queries,
                          std::size_t d_v);
  // output[i] = o / sum of each query's finished state.
  void (*finish_attention)(const AttendState& state, std::size_t n_queries, std::size_t d_v, float* output,
                           std::size_t output_stride, const float* sink_logits);
};

}  // namespace quern::kernels
