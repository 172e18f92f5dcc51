// Writes float32 matrices as NumPy arrays (format version 1.0), row by row.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace quern::tool {

// "-" is not supported: the file appears whole (temporary name, sync, rename).
class NpyWriter {
 public:
  NpyWriter(const std::filesystem::path& path, std::size_t rows, std::size_t columns);
  ~NpyWriter();
  void write_row(std::span<const float> row);   // columns floats; call `rows` times
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::tool
