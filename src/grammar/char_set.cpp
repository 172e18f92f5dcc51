#include "grammar/char_set.hpp"

#include <algorithm>

namespace quern::grammar {

namespace {

constexpr CharRange kSurrogates{0xD800, 0xDFFF};

}  // namespace

CharSet::CharSet(std::initializer_list<CharRange> ranges) {
  for (const CharRange& range : ranges) add(range.low, range.high);
}

const CharSet& CharSet::any() {
  static const CharSet set{{0, kMaxChar}};
  return set;
}

void CharSet::add(char32_t low, char32_t high) {
  high = std::min(high, kMaxChar);
  if (low > high) return;
  if (low <= kSurrogates.high && high >= kSurrogates.low) {
    if (low < kSurrogates.low) add(low, kSurrogates.low - 1);
    if (high > kSurrogates.high) add(kSurrogates.high + 1, high);
    return;
  }
  // Everything that overlaps or touches [low, high] becomes one range.
  const auto first = std::lower_bound(
      ranges_.begin(), ranges_.end(), low,
      [](const CharRange& range, char32_t value) { return range.high + 1 < value; });
  auto last = first;
  for (; last != ranges_.end() && last->low <= high + 1; ++last) {
    low = std::min(low, last->low);
    high = std::max(high, last->high);
  }
  const auto at = ranges_.erase(first, last);
  ranges_.insert(at, {low, high});
}

void CharSet::add(const CharSet& other) {
  for (const CharRange& range : other.ranges_) add(range.low, range.high);
}

CharSet CharSet::complement() const {
  CharSet out;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.low > next) out.add(next, range.low - 1);
    next = range.high + 1;
  }
  if (next <= kMaxChar) out.add(next, kMaxChar);
  return out;
}

CharSet CharSet::intersection(const CharSet& other) const {
  CharSet out;
  auto a = ranges_.begin(), b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    out.add(std::max(a->low, b->low), std::min(a->high, b->high));
    if (a->high < b->high) {
      ++a;
    } else {
      ++b;
    }
  }
  return out;
}

bool CharSet::contains(char32_t c) const {
  const auto found =
      std::lower_bound(ranges_.begin(), ranges_.end(), c,
                       [](const CharRange& range, char32_t value) { return range.high < value; });
  return found != ranges_.end() && found->low <= c;
}

std::string utf8(char32_t c) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

bool next_char(std::string_view text, std::size_t& at, char32_t& c) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length > text.size() - at) return false;
  c = length == 1 ? lead : lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i)
    c = c << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  if (utf8(c) != text.substr(at, length) || (c >= kSurrogates.low && c <= kSurrogates.high))
    return false;
  at += length;
  return c <= kMaxChar;
}

void utf8_sequences(CharRange range, const std::function<void(const ByteSequence&)>& emit) {
  const auto split = [&](char32_t last) {  // [low, last] and what follows
    utf8_sequences({range.low, last}, emit);
    utf8_sequences({last + 1, range.high}, emit);
  };
  for (const char32_t last : {0x7F, 0x7FF, 0xFFFF})
    if (range.low <= last && last < range.high) return split(last);
  const std::string low = utf8(range.low), high = utf8(range.high);
  // Below a byte that varies, all continuation bytes must vary over their whole range.
  for (std::size_t i = 1; i < low.size(); ++i) {
    const char32_t mask = (char32_t{1} << (6 * i)) - 1;
    if ((range.low & ~mask) == (range.high & ~mask)) continue;
    if ((range.low & mask) != 0) return split(range.low | mask);
    if ((range.high & mask) != mask) return split((range.high & ~mask) - 1);
  }
  ByteSequence sequence{{}, low.size()};
  for (std::size_t i = 0; i < low.size(); ++i)
    sequence.bytes[i] = {static_cast<std::uint8_t>(low[i]), static_cast<std::uint8_t>(high[i])};
  emit(sequence);
}

}  // namespace quern::grammar
