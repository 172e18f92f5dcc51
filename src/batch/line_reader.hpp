// The input of a batch: a snapshot of a file (size, time of change, identity), read line by line in bounded memory.
// What is no regular file (standard input, a pipe) is copied to an unnamed temporary file first, so that it can be
// read twice. Not here: what the lines say (record.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batch/descriptor.hpp"

namespace quern::batch {

// Longer lines are errors of their own; they are passed over, not stored.
inline constexpr std::size_t kMaxLineBytes = std::size_t{8} << 20;

class InputFile {
 public:
  // "-" is standard input. Input errors: absent, a directory. Environment errors: no room to copy a pipe.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Input error when the file is not what it was: size, time of change, or another file of that name.
  void check_unchanged() const;
  const std::string& name() const { return name_; }  // for messages
  std::uint64_t size() const { return size_; }
  bool is(dev_t device, ino_t inode) const { return regular_ && device == device_ && inode == inode_; }
  int descriptor() const { return fd_; }

 private:
  void spool();

  std::filesystem::path path_;
  std::string name_;
  Descriptor fd_;
  bool regular_ = false;  // given as a file, not copied
  bool named_ = false;    // by a path that can be looked at again
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t size_ = 0;
  std::int64_t changed_ = 0;  // nanoseconds
};

struct Line {
  std::uint64_t number = 0;  // from 1, as editors count
  std::string_view text;     // without its end (\n or \r\n); empty when too long; valid until the next one
  std::uint64_t n_bytes = 0;
  std::uint64_t hash = 0;    // XXH3 of the line without its end
  bool too_long() const { return n_bytes > kMaxLineBytes; }
};

// Lines that hold more than white space. A byte order mark before the first is none of its text.
class LineReader {
 public:
  explicit LineReader(const InputFile& file);
  bool next(Line& line);

 private:
  bool fill();  // the next block; false at the end of the snapshot
  bool raw_next(Line& line);

  const InputFile& file_;
  std::uint64_t offset_ = 0, number_ = 0;
  std::vector<char> block_;
  std::size_t at_ = 0, end_ = 0;
  std::string text_;
};

}  // namespace quern::batch
