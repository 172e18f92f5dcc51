#include "checkpoint/packed_tensor.hpp"

#include <algorithm>

#include "base/small_float.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::int8_t kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace

void PackedTensor::zeros(std::uint64_t, std::int16_t* out) const {
  std::fill_n(out, n_groups(), std::int16_t{0});
}

float code_value(CodeKind kind, std::uint8_t code, std::int16_t zero) {
  switch (kind) {
    case CodeKind::int4:
      return static_cast<float>(int{code} - int{zero});
    case CodeKind::int8:
      return static_cast<float>(int{static_cast<std::int8_t>(code)} - int{zero});
    case CodeKind::f8_e4m3:
      return base::f8_e4m3_to_float(code);
    case CodeKind::f8_e5m2:
      return base::f8_e5m2_to_float(code);
    case CodeKind::e2m1:
      return kE2m1Doubled[code & 15];
  }
  return 0;
}

void PackedTensor::row(std::uint64_t row, PackedRow& out) const {
  QUERN_ASSERT(row < shape_.rows);
  out.codes.resize(shape_.columns);
  out.scales.resize(n_groups());
  out.zeros.resize(n_groups());
  codes(row, out.codes.data());
  scales(row, out.scales.data());
  zeros(row, out.zeros.data());
}

void PackedTensor::read(std::uint64_t first, std::uint64_t count, float* out) const {
  PackedRow one;
  const std::uint32_t* order = group_of_column();
  for (std::uint64_t at = first; at < first + count;) {
    row(at / shape_.columns, one);
    const std::uint64_t begin = at % shape_.columns;
    const std::uint64_t end = std::min(shape_.columns, begin + (first + count - at));
    for (std::uint64_t k = begin; k < end; ++k) {
      const std::uint64_t group = order == nullptr ? k / shape_.group : order[k];
      *out++ = one.scales[group] * code_value(shape_.kind, one.codes[k], one.zeros[group]);
    }
    at += end - begin;
  }
}

bool scales_fit_f16(const PackedTensor& tensor) {
  std::vector<float> scales(tensor.n_groups());
  for (std::uint64_t row = 0; row < tensor.shape().rows; ++row) {
    tensor.scales(row, scales.data());
    for (const float scale : scales)
      if (base::f16_to_float(base::float_to_f16(scale)) != scale) return false;
  }
  return true;
}

bool zeros_fit(const PackedTensor& tensor, int low, int high) {
  std::vector<std::int16_t> zeros(tensor.n_groups());
  for (std::uint64_t row = 0; row < tensor.shape().rows; ++row) {
    tensor.zeros(row, zeros.data());
    for (const std::int16_t zero : zeros)
      if (zero < low || zero > high) return false;
  }
  return true;
}

}  // namespace quern::checkpoint
