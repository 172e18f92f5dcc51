#include "vector_output.hpp"

#include <array>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace {

std::string json_line(std::size_t index, const std::vector<float>& vector) {
  std::string line = base::cat("{\"index\": ", index, ", \"embedding\": [");
  std::array<char, 32> digits{};
  for (std::size_t i = 0; i < vector.size(); ++i) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), vector[i]).ptr;
    line += i == 0 ? "" : ", ";
    line.append(digits.data(), end);
  }
  return line + "]}\n";
}

}  // namespace

VectorFormat vector_format(const std::string& path, const std::string& word) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (word == "npy" || (word.empty() && ending == ".npy")) return VectorFormat::npy;
  if (!word.empty() || path.empty() || ending == ".jsonl") return VectorFormat::jsonl;
  base::usage_error(base::printable(path), base::cat("its ending names no format of vectors (got \"", base::printable(ending, 20),
                                                     "\", expected .npy or .jsonl, or --format npy or jsonl)"));
}

VectorOutput::VectorOutput(const std::string& path, VectorFormat format, std::size_t rows, std::size_t columns) {
  if (format == VectorFormat::npy)
    array_ = std::make_unique<NpyWriter>(path.empty() ? "/dev/stdout" : path, rows, columns);
  else if (!path.empty())
    lines_.emplace(path, base::AtomicFile::Access::shared);
}

void VectorOutput::write(std::size_t index, const std::vector<float>& vector) {
  if (array_) return array_->write_row(vector);
  const std::string line = json_line(index, vector);
  if (lines_) lines_->file().write(base::as_bytes(line));
  else std::cout << line;
}

void VectorOutput::finish() {
  if (array_) array_->finish();
  if (lines_) lines_->publish();
}

}  // namespace quern::tool
