#include "text/normal_forms.hpp"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "text/unicode.hpp"

namespace quern::text {

namespace {

struct Free {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
};

utf8proc_option_t options_of(NormalForm form) {
  constexpr int kBase = UTF8PROC_STABLE;
  switch (form) {
    case NormalForm::nfc:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_COMPOSE);
    case NormalForm::nfd:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_DECOMPOSE);
    case NormalForm::nfkc:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    default:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
}

std::string on_valid_text(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &raw, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(raw);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (size < 0) return std::string(text);
  return {reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size)};
}

// Length of the stretch at `at` that may be normalized: up to a byte that is not UTF-8 or a
// character that the reference does not know (it passes through and nothing moves across it).
std::size_t stretch_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size()) {
    const Char c = decode_char(text, end);
    if (c.code == Char::kInvalid || is_unknown_to_normalizers(c.code)) break;
    end += c.bytes;
  }
  return end - at;
}

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stretch = stretch_at(text, at);
    if (stretch > 0) out += on_valid_text(text.substr(at, stretch), form);
    at += stretch;
    if (at == text.size()) break;
    const std::size_t skipped = decode_char(text, at).bytes;
    out.append(text, at, skipped);
    at += skipped;
  }
  return out;
}

}  // namespace quern::text
