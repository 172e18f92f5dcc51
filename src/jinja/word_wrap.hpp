// Lines broken between words, as Python's textwrap does it: where words end, which of them fit, what happens to
// those that are longer than a line. Not here: the filter (filters_layout.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quern::jinja {

struct WrapStyle {
  std::size_t width = 79;  // characters, at least 1
  bool break_long_words = true, break_on_hyphens = true;
};

struct CharRange {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

// The lines of one line of text, its characters given by their codes.
std::vector<CharRange> wrapped_lines(const std::vector<std::uint32_t>& line, const WrapStyle& style);

}  // namespace quern::jinja
