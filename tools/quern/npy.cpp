#include "npy.hpp"

#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace fs = std::filesystem;

struct NpyWriter::State {
  fs::path path, temporary;
  std::unique_ptr<base::OutputFile> file;
  std::vector<float> pending;   // written in pieces of about 1 MiB
  bool done = false;

  void flush() {
    file->write({reinterpret_cast<const std::byte*>(pending.data()), pending.size() * sizeof(float)});
    pending.clear();
  }
};

NpyWriter::NpyWriter(const fs::path& path, std::size_t rows, std::size_t columns)
    : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->temporary = path;
  state_->temporary += base::cat(".tmp", ::getpid());
  state_->file = std::make_unique<base::OutputFile>(state_->temporary);
  std::string header = base::cat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", columns, "), }");
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xFF);
  start += static_cast<char>(header.size() >> 8);
  state_->file->write(base::as_bytes(start + header));
}

NpyWriter::~NpyWriter() {
  if (!state_->done) ::unlink(state_->temporary.c_str());
}

void NpyWriter::write_row(std::span<const float> row) {
  state_->pending.insert(state_->pending.end(), row.begin(), row.end());
  if (state_->pending.size() >= (std::size_t{1} << 18)) state_->flush();
}

void NpyWriter::finish() {
  state_->flush();
  state_->file->sync();
  state_->file.reset();
  std::error_code error;
  fs::rename(state_->temporary, state_->path, error);
  if (error) base::environment_error(base::printable(state_->path.string()), "cannot rename into place", error.value());
  state_->done = true;
}

}  // namespace quern::tool
