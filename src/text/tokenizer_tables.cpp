#include "text/tokenizer_tables.hpp"

#include <bit>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/tokenizer_layout.hpp"

namespace quern::text {

using layout::load;

static_assert(std::endian::native == std::endian::little, "the section is mapped as it lies");

namespace {

layout::Header read_header(base::Bytes section, std::string_view where) {
  layout::Header header;
  const base::Bytes bytes = base::checked_slice(section, 0, sizeof header, where);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != layout::kMagic) base::reject(where, "not a tokenizer section (magic)");
  if (header.version != layout::kVersion)
    base::reject(where, "tokenizer section of another version", base::cat(header.version),
                 base::cat(layout::kVersion));
  for (const std::uint32_t word : header.reserved)
    if (word != 0) base::reject(where, "reserved field is not zero");
  const bool slots =
      std::has_single_bit(header.token_slots) && std::has_single_bit(header.merge_slots);
  if (!slots || header.token_slots > layout::kMostSlots ||
      header.merge_slots > layout::kMostSlots || header.n_tokens > layout::kMostTokens ||
      header.n_merges > layout::kMostMerges || header.token_bytes > layout::kMostTokenBytes ||
      header.n_nodes > layout::kMostNodes || header.charsmap_bytes > layout::kMostCharsmapBytes)
    base::reject(where, "tokenizer section with impossible counts");
  const bool ids = header.n_ids <= header.n_tokens && header.first_decoded <= header.n_tokens;
  const bool scores = header.n_scores == 0 || header.n_scores == header.n_tokens;
  if (!ids || !scores || !std::isfinite(header.unk_score))
    base::reject(where, "tokenizer section with fields that contradict each other");
  return header;
}

}  // namespace

TokenizerTables::TokenizerTables(base::Bytes section, std::string_view where) {
  const layout::Header header = read_header(section, where);
  const layout::Parts parts = layout::parts_of(header);
  if (parts.end != section.size())
    base::reject(where, "tokenizer section has the wrong size", base::cat(section.size(), " bytes"),
                 base::cat(parts.end));
  token_offsets_ = section.data() + parts.offsets;
  token_slots_ = section.data() + parts.token_slots;
  merge_slots_ = section.data() + parts.merge_slots;
  merges_ = section.data() + parts.merges;
  byte_ids_ = section.data() + parts.byte_ids;
  scores_ = section.data() + parts.scores;
  first_child_ = section.data() + parts.first_child;
  node_token_ = section.data() + parts.node_token;
  labels_ = reinterpret_cast<const unsigned char*>(section.data()) + parts.labels;
  charsmap_ = base::as_text(section).substr(parts.charsmap, header.charsmap_bytes);
  token_bytes_ = reinterpret_cast<const char*>(section.data()) + parts.token_bytes;
  n_ids_ = header.n_ids;
  first_decoded_ = header.first_decoded;
  n_nodes_ = header.n_nodes;
  n_scores_ = header.n_scores;
  unk_score_ = header.unk_score;
  n_token_bytes_ = header.token_bytes;
  n_tokens_ = header.n_tokens;
  n_merges_ = header.n_merges;
  token_slot_mask_ = header.token_slots - 1;
  merge_slot_mask_ = header.merge_slots - 1;
  check_tokens(where);
  check_merges(where);
  check_trie(where);
}

void TokenizerTables::check_tokens(std::string_view where) const {
  std::uint32_t before = load<std::uint32_t>(token_offsets_, 0);
  if (before != 0) base::reject(where, "tokenizer section: token 0 does not start at 0");
  for (std::uint32_t i = 1; i <= n_tokens_; ++i) {
    const std::uint32_t offset = load<std::uint32_t>(token_offsets_, i);
    if (offset < before || offset > n_token_bytes_)
      base::reject(where, base::cat("tokenizer section: token ", i - 1, " lies outside"));
    before = offset;
  }
  if (before != n_token_bytes_)
    base::reject(where, "tokenizer section: bytes behind the last token");
  std::uint64_t empty = 0;
  for (std::uint64_t i = 0; i <= token_slot_mask_; ++i) {
    const auto low =
        static_cast<std::uint32_t>(load<std::uint64_t>(token_slots_, i)) & ~layout::kWholeBit;
    empty += low == 0;
    if (low > n_tokens_)
      base::reject(where, base::cat("tokenizer section: token slot ", i, " names no token"));
  }
  if (empty == 0) base::reject(where, "tokenizer section: no free token slot");
}

void TokenizerTables::check_merges(std::string_view where) const {
  std::uint64_t empty = 0;
  for (std::uint64_t i = 0; i <= merge_slot_mask_; ++i) {
    const auto low = static_cast<std::uint32_t>(load<std::uint64_t>(merge_slots_, i));
    empty += low == 0;
    if (low > n_merges_)
      base::reject(where, base::cat("tokenizer section: merge slot ", i, " names no merge"));
  }
  if (empty == 0) base::reject(where, "tokenizer section: no free merge slot");
  for (std::uint64_t i = 0; i < std::uint64_t{n_merges_} * 3; ++i)
    if (load<std::uint32_t>(merges_, i) >= n_tokens_)
      base::reject(where, base::cat("tokenizer section: merge ", i / 3, " names no token"));
}

// Children lie behind their parent, which rules out cycles.
void TokenizerTables::check_trie(std::string_view where) const {
  for (std::uint32_t byte = 0; byte < layout::kBytes; ++byte)
    if (load<std::uint32_t>(byte_ids_, byte) > n_tokens_)
      base::reject(where, base::cat("tokenizer section: byte ", byte, " names no token"));
  if (n_nodes_ == 0) return;
  std::uint32_t before = 1;
  for (std::uint32_t node = 0; node < n_nodes_; ++node) {
    const std::uint32_t first = load<std::uint32_t>(first_child_, node);
    if (first < before || first > n_nodes_ || first <= node ||
        load<std::uint32_t>(node_token_, node) > n_tokens_)
      base::reject(where, base::cat("tokenizer section: trie node ", node, " is damaged"));
    before = first;
  }
  if (load<std::uint32_t>(first_child_, n_nodes_) != n_nodes_)
    base::reject(where, "tokenizer section: trie nodes without a parent");
}

std::int64_t TokenizerTables::child(std::uint32_t node, unsigned char byte) const {
  std::uint32_t low = load<std::uint32_t>(first_child_, node);
  std::uint32_t high = load<std::uint32_t>(first_child_, node + 1);
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (labels_[middle] == byte) return middle;
    if (labels_[middle] < byte) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

std::int32_t TokenizerTables::token_at(std::uint32_t node) const {
  return static_cast<std::int32_t>(load<std::uint32_t>(node_token_, node)) - 1;
}

std::int32_t TokenizerTables::byte_id(unsigned char byte) const {
  return static_cast<std::int32_t>(load<std::uint32_t>(byte_ids_, byte)) - 1;
}

double TokenizerTables::score(std::int32_t token) const {
  return load<double>(scores_, static_cast<std::uint32_t>(token));
}

std::string_view TokenizerTables::decoded(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= decoded_size()) return {};
  return token(id + static_cast<std::int32_t>(first_decoded_));
}

std::string_view TokenizerTables::token(std::int32_t token_index) const {
  if (token_index < 0 || static_cast<std::uint32_t>(token_index) >= n_tokens_) return {};
  const auto index = static_cast<std::uint32_t>(token_index);
  const std::uint32_t begin = load<std::uint32_t>(token_offsets_, index);
  return {token_bytes_ + begin, load<std::uint32_t>(token_offsets_, index + 1) - begin};
}

TokenizerTables::Found TokenizerTables::lookup(std::string_view text) const {
  const std::uint64_t hash = layout::token_hash(text);
  for (std::uint64_t at = hash & token_slot_mask_;; at = (at + 1) & token_slot_mask_) {
    const std::uint64_t slot = load<std::uint64_t>(token_slots_, at);
    const auto low = static_cast<std::uint32_t>(slot);
    const std::uint32_t number = low & ~layout::kWholeBit;
    if (number == 0) return {-1, false};
    const auto id = static_cast<std::int32_t>(number - 1);
    if (slot >> 32 == hash >> 32 && token(id) == text) return {id, (low & layout::kWholeBit) != 0};
  }
}

TokenizerTables::MergeResult TokenizerTables::merge(std::int32_t left, std::int32_t right) const {
  const auto l = static_cast<std::uint32_t>(left), r = static_cast<std::uint32_t>(right);
  const std::uint64_t hash = layout::merge_hash(l, r);
  for (std::uint64_t at = hash & merge_slot_mask_;; at = (at + 1) & merge_slot_mask_) {
    const std::uint64_t slot = load<std::uint64_t>(merge_slots_, at);
    const auto low = static_cast<std::uint32_t>(slot);
    if (low == 0) return {0, -1};
    if (slot >> 32 != hash >> 32) continue;
    const std::uint64_t entry = std::uint64_t{low - 1} * 3;
    if (load<std::uint32_t>(merges_, entry) == l && load<std::uint32_t>(merges_, entry + 1) == r)
      return {low - 1, static_cast<std::int32_t>(load<std::uint32_t>(merges_, entry + 2))};
  }
}

}  // namespace quern::text
