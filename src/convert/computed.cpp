#include "convert/computed.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 28;

// The table that goes by this name: the encoder's own, or the model's.
const contract::PositionTable& table_of(const contract::Contract& contract,
                                        const contract::TensorSpec& spec) {
  const bool own = spec.name.starts_with("encoder.embedding.");
  const auto& table =
      own ? contract.encoder->embedding->embedding.positions : contract.embedding.positions;
  QUERN_ASSERT(table && table->order);
  return *table;
}

}  // namespace

std::unique_ptr<ComputedTensor> compute_tensor(const contract::Contract& contract,
                                               const contract::TensorSpec& spec,
                                               std::string_view where) {
  if (spec.parameters() > kMaxValues)
    base::reject(where, base::cat("the table ", spec.name, " is too large"),
                 base::cat(spec.parameters(), " values"), base::cat("at most ", kMaxValues));
  auto result = std::make_unique<ComputedTensor>();
  result->values = sinusoids(spec.rows, spec.columns, *table_of(contract, spec).order);
  checkpoint::SourceTensor& source = result->source;
  source.name = spec.name;
  source.type = checkpoint::DType::f32;
  source.shape = {spec.rows, spec.columns};
  source.values = result->values.size();
  source.bytes = base::Bytes(reinterpret_cast<const std::byte*>(result->values.data()),
                             result->values.size() * sizeof(float));
  return result;
}

std::vector<float> sinusoids(std::size_t rows, std::size_t columns, contract::SinusoidOrder order) {
  const bool halves = order == contract::SinusoidOrder::halves;
  const std::size_t n_sines = (columns + 1) / 2;
  std::vector<float> table(rows * columns);
  for (std::size_t j = 0; j < columns; ++j) {
    const std::size_t pair = j / 2;
    const double wavelength =
        std::pow(10000.0, 2.0 * static_cast<double>(pair) / static_cast<double>(columns));
    const std::size_t column = !halves ? j : j % 2 == 0 ? pair : n_sines + pair;
    for (std::size_t row = 0; row < rows; ++row) {
      const double angle = static_cast<double>(row) / wavelength;
      table[row * columns + column] =
          static_cast<float>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace quern::convert
