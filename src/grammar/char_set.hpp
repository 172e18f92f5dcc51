// Sets of Unicode characters (scalar values: no surrogates), and the UTF-8 byte sequences of their
// ranges.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace quern::grammar {

struct CharRange {
  char32_t low, high;  // both included
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<CharRange> ranges);
  static const CharSet& any();

  // Surrogates and what lies beyond U+10FFFF are left out.
  void add(char32_t low, char32_t high);
  void add(const CharSet& other);
  CharSet complement() const;
  CharSet intersection(const CharSet& other) const;
  bool contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CharRange>& ranges() const { return ranges_; }  // sorted, with gaps between
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<CharRange> ranges_;
};

inline constexpr char32_t kMaxChar = 0x10FFFF;

// One character as UTF-8.
std::string utf8(char32_t c);

// The character at `at` (moved behind it); false for bytes that are not UTF-8.
bool next_char(std::string_view text, std::size_t& at, char32_t& c);

struct ByteRange {
  std::uint8_t low, high;
};
struct ByteSequence {
  std::array<ByteRange, 4> bytes;
  std::size_t size;
};
// Sequences of byte ranges whose products are exactly the UTF-8 forms of the range's characters.
void utf8_sequences(CharRange range, const std::function<void(const ByteSequence&)>& emit);

}  // namespace quern::grammar
