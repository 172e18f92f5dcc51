// The check of `quern verify` of the attention kernels in use against float64 scalar arithmetic: one KV head, random
// keys in the cache, the queries of its group at the last position, on every shape that this model has.

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

#include "base/buffer.hpp"
#include "base/strings.hpp"
#include "kernels/reference_attention.hpp"
#include "verify.hpp"

namespace quern::tool {

namespace {

constexpr double kTolerance = 5e-5;  // of values with deviation 1

struct Shape {
  kernels::CacheLayout layout;  // of rows of their own, or of latent rows (key and value at once)
  std::size_t d_k, d_v, n_queries;
  double scale;
  double softcap = 0;
  std::optional<std::size_t> window = {};
  std::size_t sinks = 0;
  const contract::Alibi* alibi = nullptr;
  bool sink_logits = false;
  bool selected = false;  // only some keys are seen, by bits
};

struct CacheTypes {
  kernels::CacheType k, v;
};

std::size_t group_of(std::size_t n_heads, std::size_t n_kv_heads) {
  return std::min(n_heads / n_kv_heads, kernels::kAttendQueries);
}

std::vector<Shape> shapes_of(const contract::Op& op, const CacheTypes& types) {
  if (op.attention) {
    const contract::Attention& spec = *op.attention;
    return {{.layout = kernels::make_cache_layout(types.k, types.v, spec.d_k, spec.d_v), .d_k = spec.d_k, .d_v = spec.d_v,
             .n_queries = group_of(spec.n_heads, spec.n_kv_heads), .scale = spec.scale,
             .softcap = spec.softcap.value_or(0), .window = spec.mask.window,
             .sinks = spec.mask.window ? spec.mask.sinks : 0, .alibi = spec.alibi ? &*spec.alibi : nullptr,
             .sink_logits = spec.sink_logits}};
  }
  if (op.mla) {  // absorbed: the latent row is key and value of every head
    const contract::Mla& spec = *op.mla;
    Shape shape{.layout = kernels::make_latent_layout(types.k, spec.kv_rank, spec.d_rope),
                .d_k = spec.kv_rank + spec.d_rope, .d_v = spec.kv_rank, .n_queries = group_of(spec.n_heads, 1),
                .scale = spec.scale};
    std::vector<Shape> shapes = {shape};
    shape.selected = true;
    if (spec.indexer) shapes.push_back(shape);
    return shapes;
  }
  if (!op.nsa) return {};
  const contract::Nsa& spec = *op.nsa;
  Shape all{.layout = kernels::make_cache_layout(types.k, types.v, spec.d_k, spec.d_v), .d_k = spec.d_k, .d_v = spec.d_v,
            .n_queries = group_of(spec.n_heads, spec.n_kv_heads), .scale = spec.scale};
  Shape chosen = all, near = all;
  chosen.selected = true;
  near.window = spec.window;
  return {all, chosen, near};
}

// n_keys random rows in cache blocks, and the values that the cache holds of them.
class Keys {
 public:
  Keys(const kernels::Kernels& kernels, const Shape& shape, std::size_t n, std::mt19937& random)
      : shape_(shape), n_blocks_((n + kernels::kBlockTokens - 1) / kernels::kBlockTokens),
        memory_(n_blocks_ * shape.layout.block_bytes) {
    std::normal_distribution<float> normal;
    const bool latent = shape.layout.d_rope > 0;
    std::vector<float> k(latent ? shape.layout.d_rope : shape.d_k), v(shape.d_v), key(k.size());
    for (std::size_t i = 0; i < n_blocks_; ++i) blocks_.push_back(memory_.data() + i * shape.layout.block_bytes);
    for (std::size_t t = 0; t < n; ++t) {
      for (float& x : k) x = normal(random);
      for (float& x : v) x = normal(random);
      std::byte* block = memory_.data() + t / kernels::kBlockTokens * shape.layout.block_bytes;
      kernels.store_kv(shape.layout, k.data(), v.data(), block, t % kernels::kBlockTokens);
      kernels::reference_load_kv(shape.layout, block, t % kernels::kBlockTokens, key.data(), v.data());
      kernels::reference_round_kv(shape.layout, key.data(), v.data());
      if (latent) k_.insert(k_.end(), v.begin(), v.end());
      k_.insert(k_.end(), key.begin(), key.end());
      v_.insert(v_.end(), v.begin(), v.end());
      if (!kernels::cache_has_scales(shape.layout.v_type)) continue;
      v_scale_.push_back(kernels::reference_v_scale(shape.layout, block, t % kernels::kBlockTokens));
    }
  }
  const std::byte* const* blocks(std::size_t first) const { return blocks_.data() + first; }
  std::size_t n_blocks(std::size_t first) const { return std::min(n_blocks_ - first, kernels::kTileBlocks); }

  const float* k() const { return k_.data(); }
  const float* v() const { return v_.data(); }
  // Of 8-bit values, a scale per row; nullptr: others.
  const float* v_scale() const { return v_scale_.empty() ? nullptr : v_scale_.data(); }

 private:
  const Shape& shape_;
  std::size_t n_blocks_;
  base::Buffer<std::byte> memory_;
  std::vector<const std::byte*> blocks_;
  std::vector<float> k_, v_, v_scale_;
};

// Of the keys of one query: from `first` on, and by bits where the shape selects.
struct Visible {
  Visible(const Shape& shape, std::size_t n) : n_keys(n) {
    if (shape.window && n > *shape.window) first = n - *shape.window;
    if (!shape.selected) return;
    bits.resize((n + 31) / 32);
    for (std::size_t t = 0; t < n; ++t)
      if (t % 3 == 0 || t % 7 == 1 || t + 1 == n) bits[t / 32] |= 1u << (t % 32);
  }
  // What the oracle adds to the scores: nothing, or of a shape that selects -infinity where a bit is missing.
  std::vector<float> bias() const {
    std::vector<float> all(bits.empty() ? 0 : n_keys);
    for (std::size_t t = 0; t < all.size(); ++t) all[t] = (bits[t / 32] >> (t % 32) & 1u) != 0 ? 0.0F : -HUGE_VALF;
    return all;
  }
  std::size_t n_keys, first = 0;
  std::vector<std::uint32_t> bits;
};

struct Queries {
  std::vector<float> q, sinks;
};

// [n_queries, d_v rounded up to 16]
std::vector<float> attended(const kernels::Kernels& kernels, const Shape& shape, const Keys& keys,
                            const Visible& visible, const Queries& queries) {
  const std::size_t n = shape.n_queries, stride = (shape.d_v + 15) / 16 * 16;
  base::Buffer<float> max(n), sum(n), o(n * stride), scratch(kernels::attend_scratch_floats(n, shape.layout));
  std::fill(max.data(), max.data() + n, -HUGE_VALF);
  const std::vector<std::uint32_t> begin(n, static_cast<std::uint32_t>(visible.first));
  const std::vector<std::uint32_t> end(n, static_cast<std::uint32_t>(visible.n_keys));
  const std::vector<const std::uint32_t*> bits(n, visible.bits.data());
  kernels::AttendArgs args{};
  args.layout = &shape.layout;
  args.n_queries = n;
  const std::vector<float> q = kernels::stored_queries(kernels, shape.layout, queries.q.data(), n);
  args.q = q.data();
  args.q_stride = kernels::query_floats(shape.d_k);
  args.begin = begin.data();
  args.end = end.data();
  args.sinks = static_cast<std::uint32_t>(shape.sinks);
  args.scale = static_cast<float>(shape.scale);
  args.softcap = static_cast<float>(shape.softcap);
  args.alibi = shape.alibi != nullptr ? shape.alibi->slopes.data() : nullptr;
  args.alibi_before_scale = shape.alibi != nullptr && shape.alibi->before_scale;
  args.alibi_bf16 = shape.alibi != nullptr && shape.alibi->round == contract::BiasRound::bf16;
  args.state = {max.data(), sum.data(), o.data(), stride};
  args.scratch = scratch.data();
  args.selected = shape.selected ? bits.data() : nullptr;
  for (args.first_key = 0; args.first_key < visible.n_keys; args.first_key += kernels::kTileTokens) {
    const std::size_t block = args.first_key / kernels::kBlockTokens;
    args.blocks = keys.blocks(block);
    args.n_blocks = keys.n_blocks(block);
    kernels.attend(args);
  }
  std::vector<float> out(n * stride);
  kernels.finish_attention(args.state, n, shape.d_v, out.data(), stride,
                           shape.sink_logits ? queries.sinks.data() : nullptr);
  return out;
}

// Errors of queries. A weight within float error of a tie may become the other code: few queries may be further off,
// by what that moves them.
struct Errors {
  std::vector<double> plain, beyond_codes;  // the largest of each query; less what codes may add

  double worst() {
    std::sort(plain.begin(), plain.end());
    const std::size_t n_ties = plain.size() / 16 + 1;
    double result = *std::max_element(beyond_codes.begin(), beyond_codes.end());
    if (plain.size() > n_ties) result = std::max(result, plain[plain.size() - 1 - n_ties]);
    return std::max(result, 0.0);
  }
};

void add_errors(const kernels::Kernels& kernels, const Shape& shape, std::size_t n_keys, Errors& errors) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Queries queries{std::vector<float>(shape.n_queries * shape.d_k), std::vector<float>(shape.n_queries)};
  for (float& x : queries.q) x = normal(random);
  for (float& x : queries.sinks) x = normal(random);
  const Keys keys(kernels, shape, n_keys, random);
  const Visible visible(shape, n_keys);
  const std::vector<float> out = attended(kernels, shape, keys, visible, queries), bias = visible.bias();
  std::vector<double> expected(shape.d_v);
  for (std::size_t i = 0; i < shape.n_queries; ++i) {
    const std::vector<float> q = kernels::reference_query(kernels, shape.layout, &queries.q[i * shape.d_k]);
    const double slack = kernels::reference_attention(
        {q.data(), keys.k(), keys.v(), shape.d_k, shape.d_v, visible.first, n_keys, shape.sinks, shape.scale, shape.softcap,
         shape.alibi != nullptr ? double{shape.alibi->slopes[i]} : 0.0,
         shape.alibi != nullptr && shape.alibi->before_scale, shape.sink_logits ? &queries.sinks[i] : nullptr,
         bias.empty() ? nullptr : bias.data(), shape.alibi != nullptr && shape.alibi->round == contract::BiasRound::bf16,
         keys.v_scale(), kernels::reference_weights(shape.layout)},
        expected.data());
    const float* const row = &out[i * (out.size() / shape.n_queries)];
    double worst = 0;
    for (std::size_t d = 0; d < shape.d_v; ++d) raise_to(worst, std::fabs(double{row[d]} - expected[d]));
    errors.plain.push_back(worst);
    errors.beyond_codes.push_back(worst - 2 * slack);
  }
}

}  // namespace

CheckResult check_attention(const VerifyContext& context) {
  const CacheTypes types{parse_cache_type(context.options.k_type, "-ctk"),
                         parse_cache_type(context.options.v_type, "-ctv")};
  const kernels::Kernels& kernels = *context.model().kernels;
  Errors errors;
  std::size_t cases = 0;
  for (const auto& [name, op] : context.model().contract.ops)
    for (const Shape& shape : shapes_of(op, types))
      for (const std::size_t n_keys : {1u, 31u, 257u, 600u}) {
        add_errors(kernels, shape, n_keys, errors);
        ++cases;
      }
  const double worst = cases == 0 ? 0 : errors.worst();
  return {worst <= kTolerance, base::cat(kernels.name, ", cache ", context.options.k_type, "/", context.options.v_type,
                                         ", ", cases, " cases up to 600 keys: worst error ", scientific(worst),
                                         " of values with deviation 1, tolerance ", scientific(kTolerance))};
}

}  // namespace quern::tool
