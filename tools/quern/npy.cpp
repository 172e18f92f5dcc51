#include "npy.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"

namespace quern::tool {

void check_output_is_no_input(const std::string& path, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return;
  for (const std::string& input : inputs)
    if (!input.empty() && fs::exists(input, ignored) && fs::equivalent(path, input, ignored))
      base::usage_error(base::printable(path), "is an input of this command");
}

struct NpyWriter::State {
  explicit State(const std::filesystem::path& path) : target(path, base::AtomicFile::Access::shared) {}

  base::AtomicFile target;
  std::vector<float> pending;   // written in pieces of about 1 MiB

  void flush() {
    target.file().write({reinterpret_cast<const std::byte*>(pending.data()), pending.size() * sizeof(float)});
    pending.clear();
  }
};

NpyWriter::NpyWriter(const std::filesystem::path& path, std::size_t rows, std::size_t columns)
    : state_(std::make_unique<State>(path)) {
  std::string header = base::cat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", columns, "), }");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xFF);
  start += static_cast<char>(header.size() >> 8);
  state_->target.file().write(base::as_bytes(start + header));
}

NpyWriter::~NpyWriter() = default;

void NpyWriter::write_row(std::span<const float> row) {
  state_->pending.insert(state_->pending.end(), row.begin(), row.end());
  if (state_->pending.size() >= (std::size_t{1} << 18)) state_->flush();
}

void NpyWriter::finish() {
  state_->flush();
  state_->target.publish();
}

}  // namespace quern::tool
