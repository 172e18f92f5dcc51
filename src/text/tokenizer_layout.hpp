// The bytes of the tokenizer section, shared by its writer and its reader
// (docs/TOKENIZER_TABLES.md).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes.hpp"
#include "base/hash.hpp"

namespace quern::text::layout {

inline constexpr std::uint32_t kMagic = 0x4B4F5451;  // "QTOK"
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kHeaderBytes = 128;
inline constexpr std::uint32_t kWholeBit = 1u << 31;  // in the low half of a token slot
inline constexpr std::uint32_t kMostTokens = 1u << 26, kMostMerges = 1u << 27,
                               kMostSlots = 1u << 28;
inline constexpr std::uint32_t kMostNodes = 1u << 30;
inline constexpr std::uint32_t kBytes = 256;  // entries of the byte ids
inline constexpr std::uint64_t kMostTokenBytes = 0xFFFFFFFF, kMostCharsmapBytes = 1u << 24;

struct Header {
  std::uint32_t magic, version;
  std::uint32_t n_tokens, n_merges;
  std::uint32_t token_slots, merge_slots;  // powers of two
  std::uint64_t token_bytes, charsmap_bytes;
  std::uint32_t n_ids, first_decoded;  // tokens [0, n_ids) come out of text; id i reads back as
                                       // token first_decoded + i
  std::uint32_t n_nodes, n_scores;     // of the trie, 0 without one; n_tokens or 0
  double unk_score;                    // of a character without a token
  std::uint32_t reserved[16];          // zero
};
static_assert(sizeof(Header) == kHeaderBytes);

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

// Offsets of the parts from the start of the section.
struct Parts {
  std::uint64_t offsets, byte_ids, token_slots, merge_slots, merges, scores, first_child,
      node_token, labels, charsmap, token_bytes, end;
};

// Fields bounded by the kMost... constants: no sum here can overflow.
constexpr Parts parts_of(const Header& header) {
  Parts parts{};
  std::uint64_t at = kHeaderBytes;
  const auto place = [&at](std::uint64_t count, std::uint64_t size) {
    const std::uint64_t begin = at;
    at += padded(count * size);
    return begin;
  };
  parts.offsets = place(std::uint64_t{header.n_tokens} + 1, 4);
  parts.byte_ids = place(kBytes, 4);
  parts.token_slots = place(header.token_slots, 8);
  parts.merge_slots = place(header.merge_slots, 8);
  parts.merges = place(header.n_merges, 12);
  parts.scores = place(header.n_scores, 8);
  parts.first_child = place(header.n_nodes == 0 ? 0 : std::uint64_t{header.n_nodes} + 1, 4);
  parts.node_token = place(header.n_nodes, 4);
  parts.labels = place(header.n_nodes, 1);
  parts.charsmap = place(header.charsmap_bytes, 1);
  parts.token_bytes = at;
  parts.end = at + header.token_bytes;
  return parts;
}

inline std::uint64_t token_hash(std::string_view token) {
  return base::xxh3(base::as_bytes(token));
}

// The finalizer of splitmix64 over left * 2^32 + right.
inline std::uint64_t merge_hash(std::uint32_t left, std::uint32_t right) {
  std::uint64_t x = std::uint64_t{left} << 32 | right;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

template <class T>
T load(const std::byte* base, std::uint64_t index) {
  T value;
  std::memcpy(&value, base + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace quern::text::layout
