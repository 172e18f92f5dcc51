#include "base/bytes.hpp"

namespace quern::base {

std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b, std::string_view where) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    reject(where, "size overflows 64 bits", cat(a, " * ", b));
  return result;
}

std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, std::string_view where) {
  std::uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    reject(where, "size overflows 64 bits", cat(a, " + ", b));
  return result;
}

Bytes checked_slice(Bytes bytes, std::uint64_t offset, std::uint64_t length, std::string_view where) {
  if (offset > bytes.size() || length > bytes.size() - offset)
    reject(where, "range lies outside the file", cat("offset ", offset, ", length ", length),
           cat("within ", bytes.size(), " bytes"));
  return bytes.subspan(offset, length);
}

Bytes ByteReader::take(std::uint64_t length, std::string_view what) {
  if (length > remaining())
    reject(place(), cat("truncated in ", what), cat(remaining(), " bytes left"), cat(length, " bytes"));
  const Bytes result = bytes_.subspan(at_, length);
  at_ += length;
  return result;
}

}  // namespace quern::base
