#include "convert/made_tensor.hpp"

#include "base/strings.hpp"

namespace quern::convert {

namespace {

// The name of every made tensor; no checkpoint's names begin so.
constexpr std::string_view kMade = "(made) ";

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

bool is_made(const checkpoint::SourceTensor& tensor) {
  return tensor.name.compare(0, kMade.size(), kMade) == 0;
}

}  // namespace quern::convert
