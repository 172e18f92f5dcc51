// A matrix product made for the tests: panels of any format, activations in every form a kernel
// wants.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/buffer.hpp"
#include "base/small_float.hpp"
#include "kernels/reference.hpp"
#include "kernels/isas.hpp"
#include "quant/formats.hpp"

namespace quern::kernels {

enum class Fill { encoded, zeros_codes, ones_codes, sign_codes, random_codes };

struct Product {
  const quant::FormatTraits* format;
  std::size_t rows, columns, n_tokens;
  base::Buffer<std::byte> weights;
  std::vector<float> x;  // [tokens, columns]
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  QuantizedRows q{};

  std::size_t out_columns() const { return quant::padded_rows(rows); }
  std::size_t panel_bytes() const { return quant::panel_bytes(*format, columns); }
  ReferenceProblem reference() const {
    return {format, weights.data(), rows, columns, n_tokens, x.data(), columns, q};
  }
};

inline float scaled_normal(std::mt19937& rng, float scale) {
  float sum = 0;  // sum of 12 uniform: the same on every platform
  for (int i = 0; i < 12; ++i) sum += static_cast<float>(rng() >> 8) * 0x1p-24f;
  return (sum - 6.0f) * scale;
}

// What the bytes of a super-block behind its codes are, in order.
enum class Area { f16_values, f32_values, small_integers, exponents, zero_points, signed_points };
struct AreaBytes {
  Area area;
  std::size_t bytes;
};
inline std::vector<AreaBytes> areas_of(quant::FormatId id, std::size_t columns) {
  using quant::FormatId;
  const std::size_t lines = columns / 32 * 16;  // one byte for each row and 32 columns
  const std::size_t wide = (columns + 63) / 64 * 16, wider = (columns + 127) / 128 * 16;
  switch (id) {
    case FormatId::q4:
      return {{Area::small_integers, lines}, {Area::f16_values, 32}};
    case FormatId::q4_1:
    case FormatId::q5_1:
      return {{Area::f16_values, 4 * lines}};
    case FormatId::q4_k:
    case FormatId::q5_k:
      return {{Area::small_integers, lines + (columns / 32 + 1) / 2 * 16}, {Area::f16_values, 64}};
    case FormatId::q6_k:
      return {{Area::small_integers, 2 * lines}, {Area::f16_values, 32}};
    case FormatId::mxfp4:
      return {{Area::exponents, lines}};
    case FormatId::int4_g32:
      return {{Area::f16_values, 2 * lines}, {Area::zero_points, lines}};
    case FormatId::int4_g64:
      return {{Area::f16_values, 2 * wide}, {Area::zero_points, wide}};
    case FormatId::int4_g128:
      return {{Area::f16_values, 2 * wider}, {Area::zero_points, wider}};
    case FormatId::int4_f32:
      return {{Area::f32_values, 4 * lines}, {Area::zero_points, lines}};
    case FormatId::int8_g32:
      return {{Area::f32_values, 4 * lines}, {Area::signed_points, lines}};
    case FormatId::int8_g128:
      return {{Area::f32_values, 4 * wider}, {Area::signed_points, wider}};
    default:
      return {{Area::f16_values, 2 * lines}};
  }
}

inline void fill_area(Area area, std::byte* at, std::size_t bytes, std::mt19937& rng) {
  const std::size_t step = area == Area::f16_values ? 2 : area == Area::f32_values ? 4 : 1;
  for (std::size_t i = 0; i < bytes; i += step) {
    if (area == Area::f16_values) {  // subnormal to 65504, either sign
      const base::F16 d = static_cast<base::F16>((rng() % 0x7c00) | (rng() % 2 << 15));
      std::memcpy(at + i, &d, 2);
    } else if (area == Area::f32_values) {
      const float d = std::ldexp(static_cast<float>(rng() % 1000) - 500, static_cast<int>(rng() % 40) - 30);
      std::memcpy(at + i, &d, 4);
    } else if (area == Area::exponents) {
      at[i] = static_cast<std::byte>(90 + rng() % 60);
    } else if (area == Area::zero_points) {
      at[i] = static_cast<std::byte>(rng() % 17);
    } else {
      at[i] = static_cast<std::byte>(rng());
    }
  }
}

// Bytes straight into the super-blocks: codes no encoder would write, beside finite scales.
inline void fill_raw(Product& p, Fill fill, std::mt19937& rng) {
  const std::size_t padded = quant::padded_columns(*p.format, p.columns);
  std::byte* at = p.weights.data();
  for (std::size_t panel = 0; panel < quant::n_panels(p.rows); ++panel)
    for (std::size_t k = 0; k < padded; k += quant::kSuperColumns) {
      const std::size_t n = std::min(quant::kSuperColumns, padded - k);
      const std::size_t bytes = p.format->super_block_bytes(n);
      const std::vector<AreaBytes> areas = areas_of(p.format->id, n);
      std::size_t codes = bytes;
      for (const AreaBytes& area : areas) codes -= area.bytes;
      for (std::size_t i = 0; i < codes; ++i)
        at[i] = fill == Fill::ones_codes ? std::byte{0xff}
                : fill == Fill::sign_codes
                    ? std::byte{i % 3 == 0 ? std::uint8_t{0x7f} : std::uint8_t{0x80}}
                : fill == Fill::zeros_codes ? std::byte{0x80}
                                            : static_cast<std::byte>(rng());
      std::size_t begin = codes;
      for (const AreaBytes& area : areas) {
        fill_area(area.area, at + begin, area.bytes, rng);
        begin += area.bytes;
      }
      at += bytes;
    }
}

inline void fill_encoded(Product& p, std::mt19937& rng, float scale) {
  std::vector<float> rows(quant::kPanelRows * p.columns);
  for (std::size_t panel = 0; panel < quant::n_panels(p.rows); ++panel) {
    std::fill(rows.begin(), rows.end(), 0.0f);
    const std::size_t n = std::min(quant::kPanelRows, p.rows - panel * quant::kPanelRows);
    for (std::size_t i = 0; i < n * p.columns; ++i) rows[i] = scaled_normal(rng, scale);
    quant::encode_panel(*p.format, rows.data(), p.columns, p.columns, nullptr,
                        p.weights.data() + panel * p.panel_bytes());
  }
}

struct ProductShape {
  std::size_t rows, columns, n_tokens;
};

inline Product make_product(const quant::FormatTraits& format, ProductShape shape, Fill fill,
                            unsigned seed, float scale = 0.05f) {
  std::mt19937 rng(seed);
  Product p;
  p.format = &format;
  p.rows = shape.rows;
  p.columns = shape.columns;
  p.n_tokens = shape.n_tokens;
  p.weights = base::Buffer<std::byte>(quant::n_panels(shape.rows) * p.panel_bytes());
  if (fill == Fill::encoded || !format.integer)
    fill_encoded(p, rng, scale);
  else
    fill_raw(p, fill, rng);
  p.x.resize(shape.n_tokens * shape.columns);
  for (float& x : p.x) x = scaled_normal(rng, scale * 20);
  if (!format.integer) return p;
  const std::size_t group = format.activation_group;
  p.q.codes_stride = (shape.columns + 63) / 64 * 64;
  p.q.groups_stride = (shape.columns + group - 1) / group;
  p.codes.resize(shape.n_tokens * p.q.codes_stride);
  p.scales.resize(shape.n_tokens * p.q.groups_stride);
  p.sums.resize(p.scales.size());
  p.q.codes = p.codes.data();
  p.q.scales = p.scales.data();
  p.q.sums = p.sums.data();
  reference_quantize(p.x.data(), shape.columns, shape.n_tokens, shape.columns, group, p.q);
  return p;
}

struct Part {
  std::size_t first_panel, end_panel, first_token, end_token;
};

// Runs one call of a kernel on a part of the product, into out [tokens, out_columns].
inline void run_part(const Kernels& kernels, const Product& p, const Part& part,
                     std::vector<float>& out) {
  base::Buffer<std::byte> scratch(kernels.matmul_scratch_bytes(p.columns));
  MatmulArgs args{};
  args.weights = p.weights.data();
  args.panel_bytes = p.panel_bytes();
  args.columns = p.columns;
  args.first_panel = part.first_panel;
  args.end_panel = part.end_panel;
  args.n_tokens = part.end_token - part.first_token;
  args.x = p.x.data() + part.first_token * p.columns;
  args.x_stride = p.columns;
  args.q = p.q;
  if (p.format->integer) {
    args.q.codes += part.first_token * p.q.codes_stride;
    args.q.scales += part.first_token * p.q.groups_stride;
    args.q.sums += part.first_token * p.q.groups_stride;
  }
  args.out = out.data() + part.first_token * p.out_columns();
  args.out_stride = p.out_columns();
  args.scratch = scratch.data();
  kernels.matmul[quant::format_index(p.format->id)](args);
}

inline std::vector<float> run_all(const Kernels& kernels, const Product& p) {
  std::vector<float> out(p.n_tokens * p.out_columns(), std::nanf(""));
  run_part(kernels, p, {0, quant::n_panels(p.rows), 0, p.n_tokens}, out);
  return out;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace quern::kernels
