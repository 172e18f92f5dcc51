// Opening the files of a checkpoint: mapped once, remembered by identity so that a change during
// the conversion is noticed, and never outside the checkpoint's directory (or the blobs of its hub
// cache).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.hpp"

namespace quern::checkpoint {

// What tells one state of a file from another.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_seconds = 0, modified_nanoseconds = 0;
  bool operator==(const FileIdentity&) const = default;
};

class SourceFile {
 public:
  // Maps a regular file; an input error when it changes while it is opened.
  explicit SourceFile(const std::filesystem::path& path);
  base::Bytes bytes() const { return file_.bytes(); }
  void check_unchanged() const;
  void release(base::Bytes part) const;  // of bytes(): its pages are not needed for now

 private:
  std::filesystem::path path_;
  FileIdentity identity_;
  base::MappedFile file_;
};

// A name that can only mean an entry of one directory: not empty, no separators, control bytes, "."
// or "..".
bool is_plain_file_name(std::string_view name);

class SourceDirectory {
 public:
  explicit SourceDirectory(const std::filesystem::path& path);  // an input error when it is none

  std::string where(std::string_view name) const;  // path of an entry, for error lines
  // Names are those of entries, or "DIRECTORY/FILE" of a file one level down.
  bool has(std::string_view name) const;           // also a link that leads nowhere
  std::vector<std::string> names() const;          // sorted, at most 100,000

  // The real path of an entry. A link must end inside this directory, or, when this is a snapshot
  // of a hub cache (.../snapshots/REVISION), directly in the cache's own .../blobs: an input error
  // otherwise.
  std::filesystem::path resolve(std::string_view name) const;

 private:
  std::filesystem::path shown_;  // as the user wrote it
  std::filesystem::path real_;   // without links
};

}  // namespace quern::checkpoint
