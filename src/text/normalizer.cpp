#include "text/normalizer.hpp"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/unicode.hpp"

namespace quern::text {

namespace {

using Kind = Normalizer::Kind;

struct Free {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
};

utf8proc_option_t options_of(Kind kind) {
  constexpr int kBase = UTF8PROC_STABLE;
  switch (kind) {
    case Kind::nfc:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_COMPOSE);
    case Kind::nfd:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_DECOMPOSE);
    case Kind::nfkc:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    default:
      return static_cast<utf8proc_option_t>(kBase | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
}

std::string normal_form(std::string_view text, Kind kind) {
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &raw, options_of(kind));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(raw);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (size < 0) return std::string(text);
  return {reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size)};
}

// Per character, without context: no final sigma, and U+0130 becomes two characters.
std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Char c = decode_char(text, at);
    if (c.code == 0x130) {
      out += "i\xCC\x87";
    } else {
      append_utf8(out, lowercase_code(c.code));
    }
    at += c.bytes;
  }
  return out;
}

std::string strip_accents(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = decode_char(text, at);
    if (!is_mark_code(c.code)) out.append(text, at, c.bytes);
    at += c.bytes;
  }
  return out;
}

std::string on_valid_text(std::string_view text, Kind kind) {
  if (kind == Kind::lowercase) return lowercase(text);
  if (kind == Kind::strip_accents) return strip_accents(text);
  return normal_form(text, kind);
}

// Length of the stretch at `at` that a step may work on: up to a byte that is not UTF-8, and for
// the normal forms up to a character that the reference does not know (it passes through and
// nothing moves across it).
std::size_t stretch_at(std::string_view text, std::size_t at, bool normal_form) {
  std::size_t end = at;
  while (end < text.size()) {
    const Char c = decode_char(text, end);
    if (c.code == Char::kInvalid || (normal_form && is_unknown_to_normalizers(c.code))) break;
    end += c.bytes;
  }
  return end - at;
}

std::string on_stretches(std::string_view text, Kind kind) {
  const bool normal_form =
      kind == Kind::nfc || kind == Kind::nfd || kind == Kind::nfkc || kind == Kind::nfkd;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stretch = stretch_at(text, at, normal_form);
    if (stretch > 0) out += on_valid_text(text.substr(at, stretch), kind);
    at += stretch;
    if (at == text.size()) break;
    const std::size_t skipped = decode_char(text, at).bytes;
    out.append(text, at, skipped);
    at += skipped;
  }
  return out;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    const Char c = decode_char(text, 0);
    if (!is_space_code(c.code)) break;
    text.remove_prefix(c.bytes);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  std::size_t keep = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = decode_char(text, at);
    at += c.bytes;
    if (!is_space_code(c.code)) keep = at;
  }
  return text.substr(0, keep);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t hit; (hit = text.find(from, at)) != std::string_view::npos;
       at = hit + from.size()) {
    out.append(text, at, hit - at);
    out.append(to);
  }
  return out.append(text.substr(at));
}

struct KindName {
  std::string_view name;
  Kind kind;
};
constexpr KindName kKinds[] = {
    {"nfc", Kind::nfc},
    {"nfd", Kind::nfd},
    {"nfkc", Kind::nfkc},
    {"nfkd", Kind::nfkd},
    {"lowercase", Kind::lowercase},
    {"strip_accents", Kind::strip_accents},
    {"strip_left", Kind::strip_left},
    {"strip_right", Kind::strip_right},
};

}  // namespace

Normalizer::Step Normalizer::parse(const std::string& step, std::string_view where) {
  constexpr std::string_view kPrepend = "prepend:", kReplace = "replace";
  for (const KindName& entry : kKinds)
    if (entry.name == step) return {entry.kind, {}, {}};
  if (step.starts_with(kPrepend)) return {Kind::prepend, {}, step.substr(kPrepend.size())};
  if (step.starts_with(kReplace) && step.size() > kReplace.size() + 2) {
    const char separator = step[kReplace.size()];
    const std::size_t begin = kReplace.size() + 1, middle = step.find(separator, begin);
    const std::size_t end = middle == std::string::npos ? middle : step.find(separator, middle + 1);
    if (middle > begin && end == step.size() - 1)
      return {Kind::replace, step.substr(begin, middle - begin),
              step.substr(middle + 1, end - middle - 1)};
  }
  base::reject(
      where, "unknown normalizer step", base::printable(step),
      "nfc, nfd, nfkc, nfkd, lowercase, strip_accents, strip_left, strip_right, prepend:TEXT or "
      "replace/FROM/TO/");
}

Normalizer::Normalizer(const std::vector<std::string>& steps, std::string_view where) {
  constexpr std::size_t kMostSteps = 32;
  if (steps.size() > kMostSteps)
    base::reject(where, "too many normalizer steps", base::cat(steps.size()));
  for (const std::string& step : steps) steps_.push_back(parse(step, where));
}

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::prepend:
        if (!out.empty()) out.insert(0, step.to);
        break;
      case Kind::replace:
        out = replace_all(out, step.from, step.to);
        break;
      case Kind::strip_left:
        out = std::string(strip_left(out));
        break;
      case Kind::strip_right:
        out = std::string(strip_right(out));
        break;
      default:
        out = on_stretches(out, step.kind);
    }
  }
  return out;
}

std::string replace_step(std::string_view from, std::string_view to) {
  for (const char separator :
       std::string_view("/|#!~@%&=;:,^+*$\"'`<>()[]{}0123456789abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    if (from.find(separator) == std::string_view::npos &&
        to.find(separator) == std::string_view::npos)
      return base::cat("replace", separator, from, separator, to, separator);
  }
  return {};
}

}  // namespace quern::text
