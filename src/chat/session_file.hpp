// A conversation in one file: messages, settings, and a snapshot of the KV cache, so that it goes on
// where it was without prefill (docs/SESSION_FILE.md). Input is hostile: a file is checked whole before
// anything is taken from it. Autosave is the caller's.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/mapped_file.hpp"
#include "chat/conversation_json.hpp"
#include "engine/snapshot.hpp"

namespace quern::chat {

inline constexpr std::uint32_t kSessionFileVersion = 1;

// Atomically, mode 0600, synced. session: nullptr (or one that holds nothing) leaves the snapshot out.
void save_session_file(const std::filesystem::path& path, const Conversation& conversation,
                       const engine::Session* session, std::span<const Conversation> branches = {});

class SessionFile {
 public:
  // Maps and checks everything but what needs a session. Input errors: not such a file, truncated,
  // damaged, a future version.
  explicit SessionFile(const std::filesystem::path& path);
  // The same of bytes; `where` names them.
  SessionFile(base::Bytes bytes, std::string_view where);

  const Conversation& conversation() const { return text_.conversation; }
  const std::vector<Conversation>& branches() const { return text_.branches; }
  // Of the snapshot; none: the file has none.
  const std::optional<engine::SnapshotInfo>& snapshot() const { return info_; }
  // As engine::restore_snapshot(); without a snapshot the session becomes empty, and nothing is held.
  engine::RestoreResult restore(engine::Session& session) const;

 private:
  void parse(base::Bytes bytes);

  std::string where_;
  base::MappedFile file_;
  WrittenConversation text_;
  base::Bytes snapshot_;
  std::optional<engine::SnapshotInfo> info_;
};

}  // namespace quern::chat
