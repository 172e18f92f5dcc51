// Where the vectors of texts go: JSON lines or a NumPy array, to a file or standard output.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/output_file.hpp"
#include "npy.hpp"

namespace quern::tool {

enum class VectorFormat { jsonl, npy };

// By `word` ("jsonl", "npy"; "" where none was given), else by the ending of `path`, else (no path) JSON lines.
// Usage error for an ending that names no format.
VectorFormat vector_format(const std::string& path, const std::string& word);

// A file appears whole or not at all; a pipe or device is written into as it comes.
class VectorOutput {
 public:
  // path "": standard output.
  VectorOutput(const std::string& path, VectorFormat format, std::size_t rows, std::size_t columns);
  void write(std::size_t index, const std::vector<float>& vector);  // in the order of the rows
  void finish();

 private:
  std::unique_ptr<NpyWriter> array_;
  std::optional<base::AtomicFile> lines_;  // none of both: JSON lines to std::cout
};

}  // namespace quern::tool
