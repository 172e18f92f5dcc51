#include "convert/made_tensor.hpp"

#include "base/strings.hpp"

namespace quern::convert {

namespace {

// The name of every made tensor; no checkpoint's names begin so.
constexpr std::string_view kMade = "(made) ";

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 31;

std::unique_ptr<MadeTensor> made(std::string_view what, std::size_t rows, std::size_t columns,
                                 std::vector<float> values) {
  auto result = std::make_unique<MadeTensor>();
  result->values = std::move(values);
  result->tensor.name = base::cat(kMade, what);
  result->tensor.type = checkpoint::DType::f32;
  result->tensor.shape = {rows, columns};
  result->tensor.values = result->values.size();
  result->tensor.bytes = base::Bytes(reinterpret_cast<const std::byte*>(result->values.data()),
                                     result->values.size() * sizeof(float));
  return result;
}

}  // namespace

std::unique_ptr<MadeTensor> stacked_rows(
    const std::vector<const checkpoint::SourceTensor*>& tensors, std::string_view where) {
  const std::uint64_t length = tensors.front()->values;
  std::vector<float> values(tensors.size() * length);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->values != length)
      base::reject(base::cat(where, ": tensor ", base::printable(tensors[i]->name)),
                   "number of values", base::cat(tensors[i]->values), base::cat(length));
    checkpoint::to_float(*tensors[i], 0, length, values.data() + i * length);
  }
  return made(tensors.front()->name, tensors.size(), length, std::move(values));
}

std::unique_ptr<MadeTensor> projected_rows(const checkpoint::SourceTensor& table,
                                           const checkpoint::SourceTensor& matrix,
                                           std::string_view where) {
  const auto& of = table.shape;
  const auto& by = matrix.shape;
  if (of.size() != 2 || by.size() != 2 || of[1] != by[1] || of[0] > kMaxValues / by[0])
    base::reject(base::cat(where, ": tensor ", base::printable(matrix.name)),
                 base::cat("cannot be multiplied with ", base::printable(table.name)));
  const std::size_t n = of[0], m = by[0], k = of[1];
  std::vector<float> weights(m * k), row(k), values(n * m);
  checkpoint::to_float(matrix, 0, weights.size(), weights.data());
  for (std::size_t i = 0; i < n; ++i) {
    checkpoint::to_float(table, i * k, k, row.data());
    for (std::size_t j = 0; j < m; ++j) {
      double sum = 0;
      for (std::size_t c = 0; c < k; ++c) sum += double{row[c]} * double{weights[j * k + c]};
      values[i * m + j] = static_cast<float>(sum);
    }
  }
  return made(table.name, n, m, std::move(values));
}

bool is_made(const checkpoint::SourceTensor& tensor) {
  return tensor.name.compare(0, kMade.size(), kMade) == 0;
}

}  // namespace quern::convert
