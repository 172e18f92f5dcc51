// The tokens a session holds and their part of the KV cache, saved and restored: a restored session
// goes on with the very bits of one that was never interrupted. A snapshot is a file of its own
// (`run --prompt-cache`) or a section of a conversation's file; docs/SESSION_FILE.md has every byte.
// Input is hostile: sizes are compared before use, every part has a checksum, and a session that a
// snapshot is refused for stays empty. Not here: messages and settings (chat/session_file.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/output_file.hpp"
#include "engine/session.hpp"

namespace quern::engine {

inline constexpr std::uint32_t kSnapshotVersion = 1;

// What a snapshot says of itself, checked as far as it can be without a session.
struct SnapshotInfo {
  std::size_t n_tokens = 0;
  std::string isa;                  // instruction set it was computed on
  std::size_t declared_length = 0;  // Session::declared_length() of its session
  std::uint64_t model_hash = 0, weights_checksum = 0;
  std::uint64_t bytes = 0;          // of the whole snapshot
};

// What restore() did; the caller announces what is true.
struct RestoreResult {
  std::size_t n_tokens = 0;   // now held by the session
  bool other_isa = false;     // computed on another instruction set (SnapshotInfo::isa)
  // The request's declared length gives this model other position tables than the snapshot was
  // computed with, so nothing could be used: n_tokens is 0, the next generate() prefills all.
  bool other_length = false;
  SnapshotInfo info;
};

// Header and sizes only: an input error for what is no snapshot, truncated or of a future version.
SnapshotInfo inspect_snapshot(base::Bytes bytes, std::string_view where);

// Bytes that write_snapshot() appends now.
std::uint64_t snapshot_bytes(const Session& session);
// Appends a snapshot of the session to `file`. Usage error for an encoder-decoder: what its decoder
// holds means nothing without the source.
void write_snapshot(const Session& session, base::OutputFile& file);
// Replaces what the session holds. Input error, and the session is empty, when anything is damaged
// (truncated, flipped bit, sizes) or belongs to another model (contract hash, weights' checksum),
// cache type, block layout, version, or holds more tokens than the context.
RestoreResult restore_snapshot(Session& session, base::Bytes bytes, std::string_view where);

// A file of its own: written whole or not at all, mode 0600, synced. load: a missing file is an
// input error (ask std::filesystem::exists first), as is one with trailing bytes.
void save_snapshot(const Session& session, const std::filesystem::path& path);
RestoreResult load_snapshot(Session& session, const std::filesystem::path& path);

}  // namespace quern::engine
