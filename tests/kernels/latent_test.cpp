// Latent rows of the cache: what is stored comes back, attention over them is attention with the
// same row as key and value, a chosen subset of keys is seen and no other, scores alone are the
// scores of attention.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention_cases.hpp"
#include "catch.hpp"

namespace quern::kernels {
namespace {

struct LatentCase {
  CacheType type;
  std::size_t kv_rank, d_rope, n_keys, n_heads;
};

class LatentSequence {
 public:
  LatentSequence(const LatentCase& c, const Kernels& kernels)
      : c_(c),
        layout_(make_latent_layout(c.type, c.kv_rank, c.d_rope)),
        kernels_(kernels),
        latent_(normal_values(c.n_keys * c.kv_rank, 1)),
        key_(normal_values(c.n_keys * c.d_rope, 2, 20.0f)),  // a scale of its own
        q_(normal_values(c.n_heads * layout_.d_k, 3)) {
    blocks_ =
        base::Buffer<std::byte>((c.n_keys + kTileTokens) / kBlockTokens * layout_.block_bytes);
    std::memset(blocks_.data(), 0xff, blocks_.size());
    for (std::size_t t = 0; t < c.n_keys; ++t)
      kernels.store_kv(layout_, &key_[t * c.d_rope], &latent_[t * c.kv_rank], block_of(t),
                       t % kBlockTokens);
  }
  std::byte* block_of(std::size_t key) {
    return blocks_.data() + key / kBlockTokens * layout_.block_bytes;
  }
  const CacheLayout& layout() const { return layout_; }
  const std::vector<float>& latent() const { return latent_; }
  const std::vector<float>& q() const { return q_; }

  // All heads at the last position; `selected`: bits, or none.
  std::vector<float> attend(const std::vector<std::uint32_t>& selected) {
    const std::size_t n = c_.n_heads, stride = (c_.kv_rank + 15) / 16 * 16;
    std::vector<float> max(n, -std::numeric_limits<float>::infinity()), sum(n), o(n * stride);
    base::Buffer<float> scratch(attend_scratch_floats(n, layout_));
    const std::vector<std::uint32_t> begin(n, 0), end(n, static_cast<std::uint32_t>(c_.n_keys));
    const std::vector<const std::uint32_t*> bits(n, selected.data());
    const std::vector<float> q = stored_queries(kernels_, layout_, q_.data(), n);
    for (std::size_t tile = 0; tile < c_.n_keys; tile += kTileTokens) {
      std::vector<const std::byte*> blocks;
      for (std::size_t k = tile; k < std::min(tile + kTileTokens, c_.n_keys); k += kBlockTokens)
        blocks.push_back(block_of(k));
      AttendArgs args{};
      args.layout = &layout_;
      args.blocks = blocks.data();
      args.n_blocks = blocks.size();
      args.first_key = tile;
      args.n_queries = n;
      args.q = q.data();
      args.q_stride = query_floats(layout_.d_k);
      args.begin = begin.data();
      args.end = end.data();
      args.scale = 0.05f;
      args.state = {max.data(), sum.data(), o.data(), stride};
      args.scratch = scratch.data();
      args.selected = selected.empty() ? nullptr : bits.data();
      kernels_.attend(args);
    }
    std::vector<float> output(n * c_.kv_rank);
    kernels_.finish_attention({max.data(), sum.data(), o.data(), stride}, n, c_.kv_rank,
                              output.data(), c_.kv_rank, nullptr);
    return output;
  }

  // The row a token's slot holds: [latent | key].
  std::vector<float> held(std::size_t t) {
    std::vector<float> row(layout_.d_k);
    reference_load_kv(layout_, block_of(t), t % kBlockTokens, row.data() + c_.kv_rank, row.data());
    return row;
  }

  // Output of one head in float64, and by how much a code that rounds the other way may move it.
  struct Wanted {
    std::vector<double> output;
    double slack = 0;
  };
  Wanted reference(std::size_t head, const std::vector<std::uint32_t>& selected) {
    // All keys are handed over, since weights of int8 values become codes by block; those not selected score -inf.
    std::vector<float> keys, values, scales, bias;
    std::size_t n = 0;
    for (std::size_t t = 0; t < c_.n_keys; ++t) {
      const bool hidden = !selected.empty() && (selected[t / 32] >> (t % 32) & 1u) == 0;
      const std::vector<float> row = held(t);
      bias.push_back(hidden ? -std::numeric_limits<float>::infinity() : 0.0f);
      if (c_.type == CacheType::int8)
        scales.push_back(reference_v_scale(layout_, block_of(t), t % kBlockTokens));
      keys.insert(keys.end(), row.begin(), row.end());
      values.insert(values.end(), row.begin(),
                    row.begin() + static_cast<std::ptrdiff_t>(c_.kv_rank));
      ++n;
    }
    Wanted wanted{std::vector<double>(c_.kv_rank)};
    const float scale = 0.05f;
    const std::vector<float> q = reference_query(kernels_, layout_, &q_[head * layout_.d_k]);
    wanted.slack = reference_attention(
        {q.data(), keys.data(), values.data(), layout_.d_k, c_.kv_rank, 0, n, 0, static_cast<double>(scale), 0.0, 0.0,
         false, nullptr, bias.data(), false, scales.empty() ? nullptr : scales.data(), reference_weights(layout_)},
        wanted.output.data());
    return wanted;
  }

 private:
  LatentCase c_;
  CacheLayout layout_;
  const Kernels& kernels_;
  std::vector<float> latent_, key_, q_;
  base::Buffer<std::byte> blocks_;
};

std::vector<LatentCase> cases() {
  std::vector<LatentCase> result;
  for (const CacheType type : kCacheTypes) {
    if (type == CacheType::int4) continue;  // has no latent form
    result.push_back({type, 32, 16, 80, 4});
    result.push_back({type, 37, 6, 300, 9});
    result.push_back({type, 1, 2, 33, 1});
    result.push_back({type, 512, 64, 290, 21});
  }
  return result;
}

}  // namespace

TEST_CASE("a latent row takes kv_rank + d_rope values and its scales") {
  for (const CacheType type : kCacheTypes) {
    if (type == CacheType::int4) continue;
    const CacheLayout layout = make_latent_layout(type, 512, 64);
    const std::size_t scales = cache_has_scales(type) ? 2 * sizeof(float) : 0;
    CHECK(layout.block_bytes == kBlockTokens * (cache_bytes(type, 576) + scales));
  }
}

TEST_CASE("attention over latent rows, all keys and chosen ones") {
  for (const LatentCase& c : cases()) {
    std::vector<std::uint32_t> selected((c.n_keys + 31) / 32);
    for (std::size_t t = 0; t < c.n_keys; ++t)
      if (t % 3 == 0 || t % 7 == 1) selected[t / 32] |= 1u << (t % 32);
    std::vector<float> first;
    for (const IsaInfo* isa : supported_isas()) {
      LatentSequence sequence(c, *isa->kernels);
      for (const auto& bits : {std::vector<std::uint32_t>{}, selected}) {
        const std::vector<float> output = sequence.attend(bits);
        INFO(isa->name << " type " << static_cast<int>(c.type) << " rank " << c.kv_rank << " keys "
                       << c.n_keys);
        for (std::size_t head = 0; head < c.n_heads; ++head) {
          const LatentSequence::Wanted want = sequence.reference(head, bits);
          for (std::size_t d = 0; d < c.kv_rank; ++d)
            REQUIRE(std::abs(static_cast<double>(output[head * c.kv_rank + d]) - want.output[d]) < 2e-5 + 2 * want.slack);
        }
      }
      const std::vector<float> output = sequence.attend(selected);
      if (first.empty()) first = output;
      CHECK(std::memcmp(output.data(), first.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("rows and scores of a block alone") {
  for (const LatentCase& c : cases()) {
    for (const IsaInfo* isa : supported_isas()) {
      LatentSequence sequence(c, *isa->kernels);
      const std::size_t d_k = sequence.layout().d_k;
      std::vector<float> rows(kBlockTokens * d_k), scratch(expanded_k_floats(sequence.layout()));
      isa->kernels->latent_rows(sequence.layout(), sequence.block_of(0), rows.data(), d_k,
                                scratch.data());
      std::vector<float> scores(c.n_heads * kBlockTokens);
      base::Buffer<float> more(score_scratch_floats(sequence.layout()));
      isa->kernels->score_keys({&sequence.layout(), sequence.block_of(0), c.n_heads,
                                sequence.q().data(), d_k, 0.5f, scores.data(), kBlockTokens,
                                more.data()});
      for (std::size_t t = 0; t < kBlockTokens; ++t) {
        const std::vector<float> held = sequence.held(t);
        INFO(isa->name << " type " << static_cast<int>(c.type) << " token " << t);
        CHECK(std::equal(held.begin(), held.end(),
                         rows.begin() + static_cast<std::ptrdiff_t>(t * d_k)));
        for (std::size_t h = 0; h < c.n_heads; ++h) {
          double want = 0, size = 0;
          for (std::size_t d = 0; d < d_k; ++d) {
            const double term =
                0.5 * static_cast<double>(held[d]) * static_cast<double>(sequence.q()[h * d_k + d]);
            want += term;
            size += std::abs(term);
          }
          REQUIRE(std::abs(static_cast<double>(scores[h * kBlockTokens + t]) - want) <=
                  1e-6 * (size + 1e-3));
        }
      }
    }
  }
}

}  // namespace quern::kernels
