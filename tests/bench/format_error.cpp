// Relative error of every weight format on the float matrices of a safetensors file: each matrix [rows, columns]
// is encoded and decoded; per matrix sqrt(sum (w - q)^2 / sum w^2), then the root mean square over the matrices.
//   format_error FILE.safetensors [NAME_PART]     prints "format<tab>bits per weight<tab>error in per cent"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "checkpoint/safetensors.hpp"
#include "quant/formats.hpp"

namespace {

using namespace quern;

struct Errors {
  double squares = 0;      // over matrices
  double bits = 0, weights = 0;
  std::size_t matrices = 0;
};

void add(const quant::FormatTraits& format, const std::vector<float>& w, std::size_t rows, std::size_t columns,
         Errors& errors) {
  std::vector<std::byte> panel(quant::panel_bytes(format, columns));
  std::vector<float> lines(quant::kPanelRows * columns), back(columns);
  double error = 0, sum = 0;
  for (std::size_t first = 0; first < rows; first += quant::kPanelRows) {
    const std::size_t n = std::min(quant::kPanelRows, rows - first);
    std::fill(lines.begin(), lines.end(), 0.0F);
    std::copy_n(w.data() + first * columns, n * columns, lines.data());
    quant::encode_panel(format, lines.data(), columns, columns, nullptr, panel.data());
    for (std::size_t row = 0; row < n; ++row) {
      quant::decode_row(format, panel.data(), row, columns, back.data());
      for (std::size_t k = 0; k < columns; ++k) {
        const double value = w[(first + row) * columns + k];
        error += (value - back[k]) * (value - back[k]);
        sum += value * value;
      }
    }
  }
  errors.squares += error / sum;
  errors.bits += 8.0 * static_cast<double>(quant::tensor_bytes(format, rows, columns));
  errors.weights += static_cast<double>(rows * columns);
  ++errors.matrices;
}

void run(const char* path, const std::string& part) {
  const base::MappedFile file{std::filesystem::path(path)};
  std::vector<Errors> errors(quant::kFormatCount);
  for (const checkpoint::SourceTensor& tensor : checkpoint::parse_safetensors(file.bytes(), path)) {
    if (tensor.shape.size() != 2 || tensor.name.find(part) == std::string::npos) continue;
    std::vector<float> w(tensor.values);
    checkpoint::to_float(tensor, 0, tensor.values, w.data());
    for (std::size_t i = 0; i < quant::kFormatCount; ++i)
      add(quant::all_formats()[i], w, tensor.shape[0], tensor.shape[1], errors[i]);
  }
  for (std::size_t i = 0; i < quant::kFormatCount; ++i)
    std::printf("%s\t%.4f\t%.3f\n", std::string(quant::all_formats()[i].name).c_str(), errors[i].bits / errors[i].weights,
                100 * std::sqrt(errors[i].squares / static_cast<double>(errors[i].matrices)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: format_error FILE.safetensors [NAME_PART]\n"), 2;
  try {
    run(argv[1], argc > 2 ? argv[2] : "");
  } catch (const quern::base::Error& error) {
    std::fprintf(stderr, "format_error: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
