#include "jinja/characters.hpp"

#include <utf8proc.h>

namespace quern::jinja {

namespace {

utf8proc_category_t category(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Letters whose upper case is more than one character (the common ones of SpecialCasing).
struct Special {
  std::uint32_t code;
  const char* upper;
  const char* title;
};
constexpr Special kSpecial[] = {
    {0xDF, "SS", "Ss"},
    {0x149, "\xCA\xBCN", "\xCA\xBCN"},
    {0x1F0, "J\xCC\x8C", "J\xCC\x8C"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
    {0x587, "\xD4\xB5\xD5\x92", "\xD4\xB5\xD6\x82"},
};

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  utf8proc_int32_t code = 0;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                  static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (n <= 0) return {0xFFFD, 1};
  return {static_cast<std::uint32_t>(code), static_cast<std::size_t>(n)};
}

std::size_t character_before(std::string_view text, std::size_t end) {
  std::size_t start = end - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start;
}

void append_character(std::string& out, std::uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

bool is_space(std::uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_end(std::uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_alpha(std::uint32_t c) {
  if (c < 0x80) return (c | 32) >= 'a' && (c | 32) <= 'z';
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(std::uint32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_numeric(std::uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_upper(std::uint32_t c) {
  return c < 0x80 ? c >= 'A' && c <= 'Z' : utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0;
}

bool is_lower(std::uint32_t c) {
  return c < 0x80 ? c >= 'a' && c <= 'z' : utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0;
}

bool is_title(std::uint32_t c) {
  return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_word(std::uint32_t c) {
  return c == '_' || is_alpha(c) || is_numeric(c);
}

bool is_printable(std::uint32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

void append_in_case(std::string& out, std::uint32_t c, Case to) {
  if (c < 0x80) {
    const bool letter = is_alpha(c);
    const bool up = to == Case::upper || to == Case::title;
    out += static_cast<char>(letter ? (up ? c & ~32u : c | 32u) : c);
    return;
  }
  const auto code = static_cast<utf8proc_int32_t>(c);
  if (to == Case::upper || to == Case::title) {
    for (const Special& special : kSpecial)
      if (special.code == c) {
        out += to == Case::upper ? special.upper : special.title;
        return;
      }
    const auto mapped = to == Case::upper ? utf8proc_toupper(code) : utf8proc_totitle(code);
    return append_character(out, static_cast<std::uint32_t>(mapped));
  }
  if (c == 0x130) {  // I with a dot: i and the dot
    out += "i\xCC\x87";
    return;
  }
  if (to == Case::fold) {
    if (c == 0xDF || c == 0x1E9E) {
      out += "ss";
      return;
    }
    for (const Special& special : kSpecial)
      if (special.code == c && c >= 0xFB00) {
        for (const char* p = special.upper; *p != 0; ++p) out += static_cast<char>(*p | 32);
        return;
      }
    if (c == 0x3C2) return append_character(out, 0x3C3);  // final sigma
    if (c == 0xB5) return append_character(out, 0x3BC);
  }
  append_character(out, static_cast<std::uint32_t>(utf8proc_tolower(code)));
}

bool valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t code = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                    static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace quern::jinja
