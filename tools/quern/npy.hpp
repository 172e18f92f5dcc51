// Writes float32 matrices as NumPy arrays (format version 1.0), row by row.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace quern::tool {

// Usage error when the output is one of the files that are read (under any name). Empty paths are none.
void check_output_is_no_input(const std::string& path, const std::vector<std::string>& inputs);

// The file appears whole or not at all; a pipe or device is written into (base::AtomicFile).
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
