#include "chat/session_file.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/json_reader.hpp"
#include "base/round_up.hpp"
#include "base/strings.hpp"

namespace quern::chat {

namespace {

using base::cat;

constexpr char kMagic[8] = {'q', 'u', 'e', 'r', 'n', 's', 'e', 's'};
constexpr std::uint64_t kAlignment = 64;
// Text of messages and settings: far more than a context holds, far less than memory.
constexpr std::uint64_t kMaxJsonBytes = std::uint64_t{256} << 20;

// The first bytes of the file, as they lie (docs/SESSION_FILE.md).
struct Header {
  char magic[8];
  std::uint32_t version, flags;
  std::uint64_t total_bytes;
  std::uint64_t json_bytes, json_checksum;
  std::uint64_t snapshot_offset, snapshot_bytes;  // 0, 0: none
  std::uint64_t header_checksum;                  // of the bytes before it
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);
constexpr std::size_t kCheckedBytes = sizeof(Header) - sizeof(std::uint64_t);

base::Bytes bytes_of(const Header& header) {
  return std::as_bytes(std::span(&header, 1));
}

Header parse_header(base::Bytes bytes, std::string_view where) {
  base::ByteReader reader(bytes, where);
  const auto header = reader.read<Header>("header of a session file");
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) base::reject(where, "is no session file");
  if (header.version != kSessionFileVersion)
    base::reject(where, "session file of an unknown version", cat(header.version), cat(kSessionFileVersion));
  if (base::xxh3(bytes_of(header).first(kCheckedBytes)) != header.header_checksum)
    base::reject(where, "session file is damaged: checksum of its header differs");
  if (header.flags != 0) base::reject(where, "session file with unknown flags", cat(header.flags));
  if (bytes.size() != header.total_bytes)
    base::reject(where, bytes.size() < header.total_bytes ? "session file is truncated" : "surplus bytes at the end",
                 cat(bytes.size(), " bytes"), cat(header.total_bytes, " bytes"));
  if (header.json_bytes > kMaxJsonBytes) base::reject(where, "session file: text is too long", cat(header.json_bytes));
  const std::uint64_t json_end = base::checked_add(sizeof(Header), header.json_bytes, where);
  const bool none = header.snapshot_offset == 0 && header.snapshot_bytes == 0;
  const std::uint64_t end =
      none ? json_end : base::checked_add(header.snapshot_offset, header.snapshot_bytes, where);
  if ((!none && header.snapshot_offset != base::round_up(json_end, kAlignment)) || end != header.total_bytes)
    base::reject(where, "session file: sizes do not add up");
  return header;
}

}  // namespace

void save_session_file(const std::filesystem::path& path, const Conversation& conversation,
                       const engine::Session* session, std::span<const Conversation> branches) {
  const std::string json = write_conversation(conversation, branches);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kSessionFileVersion;
  header.json_bytes = json.size();
  header.json_checksum = base::xxh3(base::as_bytes(json));
  base::AtomicFile target(path);
  base::OutputFile& file = target.file();
  file.write(bytes_of(header));
  file.write(base::as_bytes(json));
  if (session != nullptr && !session->tokens().empty()) {
    file.pad_to(kAlignment);
    header.snapshot_offset = file.size();
    header.snapshot_bytes = engine::snapshot_bytes(*session);
    engine::write_snapshot(*session, file);
  }
  header.total_bytes = file.size();
  header.header_checksum = base::xxh3(bytes_of(header).first(kCheckedBytes));
  file.write_at(0, bytes_of(header));
  target.publish();
}

SessionFile::SessionFile(const std::filesystem::path& path)
    : where_(base::printable(path.string())), file_(path) {
  parse(file_.bytes());
}

SessionFile::SessionFile(base::Bytes bytes, std::string_view where) : where_(where) {
  parse(bytes);
}

void SessionFile::parse(base::Bytes bytes) {
  const Header header = parse_header(bytes, where_);
  const base::Bytes json = base::checked_slice(bytes, sizeof(Header), header.json_bytes, where_);
  if (base::xxh3(json) != header.json_checksum)
    base::reject(where_, "session file is damaged: checksum of its text differs");
  text_ = read_conversation(base::as_text(json), where_);
  if (header.snapshot_bytes == 0) return;
  const base::Bytes padding = bytes.subspan(sizeof(Header) + json.size()).first(
      header.snapshot_offset - sizeof(Header) - json.size());
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; }))
    base::reject(where_, "session file is damaged: padding is not zero");
  snapshot_ = base::checked_slice(bytes, header.snapshot_offset, header.snapshot_bytes, where_);
  info_ = engine::inspect_snapshot(snapshot_, where_);
}

engine::RestoreResult SessionFile::restore(engine::Session& session) const {
  if (!info_) {
    session.clear();
    return {};
  }
  return engine::restore_snapshot(session, snapshot_, where_);
}

}  // namespace quern::chat
