// Checked reading of untrusted bytes. Every count, length and offset is compared with what is left
// before anything is allocated or touched; overflow of a product or sum is an error, never a wrap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::base {

using Bytes = std::span<const std::byte>;

// a * b and a + b; an input error naming `where` when the result does not fit in 64 bits.
std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b, std::string_view where);
std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, std::string_view where);

// bytes[offset, offset + length), or an input error.
Bytes checked_slice(Bytes bytes, std::uint64_t offset, std::uint64_t length, std::string_view where);

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Reads little-endian values one after another from a span.
class ByteReader {
 public:
  // where: the file's name, for error lines ("model.gguf").
  ByteReader(Bytes bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  std::size_t offset() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }

  template <class T>
  T read(std::string_view what) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  // The next `length` bytes; an input error "truncated" that names `what` when fewer are left.
  Bytes take(std::uint64_t length, std::string_view what);

  // "model.gguf:1234": the place for error lines.
  std::string place() const { return cat(where_, ":", at_); }

 private:
  Bytes bytes_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace quern::base
