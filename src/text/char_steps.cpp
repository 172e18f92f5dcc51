#include "text/char_steps.hpp"

#include <utf8proc.h>

#include "text/unicode.hpp"

namespace quern::text {

namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

// Copies the characters that `keep` wants, as `map` spells them into the text.
template <class Keep, class Map>
std::string filter(std::string_view text, bool& start_kept, Keep keep, Map map) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Char c = decode_char(text, at);
    if (keep(c.code)) {
      map(out, c.code, text.substr(at, c.bytes));
    } else if (at == 0) {
      start_kept = false;
    }
    at += c.bytes;
  }
  return out;
}

void copy(std::string& out, std::uint32_t, std::string_view bytes) {
  out += bytes;
}

bool in(std::uint32_t code, std::uint32_t first, std::uint32_t last) {
  return code >= first && code <= last;
}

bool nmt_drops(std::uint32_t code) {
  return in(code, 0x1, 0x8) || code == 0xB || in(code, 0xE, 0x1F) || code == 0x7F || code == 0x8F ||
         code == 0x9F;
}

bool nmt_spaces(std::uint32_t code) {
  return code == 0x9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
         in(code, 0x200B, 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
         code == 0xFEFF || code == 0xFFFD;
}

// End of the grapheme cluster at `at`.
std::size_t cluster_end(std::string_view text, std::size_t at) {
  Char c = decode_char(text, at);
  at += c.bytes;
  utf8proc_int32_t state = 0;
  while (at < text.size() && c.code != Char::kInvalid) {
    const Char next = decode_char(text, at);
    if (next.code == Char::kInvalid ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    c = next;
    at += c.bytes;
  }
  return at;
}

}  // namespace

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Char c = decode_char(text, at);
    if (c.code == 0x130) {
      out += "i\xCC\x87";
    } else if (c.code == Char::kInvalid) {
      out += text[at];
    } else {
      append_utf8(out, lowercase_code(c.code));
    }
    at += c.bytes;
  }
  return out;
}

std::string strip_accents(std::string_view text, bool& start_kept) {
  return filter(
      text, start_kept, [](std::uint32_t code) { return !is_accent_code(code); }, copy);
}

std::string drop_marks(std::string_view text, bool& start_kept) {
  return filter(
      text, start_kept, [](std::uint32_t code) { return !is_dropped_mark(code); }, copy);
}

std::string clean_text(std::string_view text, bool& start_kept) {
  return filter(
      text, start_kept, [](std::uint32_t code) { return !is_dropped_control(code); },
      [](std::string& out, std::uint32_t code, std::string_view bytes) {
        out += is_space_code(code) ? std::string_view(" ") : bytes;
      });
}

std::string nmt_clean(std::string_view text, bool& start_kept) {
  return filter(
      text, start_kept, [](std::uint32_t code) { return !nmt_drops(code); },
      [](std::string& out, std::uint32_t code, std::string_view bytes) {
        out += nmt_spaces(code) ? std::string_view(" ") : bytes;
      });
}

std::string space_ideographs(std::string_view text) {
  bool kept = true;
  return filter(
      text, kept, [](std::uint32_t) { return true; },
      [](std::string& out, std::uint32_t code, std::string_view bytes) {
        if (is_ideograph_code(code)) {
          ((out += ' ') += bytes) += ' ';
        } else {
          out += bytes;
        }
      });
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

std::string apply_charsmap(const Charsmap& map, std::string_view text) {
  constexpr std::size_t kMostClusterBytes = 5;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = cluster_end(text, at);
    if (end - at <= kMostClusterBytes) {
      if (const auto match = map.shortest(text.substr(at, end - at))) {
        out += match->replacement;
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::string_view one = text.substr(at, decode_char(text, at).bytes);
      const auto match = map.shortest(one);
      out += match ? match->replacement : one;
      at += one.size();
    }
  }
  return out;
}

namespace {

struct Chunk {
  std::string_view text;
  std::size_t consumed;
};

// What the text starts with, normalized.
Chunk next_chunk(const SentencepieceRules& rules, std::string_view text) {
  if (const std::size_t whole = rules.user_defined.match_bytes(text, 0))
    return {text.substr(0, whole), whole};
  if (rules.map != nullptr)
    if (const auto match = rules.map->longest(text)) return {match->replacement, match->bytes};
  const Char c = decode_char(text, 0);
  if (c.code == Char::kInvalid) return {"\xEF\xBF\xBD", 1};
  return {text.substr(0, c.bytes), c.bytes};
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceSymbol;
    } else {
      out += c;
    }
  }
}

}  // namespace

std::string apply_sentencepiece(const SentencepieceRules& rules, std::string_view text) {
  while (rules.trim && !text.empty()) {
    const Chunk chunk = next_chunk(rules, text);
    if (chunk.text != " ") break;
    text.remove_prefix(chunk.consumed);
  }
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 4);
  if (rules.prefix) out += kSpaceSymbol;
  bool after_space = rules.trim;
  while (!text.empty()) {
    Chunk chunk = next_chunk(rules, text);
    while (after_space && chunk.text.starts_with(' ')) chunk.text.remove_prefix(1);
    if (!chunk.text.empty()) {
      append_escaped(out, chunk.text);
      after_space = rules.trim && chunk.text.ends_with(' ');
    }
    text.remove_prefix(chunk.consumed);
  }
  while (rules.trim && out.ends_with(kSpaceSymbol)) out.resize(out.size() - kSpaceSymbol.size());
  return out;
}

}  // namespace quern::text
