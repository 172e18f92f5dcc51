#include "engine/snapshot.hpp"

#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/cache_types.hpp"
#include "contract/json.hpp"
#include "kernels/kernels.hpp"
#include "model/position.hpp"

namespace quern::engine {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

namespace {

using base::cat;

constexpr char kMagic[8] = {'q', 'u', 'e', 'r', 'n', 'k', 'v', '\n'};
constexpr std::uint32_t kDeterministic = 1;  // flags: latent attention kept its absorbed form

// The first bytes of a snapshot, as they lie (docs/SESSION_FILE.md); then the ids, then the cache.
struct Header {
  char magic[8];
  std::uint32_t version, flags;
  std::uint64_t total_bytes;
  std::uint64_t model_hash, weights_checksum;  // of the contract's structure, of the weight file
  std::uint64_t layout_hash, length_hash;      // KvCache::snapshot_layout_hash(), model::length_hash()
  std::uint64_t declared_length;
  std::uint64_t n_tokens, cache_bytes;
  std::uint64_t ids_checksum, cache_checksum;
  std::uint8_t k_type, v_type, reserved[6];
  char isa[24];                                // padded with zeros
  std::uint64_t header_checksum;               // of the bytes before it
};
static_assert(sizeof(Header) == 136 && std::is_trivially_copyable_v<Header>);
constexpr std::size_t kCheckedBytes = sizeof(Header) - sizeof(std::uint64_t);

base::Bytes bytes_of(const Header& header) {
  return std::as_bytes(std::span(&header, 1));
}

std::string isa_of(const Header& header) {
  return std::string(header.isa, strnlen(header.isa, sizeof(header.isa)));
}

std::uint64_t session_length_hash(const Session& session) {
  return model::length_hash(session.model(), session.declared_length(), session.context());
}

// The header of what the session holds; checksums are still missing.
Header header_of(const Session& session) {
  const model::Model& model = session.model();
  const model::KvCache& cache = session.cache();
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kSnapshotVersion;
  header.flags = session.deterministic() ? kDeterministic : 0;
  header.model_hash = contract::structural_hash(model.contract);
  header.weights_checksum = model.weights.checksum();
  header.layout_hash = cache.snapshot_layout_hash();
  header.length_hash = session_length_hash(session);
  header.declared_length = session.declared_length();
  header.n_tokens = session.tokens().size();
  header.cache_bytes = cache.snapshot_bytes(header.n_tokens);
  header.total_bytes = sizeof(Header) + header.n_tokens * sizeof(std::int32_t) + header.cache_bytes;
  header.k_type = static_cast<std::uint8_t>(cache.options().k_type);
  header.v_type = static_cast<std::uint8_t>(cache.options().v_type);
  const std::string_view isa = model.kernels->name;
  QUERN_ASSERT(isa.size() < sizeof(header.isa));
  isa.copy(header.isa, isa.size());
  return header;
}

// Everything a header can be asked without a session.
Header parse_header(base::Bytes bytes, std::string_view where) {
  base::ByteReader reader(bytes, where);
  const auto header = reader.read<Header>("snapshot header");
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) base::reject(where, "is no snapshot of a KV cache");
  if (header.version != kSnapshotVersion)
    base::reject(where, "snapshot of an unknown version", cat(header.version), cat(kSnapshotVersion));
  if (base::xxh3(bytes_of(header).first(kCheckedBytes)) != header.header_checksum)
    base::reject(where, "snapshot header is damaged: its checksum differs");
  const std::uint64_t ids_bytes = base::checked_mul(header.n_tokens, sizeof(std::int32_t), where);
  const std::uint64_t parts =
      base::checked_add(sizeof(Header), base::checked_add(ids_bytes, header.cache_bytes, where), where);
  if (header.total_bytes != parts)
    base::reject(where, "snapshot sizes do not add up", cat(header.total_bytes), cat(parts));
  if (bytes.size() != header.total_bytes)
    base::reject(where, bytes.size() < header.total_bytes ? "snapshot is truncated" : "surplus bytes after the snapshot",
                 cat(bytes.size(), " bytes"), cat(header.total_bytes, " bytes"));
  return header;
}

std::string_view type_name(std::uint8_t type) {
  static_assert(contract::kCacheTypeNames.size() == static_cast<std::size_t>(kernels::CacheType::int4) + 1);
  return type < contract::kCacheTypeNames.size() ? contract::kCacheTypeNames[type] : "unknown";
}

void check_model(const Header& header, const Header& own, std::string_view where) {
  if (header.model_hash != own.model_hash) base::reject(where, "snapshot of another model (its contract differs)");
  if (header.weights_checksum != own.weights_checksum)
    base::reject(where, "snapshot of another model (its weights differ)");
  if (header.k_type != own.k_type || header.v_type != own.v_type)
    base::reject(where, "snapshot with other cache types (-ctk, -ctv)",
                 cat(type_name(header.k_type), ", ", type_name(header.v_type)),
                 cat(type_name(own.k_type), ", ", type_name(own.v_type)));
  if (header.layout_hash != own.layout_hash) base::reject(where, "snapshot with another layout of cache blocks");
}

// Deterministic latent attention must not go on from a cache made without.
void check_flags(const Session& session, const Header& header, std::string_view where) {
  if ((header.flags & ~kDeterministic) != 0) base::reject(where, "snapshot with unknown flags", cat(header.flags));
  bool latent = false;
  model::for_branches(session.model(), [&](const model::Branch& b) { latent = latent || b.mla; });
  if (latent && session.deterministic() && (header.flags & kDeterministic) == 0)
    base::reject(where, "snapshot was made without --deterministic");
}

std::vector<std::int32_t> read_ids(base::Bytes bytes, std::size_t vocab_size, std::string_view where) {
  std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
  for (const std::int32_t id : ids)
    if (id < 0 || static_cast<std::size_t>(id) >= vocab_size)
      base::reject(where, "snapshot: token id out of range", cat(id), cat("0 to ", vocab_size - 1));
  return ids;
}

void check_sums(const Header& header, base::Bytes ids, base::Bytes cache, std::string_view where) {
  if (base::xxh3(ids) != header.ids_checksum) base::reject(where, "snapshot is damaged: checksum of the token ids differs");
  if (base::xxh3(cache) != header.cache_checksum)
    base::reject(where, "snapshot is damaged: checksum of the cache differs");
}

SnapshotInfo info_of(const Header& header) {
  return {header.n_tokens,   isa_of(header),          header.declared_length,
          header.model_hash, header.weights_checksum, header.total_bytes};
}

}  // namespace

SnapshotInfo inspect_snapshot(base::Bytes bytes, std::string_view where) {
  return info_of(parse_header(bytes, where));
}

std::uint64_t snapshot_bytes(const Session& session) {
  const std::size_t n = session.tokens().size();
  return sizeof(Header) + n * sizeof(std::int32_t) + session.cache().snapshot_bytes(n);
}

void write_snapshot(const Session& session, base::OutputFile& file) {
  if (session.model().encoder)
    base::usage_error("snapshot", "an encoder-decoder's cache is not saved: it depends on the encoder's input");
  Header header = header_of(session);
  const std::uint64_t start = file.size();
  file.write(bytes_of(header));
  const base::Bytes ids = std::as_bytes(std::span(session.tokens()));
  header.ids_checksum = base::xxh3(ids);
  file.write(ids);
  base::Hasher hasher;
  const auto append = [&](base::Bytes block) {
    hasher.update(block);
    file.write(block);
  };
  if (!ids.empty()) session.cache().save(0, session.tokens().size(), append);  // after a search() the cache is of no use
  header.cache_checksum = hasher.digest();
  header.header_checksum = base::xxh3(bytes_of(header).first(kCheckedBytes));
  QUERN_ASSERT(file.size() == start + header.total_bytes);
  file.write_at(start, bytes_of(header));
}

RestoreResult restore_snapshot(Session& session, base::Bytes bytes, std::string_view where) {
  session.clear();
  if (session.model().encoder)
    base::usage_error(where, "an encoder-decoder's cache is not restored: it depends on the encoder's input");
  const Header header = parse_header(bytes, where);
  check_model(header, header_of(session), where);
  check_flags(session, header, where);
  if (header.n_tokens > session.context())
    base::reject(where, "snapshot holds more tokens than the context", cat(header.n_tokens),
                 cat("at most ", session.context()));
  if (header.cache_bytes != session.cache().snapshot_bytes(header.n_tokens))
    base::reject(where, "snapshot sizes do not add up", cat(header.cache_bytes),
                 cat(session.cache().snapshot_bytes(header.n_tokens)));
  const base::Bytes ids = bytes.subspan(sizeof(Header), header.n_tokens * sizeof(std::int32_t));
  const base::Bytes cache = bytes.subspan(sizeof(Header) + ids.size());
  check_sums(header, ids, cache, where);
  const std::vector<std::int32_t> tokens = read_ids(ids, session.model().contract.vocab_size, where);

  RestoreResult result;
  result.info = info_of(header);
  result.other_isa = result.info.isa != session.model().kernels->name;
  if (session.follows_length() && header.declared_length != 0) session.declare_length(header.declared_length);
  result.other_length = header.length_hash != session_length_hash(session);
  if (result.other_length) return result;
  session.restore(tokens, cache);
  result.n_tokens = tokens.size();
  return result;
}

void save_snapshot(const Session& session, const std::filesystem::path& path) {
  base::AtomicFile file(path);
  write_snapshot(session, file.file());
  file.publish();
}

RestoreResult load_snapshot(Session& session, const std::filesystem::path& path) {
  session.clear();
  const base::MappedFile file(path);
  return restore_snapshot(session, file.bytes(), base::printable(path.string()));
}

}  // namespace quern::engine
