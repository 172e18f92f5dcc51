#include "text/charsmap.hpp"

#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::text {

namespace {

// A unit of the double array: label, whether a value lies at its children, distance to them.
std::uint32_t label_of(std::uint32_t unit) {
  return unit & (1u << 31 | 0xFF);
}
bool has_value(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t offset_of(std::uint32_t unit) {
  return unit >> 10 << ((unit & 1u << 9) >> 6);
}

std::uint32_t load(std::string_view bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string_view where) {
  if (bytes.size() < 8)
    base::reject(where, "character map is cut off", base::cat(bytes.size(), " bytes"));
  const std::size_t trie = load(bytes, 0);
  if (trie % 4 != 0 || trie == 0 || trie > bytes.size() - 4)
    base::reject(where, "character map with an impossible trie", base::cat(trie, " bytes"),
                 base::cat("at most ", bytes.size() - 4));
  units_ = bytes.substr(4, trie);
  texts_ = bytes.substr(4 + trie);
}

std::optional<std::uint32_t> Charsmap::unit(std::size_t index) const {
  if (index >= units_.size() / 4) return std::nullopt;
  return load(units_, index * 4);
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, bool longest) const {
  std::optional<Match> best;
  std::size_t node = offset_of(*unit(0));
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == 0) break;
    node ^= byte;
    const std::optional<std::uint32_t> here = unit(node);
    if (!here || label_of(*here) != byte) break;
    node ^= offset_of(*here);
    if (!has_value(*here)) continue;
    const std::optional<std::uint32_t> value = unit(node);
    if (!value) break;
    const std::size_t begin = *value & ~(1u << 31);
    if (begin > texts_.size()) break;
    const std::string_view rest = texts_.substr(begin);
    best = Match{at + 1, rest.substr(0, rest.find('\0'))};
    if (!longest) break;
  }
  return best;
}

}  // namespace quern::text
