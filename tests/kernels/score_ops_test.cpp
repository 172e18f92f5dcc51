// Softmax, sigmoid, the indexer's sums and products with a transposed matrix: against float64 and
// bit-equal on every instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention_cases.hpp"
#include "catch.hpp"
#include "quant/formats.hpp"

namespace quern::kernels {
namespace {

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Runs `work` on every instruction set; all must give the bits of the first.
template <class F>
std::vector<float> on_all(const F& work) {
  std::vector<float> first;
  for (const IsaInfo* isa : supported_isas()) {
    const std::vector<float> result = work(*isa->kernels);
    if (first.empty()) first = result;
    INFO(isa->name);
    CHECK(same(result, first));
  }
  return first;
}

}  // namespace

TEST_CASE("softmax of any length sums to one and follows the formula") {
  for (const std::size_t n : {1, 2, 7, 16, 17, 64, 255}) {
    const std::vector<float> x = normal_values(n, static_cast<unsigned>(n), 5.0f);
    const std::vector<float> y = on_all([&](const Kernels& kernels) {
      std::vector<float> p = x;
      p.push_back(77.0f);  // nothing beyond n is touched
      kernels.softmax(p.data(), n);
      CHECK(p.back() == 77.0f);
      return p;
    });
    const double top = static_cast<double>(*std::max_element(x.begin(), x.end()));
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v) - top);
    for (std::size_t i = 0; i < n; ++i) {
      const double want = std::exp(static_cast<double>(x[i]) - top) / sum;
      CHECK(std::abs(static_cast<double>(y[i]) - want) <= 5e-6 * want);  // of rounding x - max
    }
  }
}

TEST_CASE("sigmoid and the weighted sum of positive parts") {
  const std::vector<float> x = normal_values(37, 5, 6.0f), start = normal_values(37, 6);
  const std::vector<float> s = on_all([&](const Kernels& kernels) {
    std::vector<float> y = x;
    kernels.sigmoid(y.data(), y.size());
    return y;
  });
  const std::vector<float> r = on_all([&](const Kernels& kernels) {
    std::vector<float> y = start;
    kernels.add_relu(y.data(), x.data(), -0.75f, y.size());
    return y;
  });
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    CHECK(std::abs(static_cast<double>(s[i]) - want) <= 1e-6 * want);
    const double sum =
        static_cast<double>(start[i]) - 0.75 * std::max(0.0, static_cast<double>(x[i]));
    CHECK(std::abs(static_cast<double>(r[i]) - sum) <= 1e-6 * (1 + std::abs(sum)));
  }
}

TEST_CASE("products with the transpose of a range of rows") {
  constexpr std::size_t kMatrixRows = 53;
  for (const char* name : {"f32", "bf16", "f16"}) {
    const quant::FormatTraits& format = *quant::find_format(name);
    for (const std::size_t columns : {5, 64, 300}) {
      const std::vector<float> w = normal_values(kMatrixRows * columns, 3);
      const std::size_t bytes = quant::panel_bytes(format, columns);
      base::Buffer<std::byte> panels(bytes * quant::n_panels(kMatrixRows));
      std::vector<float> decoded(w.size()), panel(16 * columns);
      for (std::size_t row = 0; row < kMatrixRows; row += 16) {
        std::fill(panel.begin(), panel.end(), 0.0f);
        const std::size_t n = std::min<std::size_t>(16, kMatrixRows - row);
        std::copy_n(&w[row * columns], n * columns, panel.begin());
        std::byte* out = panels.data() + row / 16 * bytes;
        quant::encode_panel(format, panel.data(), columns, columns, nullptr, out);
        for (std::size_t i = 0; i < n; ++i)
          quant::decode_row(format, out, i, columns, &decoded[(row + i) * columns]);
      }
      for (const auto& [first, end] : {std::pair{0, 53}, {16, 32}, {13, 37}, {50, 53}}) {
        const auto first_row = static_cast<std::size_t>(first),
                   end_row = static_cast<std::size_t>(end);
        const std::size_t n_rows = end_row - first_row;
        const std::vector<float> x = normal_values(7 * n_rows, 9);
        const auto product = [&](const Kernels& kernels, std::size_t token, std::size_t n) {
          std::vector<float> y(n * columns), scratch(transposed_scratch_floats(n_rows));
          kernels.transposed[quant::format_index(format.id)](
              {panels.data(), bytes, columns, first_row, end_row, n, &x[token * n_rows], n_rows,
               y.data(), columns, scratch.data()});
          return y;
        };
        const std::vector<float> y =
            on_all([&](const Kernels& kernels) { return product(kernels, 0, 7); });
        // Tokens do not depend on their neighbours.
        std::vector<float> one_by_one;
        for (std::size_t t = 0; t < 7; ++t)
          for (const float v : product(*all_isas().back().kernels, t, 1)) one_by_one.push_back(v);
        INFO(name << " columns " << columns << " rows " << first_row << " to " << end_row);
        CHECK(same(y, one_by_one));
        for (std::size_t t = 0; t < 7; ++t)
          for (std::size_t c = 0; c < columns; ++c) {
            double want = 0, size = 0;
            for (std::size_t r = 0; r < n_rows; ++r) {
              const double term = static_cast<double>(decoded[(first_row + r) * columns + c]) *
                                  static_cast<double>(x[t * n_rows + r]);
              want += term;
              size += std::abs(term);
            }
            REQUIRE(std::abs(static_cast<double>(y[t * columns + c]) - want) <= 1e-6 * size);
          }
      }
    }
  }
}

}  // namespace quern::kernels
