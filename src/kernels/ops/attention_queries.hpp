// Queries as codes for the products with int8 keys: of rows of their own one part with one scale; of latent rows two,
// as the keys have them: the latent and, behind it, the rotated key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/attention_work.hpp"
#include "kernels/ops/quantize.hpp"

namespace quern::kernels {

template <class P>
class AttentionQueries {
 public:
  struct Part {
    std::size_t first_line, n_lines;  // of a half block of keys; 4 codes of a query each
    std::size_t k_scales;             // offset in a block
    float scale[kAttendQueries];
    std::int32_t start[kAttendQueries];  // of the sums: takes the keys' bias off
  };

  // Over the memory of expanded keys.
  explicit AttentionQueries(const AttentionWork<P>& work) : codes_(reinterpret_cast<std::int8_t*>(work.k_buffer)) {
    const CacheLayout& layout = *work.args.layout;
    const bool latent = layout.d_rope != 0;
    const std::size_t first = layout.d_k - layout.d_rope, first_lines = cache_lines(CacheType::int8, first);
    lines_ = first_lines + cache_lines(CacheType::int8, layout.d_rope);
    n_parts_ = latent ? 2 : 1;
    place(part_[0], 0, first_lines, latent ? layout.v_scale_offset : layout.k_scale_offset);
    place(part_[1], first_lines, lines_ - first_lines, layout.k_scale_offset);
    for (std::size_t r = 0; r < work.n_rows; ++r) {
      encode(part_[0], r, work.q(r), first);
      if (latent) encode(part_[1], r, work.q(r) + first, layout.d_rope);
    }
  }
  std::size_t n_parts() const { return n_parts_; }
  const Part& part(std::size_t i) const { return part_[i]; }
  std::size_t lines() const { return lines_; }  // of a half block of keys
  std::size_t stride() const { return 4 * lines_; }
  const std::int8_t* codes(const Part& part, std::size_t r) const { return codes_ + r * stride() + 4 * part.first_line; }

 private:
  static void place(Part& part, std::size_t first_line, std::size_t n_lines, std::size_t k_scales) {
    part.first_line = first_line;
    part.n_lines = n_lines;
    part.k_scales = k_scales;
  }
  // Codes of rows, and of a row's parts, are written in order: each may write some bytes over the next.
  void encode(Part& part, std::size_t r, const float* q, std::size_t n) {
    std::int8_t* row = codes_ + r * stride() + 4 * part.first_line;
    std::int32_t sum = 0;
    part.scale[r] = QuantizeOps<P>::quantize_group(q, n, row, sum);
    part.start[r] = -P::kBias * sum;
    for (std::size_t i = n; i < 4 * part.n_lines; ++i) row[i] = 0;
  }

  std::int8_t* codes_;
  std::size_t lines_, n_parts_;
  Part part_[2];
};

}  // namespace quern::kernels
