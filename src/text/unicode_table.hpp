// The generated ranges behind text/unicode.hpp (scripts/make_unicode_table.py); ascending and
// disjoint.
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

// Assigned after Unicode 14, by general category; one category after the other.
struct CategoryRange {
  std::uint32_t first, last;
  char category[2];  // "Lu"
};
extern const CategoryRange kNewerRanges[];
extern const std::size_t kNewerRangesCount;

// Characters that the reference's normalizers, which follow an older Unicode, leave where they are.
extern const CodeRange kUnknownToNormalizers[];
extern const std::size_t kUnknownToNormalizersCount;

// What the reference's Punctuation step takes for punctuation.
extern const CodeRange kPunctuationRanges[];
extern const std::size_t kPunctuationRangesCount;

// Lower case that utf8proc does not know: first + i becomes lower + i.
struct CaseRange {
  std::uint32_t first, last, lower;
};
extern const CaseRange kNewerLowercase[];
extern const std::size_t kNewerLowercaseCount;

// Of the normalizer that WordPiece models use: characters it drops, and those it puts spaces
// around.
extern const CodeRange kDroppedControls[];
extern const std::size_t kDroppedControlsCount;
extern const CodeRange kDroppedMarks[];
extern const std::size_t kDroppedMarksCount;
extern const CodeRange kIdeographs[];
extern const std::size_t kIdeographsCount;

// What the reference's StripAccents step takes away: marks of an older Unicode than utf8proc's.
extern const CodeRange kAccents[];
extern const std::size_t kAccentsCount;

// Scripts by number; kana count as Han. Characters of no script are in no range.
struct ScriptRange {
  std::uint32_t first, last;
  std::uint8_t script;
};
extern const ScriptRange kScripts[];
extern const std::size_t kScriptsCount;

}  // namespace quern::text
