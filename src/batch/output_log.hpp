// The output of a batch: one line per answer, appended by one write() each, never twice. Owns the file, its kernel
// lock, its manifest and when they are synced. A failed write leaves whole lines only; a failed sync is remembered
// in the manifest. docs/BATCH.md describes what lies on the disk. Not here: the order of the lines (reorder.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "batch/descriptor.hpp"
#include "batch/manifest.hpp"
#include "batch/output_scan.hpp"

namespace quern::batch {

// Nobody reads the stream any more: the run ends quietly.
class ClosedPipe : public base::Error {
 public:
  explicit ClosedPipe(std::string_view where) : Error(base::ExitCode::environment, where, "nobody reads it any more") {}
};

enum class Existing { refuse, resume, overwrite };

class OutputLog {
 public:
  // Opens and locks; "-" and what is no regular file are streams: no lock, no manifest, no sync. Usage errors: the
  // input itself (by any name), lines are there and `existing` is refuse, --resume of a stream. Environment errors:
  // not writable, "locked by pid N". An empty file counts as none. Nothing is changed yet.
  OutputLog(const std::filesystem::path& path, Existing existing, const InputFile& input, std::size_t sync_lines = 1000);
  OutputLog(const OutputLog&) = delete;
  OutputLog& operator=(const OutputLog&) = delete;
  ~OutputLog();  // a file that it created and nothing was written to is removed

  bool is_stream() const { return stream_; }
  const std::string& name() const { return name_; }
  // Of the output to be resumed; nothing when there is none. Input error when lines are there without a manifest.
  const std::optional<StoredManifest>& stored() const { return stored_; }
  int descriptor() const { return fd_; }

  // From here on the disk changes. Resume: cuts the torn end off (OUT.torn keeps it) and writes `manifest`.
  void begin_resumed(const Manifest& manifest, const OutputScan& scan);
  void begin(const Manifest& manifest);

  // One line, its end included. Environment errors after the file holds whole lines only.
  void append(std::string_view line);
  void sync_if_due();  // every sync_lines lines or 2 seconds
  // Environment error: the lines since the last good sync are unsure, and a resumed run does them again.
  void sync();
  std::size_t n_unsynced() const { return n_unsynced_; }

 private:
  void open_regular(Existing existing, const InputFile& input);
  void lock();
  void write_manifest(const Manifest& manifest, const SyncState& sync);
  void record_sync(const SyncState& sync);
  void keep_torn(std::uint64_t offset, std::uint64_t n_bytes) const;

  std::filesystem::path path_;
  std::string name_;
  Descriptor fd_, manifest_fd_;
  bool stream_ = false, created_ = false, begun_ = false;
  std::uint64_t size_ = 0, synced_ = 0, sync_offset_ = 0;
  std::size_t sync_lines_, n_unsynced_ = 0;
  std::optional<StoredManifest> stored_;
  std::chrono::steady_clock::time_point last_sync_;
};

std::filesystem::path manifest_path(const std::filesystem::path& output);
std::filesystem::path torn_path(const std::filesystem::path& output);

}  // namespace quern::batch
