#include "text/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <memory>

#include "text/unicode_table.hpp"

namespace quern::text {

namespace {

bool in_ranges(const CodeRange* ranges, std::size_t count, std::uint32_t code) {
  const CodeRange* end = ranges + count;
  const CodeRange* found = std::lower_bound(
      ranges, end, code,
      [](const CodeRange& range, std::uint32_t value) { return range.last < value; });
  return found != end && found->first <= code;
}

CharClass slow_class(std::uint32_t code) {
  if (code == '\r' || code == '\n') return CharClass::newline;
  if (is_space_code(code)) return CharClass::space;
  if (in_ranges(kLetterRanges, kLetterRangesCount, code)) return CharClass::letter;
  if (in_ranges(kNumberRanges, kNumberRangesCount, code)) return CharClass::number;
  return CharClass::other;
}

// One byte per code point of the basic plane (64 KiB), filled once in about 20 us; the rest is
// searched.
using PlaneTable = std::array<CharClass, 0x10000>;

void fill(PlaneTable& table, const CodeRange* ranges, std::size_t count, CharClass kind) {
  for (std::size_t i = 0; i < count && ranges[i].first < table.size(); ++i) {
    const std::size_t last = std::min<std::size_t>(ranges[i].last, table.size() - 1);
    std::fill(table.begin() + ranges[i].first,
              table.begin() + static_cast<std::ptrdiff_t>(last) + 1, kind);
  }
}

const PlaneTable& plane_table() {
  static const std::unique_ptr<PlaneTable> table = [] {
    auto made = std::make_unique<PlaneTable>();
    made->fill(CharClass::other);
    fill(*made, kLetterRanges, kLetterRangesCount, CharClass::letter);
    fill(*made, kNumberRanges, kNumberRangesCount, CharClass::number);
    for (std::uint32_t code = 0; code <= 0x3000; ++code)
      if (is_space_code(code)) (*made)[code] = CharClass::space;
    (*made)['\r'] = (*made)['\n'] = CharClass::newline;
    return made;
  }();
  return *table;
}

bool in(std::uint32_t code, std::uint32_t first, std::uint32_t last) {
  return code >= first && code <= last;
}

// Other_Alphabetic beyond marks: circled and squared Latin letters, which are symbols by category.
bool is_alphabetic_symbol(std::uint32_t code) {
  return in(code, 0x24B6, 0x24E9) || in(code, 0x1F130, 0x1F149) || in(code, 0x1F150, 0x1F169) ||
         in(code, 0x1F170, 0x1F189);
}

utf8proc_category_t category(std::uint32_t code) {
  return code > 0x10FFFF ? UTF8PROC_CATEGORY_CN
                         : utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

}  // namespace

bool is_space_code(std::uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || in(code, 0x2000, 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_mark_code(std::uint32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_ME;
}

bool is_word_code(std::uint32_t code) {
  if (class_of_code(code) == CharClass::letter || is_mark_code(code)) return true;
  if (code == 0x200C || code == 0x200D || is_alphabetic_symbol(code)) return true;
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC;
}

bool is_unknown_to_normalizers(std::uint32_t code) {
  return code >= kUnknownToNormalizers[0].first &&
         in_ranges(kUnknownToNormalizers, kUnknownToNormalizersCount, code);
}

bool is_punctuation_code(std::uint32_t code) {
  return in_ranges(kPunctuationRanges, kPunctuationRangesCount, code);
}

bool is_dropped_control(std::uint32_t code) {
  return in_ranges(kDroppedControls, kDroppedControlsCount, code);
}

bool is_dropped_mark(std::uint32_t code) {
  return code >= kDroppedMarks[0].first && in_ranges(kDroppedMarks, kDroppedMarksCount, code);
}

bool is_accent_code(std::uint32_t code) {
  return code >= kAccents[0].first && in_ranges(kAccents, kAccentsCount, code);
}

bool is_ideograph_code(std::uint32_t code) {
  return code >= kIdeographs[0].first && in_ranges(kIdeographs, kIdeographsCount, code);
}

int script_of_code(std::uint32_t code) {
  const ScriptRange* end = kScripts + kScriptsCount;
  const ScriptRange* found = std::lower_bound(
      kScripts, end, code,
      [](const ScriptRange& range, std::uint32_t value) { return range.last < value; });
  return found != end && found->first <= code ? found->script : -1;
}

std::uint32_t lowercase_code(std::uint32_t code) {
  if (code >= kNewerLowercase[0].first) {
    for (std::size_t i = 0; i < kNewerLowercaseCount; ++i)
      if (in(code, kNewerLowercase[i].first, kNewerLowercase[i].last))
        return kNewerLowercase[i].lower + (code - kNewerLowercase[i].first);
  }
  return static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

CharClass class_of_code(std::uint32_t code) {
  return code < 0x10000 ? plane_table()[code] : slow_class(code);
}

Char decode_char(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead <= 0xDF && tail(1)) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead >= 0xE0 && lead <= 0xEF && tail(1) && tail(2)) {
    const std::uint32_t code = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (code >= 0x800 && !in(code, 0xD800, 0xDFFF)) return {code, 3};
  }
  if (lead >= 0xF0 && lead <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    const std::uint32_t code =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4};
  }
  return {Char::kInvalid, 1};
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

ClassedChar classed_char(std::string_view text, std::size_t at) {
  const Char c = decode_char(text, at);
  if (c.code == Char::kInvalid) return {CharClass::other, 1};
  return {class_of_code(c.code), c.bytes};
}

std::size_t valid_utf8_prefix(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size()) {
    const Char c = decode_char(text, end);
    if (c.code == Char::kInvalid) break;
    end += c.bytes;
  }
  return end - at;
}

}  // namespace quern::text
