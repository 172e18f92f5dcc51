// A non-owning view of one tensor as it lies in the mapped weight file.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.hpp"
#include "quant/format.hpp"

namespace quern::weights {

struct TensorView {
  std::string name;
  const quant::FormatTraits* format = nullptr;
  std::size_t rows = 0, columns = 0;
  base::Bytes bytes;  // 64-byte aligned; size == quant::tensor_bytes(...)

  // rows_f32 only.
  const float* floats() const { return reinterpret_cast<const float*>(bytes.data()); }
  const std::byte* panel(std::size_t index) const {
    return bytes.data() + index * quant::panel_bytes(*format, columns);
  }
};

}  // namespace quern::weights
