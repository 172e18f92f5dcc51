// Queries in the form that products with the keys take, made once for all tiles of keys: with int8 keys codes and a
// scale; of latent rows two parts, as the keys have them: the latent and, behind it, the rotated key; bf16 pairs where
// products are of those; rotated floats with int4 keys; else the floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/cache_int4.hpp"
#include "kernels/ops/pair_products.hpp"
#include "kernels/ops/quantize.hpp"

namespace quern::kernels {

// A row of codes: of each part the scale and what its sums start from, to take the keys' bias off; then the codes.
struct QueryHeader {
  static constexpr std::size_t kParts = 2;
  float scale[kParts];
  std::int32_t start[kParts];
};

template <class P>
class AttentionQueries {
 public:
  static void store(const CacheLayout& layout, const float* q, float* row) {
    const std::size_t d_k = layout.d_k;
    if (layout.k_type == CacheType::int8) {
      store_codes(layout, q, row);
    } else if (layout.k_type == CacheType::int4) {
      CacheInt4<P>::rotate_query(q, d_k, row);
    } else if (cache_has_bf16_products(layout, layout.k_type)) {
      if (d_k % 2 != 0) row[d_k / 2] = 0.0f;  // the last pair has an odd half too
      PairProducts<P>::round(q, d_k, reinterpret_cast<std::byte*>(row));
    } else {
      __builtin_memcpy(row, q, d_k * sizeof(float));
    }
  }

  // ---- rows of codes ----
  struct Part {
    std::size_t index, first_line, n_lines;  // lines of a half block of keys: 4 codes of a query each
    std::size_t k_scales;                    // offset in a block
  };
  explicit AttentionQueries(const AttentionWork<P>& work) : work_(work) {
    const CacheLayout& layout = *work.args.layout;
    const std::size_t first_lines = latent_lines(layout);
    lines_ = first_lines + cache_lines(CacheType::int8, layout.d_rope);
    n_parts_ = layout.d_rope != 0 ? 2 : 1;
    part_[0] = {0, 0, first_lines, layout.d_rope != 0 ? layout.v_scale_offset : layout.k_scale_offset};
    part_[1] = {1, first_lines, lines_ - first_lines, layout.k_scale_offset};
  }
  std::size_t n_parts() const { return n_parts_; }
  const Part& part(std::size_t i) const { return part_[i]; }
  std::size_t lines() const { return lines_; }                              // of a half block of keys
  std::size_t stride() const { return work_.q_stride * sizeof(float); }     // bytes from one row to the next
  float scale(const Part& part, std::size_t r) const { return header(r)->scale[part.index]; }
  std::int32_t start(const Part& part, std::size_t r) const { return header(r)->start[part.index]; }
  const std::int8_t* codes(const Part& part, std::size_t r) const {
    return reinterpret_cast<const std::int8_t*>(header(r) + 1) + 4 * part.first_line;
  }

 private:
  static std::size_t latent_lines(const CacheLayout& layout) {
    return cache_lines(CacheType::int8, layout.d_k - layout.d_rope);
  }
  const QueryHeader* header(std::size_t r) const { return reinterpret_cast<const QueryHeader*>(work_.q(r)); }

  static void store_codes(const CacheLayout& layout, const float* q, float* row) {
    static_assert(query_floats(0) * sizeof(float) >= sizeof(QueryHeader) + QueryHeader::kParts * 3);
    QueryHeader header{};
    auto* codes = reinterpret_cast<std::int8_t*>(row) + sizeof header;
    const std::size_t widths[QueryHeader::kParts] = {layout.d_k - layout.d_rope, layout.d_rope};
    for (std::size_t part = 0; part < QueryHeader::kParts; ++part) {
      const std::size_t n = widths[part], padded = 4 * cache_lines(CacheType::int8, n);
      if (n == 0) continue;
      std::int32_t sum = 0;
      header.scale[part] = QuantizeOps<P>::quantize_group(q, n, codes, sum);
      header.start[part] = -P::kBias * sum;
      for (std::size_t i = n; i < padded; ++i) codes[i] = 0;
      q += n;
      codes += padded;
    }
    __builtin_memcpy(row, &header, sizeof header);
  }

  const AttentionWork<P>& work_;
  std::size_t lines_, n_parts_;
  Part part_[QueryHeader::kParts];
};

}  // namespace quern::kernels
