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
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kHeaderBytes = 64;
inline constexpr std::uint32_t kWholeBit = 1u << 31;  // in the low half of a token slot
inline constexpr std::uint32_t kMostTokens = 1u << 26, kMostMerges = 1u << 27,
                               kMostSlots = 1u << 28;
inline constexpr std::uint64_t kMostTokenBytes = 0xFFFFFFFF;

struct Header {
  std::uint32_t magic, version;
  std::uint32_t n_tokens, n_merges;
  std::uint32_t token_slots, merge_slots;  // powers of two
  std::uint64_t token_bytes;
  std::uint32_t reserved[8];  // zero
};
static_assert(sizeof(Header) == kHeaderBytes);

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

// Offsets of the parts from the start of the section.
struct Parts {
  std::uint64_t offsets, token_slots, merge_slots, merges, token_bytes, end;
};

// Fields bounded by the kMost... constants: no sum here can overflow.
constexpr Parts parts_of(const Header& header) {
  Parts parts{};
  parts.offsets = kHeaderBytes;
  parts.token_slots = parts.offsets + padded((std::uint64_t{header.n_tokens} + 1) * 4);
  parts.merge_slots = parts.token_slots + std::uint64_t{header.token_slots} * 8;
  parts.merges = parts.merge_slots + std::uint64_t{header.merge_slots} * 8;
  parts.token_bytes = parts.merges + padded(std::uint64_t{header.n_merges} * 12);
  parts.end = parts.token_bytes + header.token_bytes;
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
