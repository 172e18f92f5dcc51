// The generated ranges behind text/unicode.hpp (scripts/make_unicode_table.py); ascending and disjoint.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::text {

struct CodeRange {
  std::uint32_t first, last;  // inclusive
};

extern const CodeRange kLetterRanges[];  // \p{L}
extern const std::size_t kLetterRangesCount;
extern const CodeRange kNumberRanges[];  // \p{N}
extern const std::size_t kNumberRangesCount;

}  // namespace quern::text
