// Matrix products: every ISA and every split of tokens and panels gives the same bits, and those
// bits are the product of the decoded weights and the activations.
#include "kernels/matmul_data.hpp"

#include "catch.hpp"
#include "kernels/sample.hpp"

namespace {

using namespace quern;
using namespace quern::kernels;

std::vector<std::size_t> columns_of(const quant::FormatTraits& format) {
  if (format.integer) return {1, 31, 32, 33, 64, 96, 224, 256, 288, 300, 320, 512, 576, 704, 1536};
  std::vector<std::size_t> columns;
  for (std::size_t c = 1; c <= 300; c += c < 20 ? 2 : 14) columns.push_back(c);
  columns.insert(columns.end(), {255, 256, 257, 511, 513, 576, 1024});
  return columns;
}

// |got - exact| within the roundings of a chain of n terms; `slack` where terms cancel inside a weight.
void require_close(const Product& p, const std::vector<float>& out, double slack) {
  std::vector<double> exact(p.n_tokens * p.rows), magnitude(exact.size());
  reference_matmul(p.reference(), exact.data(), magnitude.data());
  const double terms = 4.0 + static_cast<double>(p.columns) / (p.format->integer ? 16.0 : 1.0);
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < p.n_tokens; ++t)
    for (std::size_t r = 0; r < p.rows; ++r) {
      const double error = std::fabs(double{out[t * p.out_columns() + r]} - exact[t * p.rows + r]);
      const double bound = terms * 0x1p-24 * slack * magnitude[t * p.rows + r] + 1e-37;
      if (error <= bound) continue;  // false for NaN too
      if (wrong++ == 0)
        UNSCOPED_INFO("token " << t << " row " << r << " error " << error << " bound " << bound);
    }
  REQUIRE(wrong == 0);
}

void require_same_on_all_isas(const Product& p, const std::vector<float>& expected) {
  for (const IsaInfo& isa : tested_isas()) {
    if (!isa.supported) continue;
    INFO(isa.name);
    REQUIRE(same_bits(run_all(*isa.kernels, p), expected));
  }
}

void require_same_in_parts(const Product& p, const std::vector<float>& expected,
                           std::mt19937& rng) {
  const std::size_t panels = quant::n_panels(p.rows);
  for (const IsaInfo& isa : tested_isas()) {
    if (!isa.supported) continue;
    INFO(isa.name);
    std::vector<float> singly(expected.size()), mixed(expected.size());
    for (std::size_t t = 0; t < p.n_tokens; ++t)
      run_part(*isa.kernels, p, {0, panels, t, t + 1}, singly);
    REQUIRE(same_bits(singly, expected));
    for (std::size_t panel = 0; panel < panels;) {
      const std::size_t end = std::min(panels, panel + 1 + rng() % 3);
      for (std::size_t t = 0; t < p.n_tokens;) {
        const std::size_t stop = std::min<std::size_t>(p.n_tokens, t + 1 + rng() % 9);
        run_part(*isa.kernels, p, {panel, end, t, stop}, mixed);
        t = stop;
      }
      panel = end;
    }
    REQUIRE(same_bits(mixed, expected));
  }
}

bool has_minimum(quant::FormatId id) {
  using quant::FormatId;
  return id == FormatId::q4_1 || id == FormatId::q5_1 || id == FormatId::q4_k || id == FormatId::q5_k;
}

// Under sampling the formats take turns with widths and numbers of tokens (17: no step divides it).
std::size_t sample_start(const quant::FormatTraits& format) {
  return 17 * quant::format_index(format.id);
}

const Kernels& scalar() {
  return *all_isas().back().kernels;
}

}  // namespace

TEST_CASE("products of every format and width are right and the same on every ISA") {
  unsigned seed = 0;
  for (const quant::FormatTraits& format : quant::all_formats()) {
    std::size_t index = sample_start(format);
    for (std::size_t columns : columns_of(format)) {
      const std::size_t rows = 1 + seed * 7 % 50, n_tokens = 1 + seed % 4;
      ++seed;
      if (!sampled(index++)) continue;
      const Product p = make_product(format, {rows, columns, n_tokens}, Fill::encoded, seed);
      INFO(format.name << " " << rows << " x " << columns << ", " << p.n_tokens << " tokens");
      const std::vector<float> out = run_all(scalar(), p);
      require_close(p, out, 8.0);
      require_same_on_all_isas(p, out);
    }
  }
}

TEST_CASE("a token's result does not depend on the tokens and panels beside it") {
  std::mt19937 rng(5);
  for (const quant::FormatTraits& format : quant::all_formats()) {
    std::size_t index = sample_start(format);
    for (std::size_t n_tokens : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 29, 32, 39, 70}) {
      if (!sampled(index++)) continue;
      const std::size_t columns = n_tokens % 2 == 0 ? 576 : 320 + n_tokens;
      const Product p = make_product(format, {41, columns, n_tokens}, Fill::encoded,
                                     static_cast<unsigned>(100 + n_tokens));
      INFO(format.name << " " << n_tokens << " tokens x " << columns);
      require_same_in_parts(p, run_all(scalar(), p), rng);
    }
  }
}

TEST_CASE("extreme codes and scales are exact before the rescale: no ISA saturates") {
  for (const quant::FormatTraits& format : quant::all_formats()) {
    if (!format.integer) continue;
    for (Fill fill : {Fill::ones_codes, Fill::zeros_codes, Fill::sign_codes, Fill::random_codes})
      for (std::size_t columns : {32u, 320u, 512u}) {
        Product p =
            make_product(format, {18, columns, 37}, fill, 40 + static_cast<unsigned>(columns));
        for (std::size_t t = 0; t < p.n_tokens; ++t) {  // all codes 127, all -127, alternating
          const std::size_t group = format.activation_group;
          for (std::size_t g = 0; g < p.q.groups_stride; ++g) p.sums[t * p.q.groups_stride + g] = 0;
          for (std::size_t k = 0; k < columns; ++k) {
            const int code = t % 3 == 0 ? 127 : t % 3 == 1 ? -127 : k % 2 == 0 ? 127 : -127;
            p.codes[t * p.q.codes_stride + k] = static_cast<std::int8_t>(code);
            p.sums[t * p.q.groups_stride + k / group] += code;
          }
        }
        INFO(format.name << " fill " << static_cast<int>(fill) << " columns " << columns);
        const std::vector<float> out = run_all(scalar(), p);
        // A weight d * u + m may cancel to nothing: only formats without minimum have a bound here.
        if (!has_minimum(format.id))
          require_close(p, out, 2.0);
        require_same_on_all_isas(p, out);
      }
  }
}

TEST_CASE("subnormal and huge values stay the same on every ISA") {
  for (const quant::FormatTraits& format : quant::all_formats())
    for (float scale : {1e-38f, 1e-30f, 1e-6f, 1e3f, 1e15f}) {
      if ((format.integer || format.id == quant::FormatId::f16) && scale > 1e4f)
        continue;  // beyond f16
      const Product p = make_product(format, {20, 288, 5}, Fill::encoded, 77, scale);
      INFO(format.name << " scale " << scale);
      require_same_on_all_isas(p, run_all(scalar(), p));
    }
}

TEST_CASE("rows and tokens outside the call are not written") {
  for (const quant::FormatTraits& format : quant::all_formats()) {
    const Product p = make_product(format, {80, 320, 9}, Fill::encoded, 9);
    for (const IsaInfo& isa : tested_isas()) {
      if (!isa.supported) continue;
      std::vector<float> out(p.n_tokens * p.out_columns(), 123.0f);
      run_part(*isa.kernels, p, {1, 4, 2, 7}, out);
      INFO(format.name << " " << isa.name);
      std::size_t wrong = 0;
      for (std::size_t t = 0; t < p.n_tokens; ++t)
        for (std::size_t r = 0; r < p.out_columns(); ++r) {
          const bool inside = t >= 2 && t < 7 && r >= 16 && r < 64;
          wrong += (out[t * p.out_columns() + r] == 123.0f) == inside;
        }
      REQUIRE(wrong == 0);
    }
  }
}
