// Activations in memory: views, buffers of rows, and rows quantized for integer matrices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "model/lazy_array.hpp"

namespace quern::model {

// A view of activations [n, width], rows `stride` floats apart.
struct Rows {
  float* data = nullptr;
  std::size_t n = 0, width = 0, stride = 0;

  float* row(std::size_t i) const { return data + i * stride; }
};

// A non-owning reference to a callable void(std::size_t row); none by default.
class RowFunction {
 public:
  RowFunction() = default;
  template <class F>
  RowFunction(F& function)  // NOLINT: implicit by design, the callable outlives the call
      : object_(&function), call_([](void* object, std::size_t row) { (*static_cast<F*>(object))(row); }) {}
  explicit operator bool() const { return call_ != nullptr; }
  void operator()(std::size_t row) const { call_(object_, row); }

 private:
  void* object_ = nullptr;
  void (*call_)(void*, std::size_t) = nullptr;
};

// Activations whose rows are made when they are first read, while they lie in the nearest cache: make(i) writes row i
// and touches no other. Without `make` they are there.
struct LazyRows {
  Rows rows;
  RowFunction make;

  LazyRows(const Rows& made) : rows(made) {}  // NOLINT: implicit by design
  LazyRows(const Rows& rows_, const RowFunction& make_) : rows(rows_), make(make_) {}
};

// Rows of one purpose, [n, padded width]: rows start on 64-byte lines, and kernels may write whole
// 16-row panels.
struct RowBuffer {
  LazyArray<float> memory;
  std::size_t stride = 0;

  RowBuffer() = default;
  RowBuffer(std::size_t n, std::size_t width);
  Rows rows(std::size_t n, std::size_t width) const { return {memory.data(), n, width, stride}; }
};

// Input of an integer matmul, quantized once per input and activation group.
struct QuantizedInput {
  std::size_t group = 0;
  LazyArray<std::int8_t> codes;
  LazyArray<float> scales;
  LazyArray<std::int32_t> sums;
  std::size_t codes_stride = 0, groups_stride = 0;

  QuantizedInput() = default;
  QuantizedInput(std::size_t group, std::size_t n, std::size_t columns);
  kernels::QuantizedRows rows() const {
    return {codes.data(), scales.data(), sums.data(), codes_stride, groups_stride};
  }
  std::size_t bytes() const { return codes.bytes() + scales.bytes() + sums.bytes(); }
};

}  // namespace quern::model
