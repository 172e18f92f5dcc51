// A file mapped read-only, and the single regular-file opener every reader goes through.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/bytes.hpp"

namespace quern::base {

// Opens a regular file (O_NONBLOCK + fstat, so a FIFO or device never hangs; errors name the path) and
// maps it whole. An empty file maps to an empty span. Where mmap is refused the file is read instead.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  Bytes bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // madvise over a part; a hint, errors are ignored.
  enum class Advice { sequential, random, will_need, dont_need, huge_pages };
  void advise(Advice advice, std::size_t offset, std::size_t length) const;
  // Brings a part into memory and into this process's page tables now, so that no page fault is left for later.
  void populate(std::size_t offset, std::size_t length) const;
  // How much of the file is in memory, as far as the system says.
  std::size_t resident_bytes() const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool heap_ = false;  // read into memory instead of mapped

  // The whole pages that hold a part of the file.
  struct Pages {
    void* begin;
    std::size_t bytes;
  };
  Pages pages_of(std::size_t offset, std::size_t length) const;
};

// Installs the SIGBUS handler: a fault inside a MappedFile prints one line "model file changed while in
// use" and exits with code 4; any other fault keeps its default action. Call once in main().
void install_mapping_fault_handler();

// Whole small file (JSON, text) as a string; an input error above `limit_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace quern::base
