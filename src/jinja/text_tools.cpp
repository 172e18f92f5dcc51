#include "jinja/text_tools.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

TextRef mapped(Interpreter& run, const Text& text,
               const std::function<void(std::string&, const Character&)>& map) {
  TextBuilder builder;
  MarkReader marks(text);
  std::string piece;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    piece.clear();
    map(piece, c);
    builder.append(piece, marks.untrusted(at));
    at += c.bytes;
  }
  return run.heap().text(builder, text.markup);
}

TextRef in_case(Interpreter& run, const Text& text, Case to) {
  return mapped(run, text,
                [to](std::string& out, const Character& c) { append_in_case(out, c.code, to); });
}

TextRef capitalized(Interpreter& run, const Text& text) {
  bool first = true;
  return mapped(run, text, [&first](std::string& out, const Character& c) {
    append_in_case(out, c.code, first ? Case::title : Case::lower);
    first = false;
  });
}

TextRef stripped(Interpreter& run, const Text& text, const Text* chars, bool left, bool right) {
  const auto goes = [&](std::size_t at, std::size_t bytes, std::uint32_t code) {
    if (chars == nullptr) return is_space(code);
    return chars->bytes.find(text.bytes.substr(at, bytes)) != std::string::npos;
  };
  run.heap().burn_bytes(text.bytes.size() * (chars != nullptr ? 1 + chars->bytes.size() / 16 : 1));
  std::size_t begin = 0, end = text.bytes.size();
  while (left && begin < end) {
    const Character c = character_at(text.bytes, begin);
    if (!goes(begin, c.bytes, c.code)) break;
    begin += c.bytes;
  }
  while (right && end > begin) {
    const std::size_t start = character_before(text.bytes, end);
    if (!goes(start, end - start, character_at(text.bytes, start).code)) break;
    end = start;
  }
  return piece(run, text, begin, end);
}

std::size_t find_bytes(std::string_view text, std::string_view word, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (word.empty()) return from;
  const void* hit = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return hit == nullptr ? std::string_view::npos
                        : static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
}

std::size_t find_bytes_last(std::string_view text, std::string_view word) {
  // Backwards: memmem over the reversed texts keeps it linear.
  const std::string back(text.rbegin(), text.rend()), drow(word.rbegin(), word.rend());
  const std::size_t hit = find_bytes(back, drow, 0);
  return hit == std::string_view::npos ? hit : text.size() - hit - word.size();
}

TextRef replaced(Interpreter& run, const Text& text, const Text& old, const Text& fresh,
                 std::int64_t count) {
  TextBuilder builder;
  run.heap().burn_bytes(text.bytes.size());
  std::size_t at = 0;
  if (old.bytes.empty()) {  // before each character, and at the end
    for (; count != 0; --count) {
      builder.append(fresh);
      run.heap().check_text(builder.size());
      if (at >= text.bytes.size()) return run.heap().text(builder, text.markup);
      const std::size_t next = at + character_at(text.bytes, at).bytes;
      builder.append(text, at, next);
      at = next;
    }
  }
  for (; count != 0; --count) {
    const std::size_t hit =
        old.bytes.empty() ? std::string::npos : find_bytes(text.bytes, old.bytes, at);
    if (hit == std::string::npos) break;
    builder.append(text, at, hit);
    builder.append(fresh);
    run.heap().check_text(builder.size());
    at = hit + old.bytes.size();
  }
  builder.append(text, at, text.bytes.size());
  return run.heap().text(builder, text.markup);
}

std::vector<LineRange> split_lines(const Text& text) {
  std::vector<LineRange> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    std::size_t next = at + c.bytes;
    if (is_line_end(c.code)) {
      if (c.code == '\r' && next < text.bytes.size() && text.bytes[next] == '\n') ++next;
      lines.push_back({begin, at, next});
      begin = next;
    }
    at = next;
  }
  if (begin < text.bytes.size()) lines.push_back({begin, text.bytes.size(), text.bytes.size()});
  return lines;
}

TextRef joined(Interpreter& run, const Text& separator, const std::vector<Value>& parts) {
  TextBuilder builder;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) builder.append(separator);
    const Text* part = as_text(parts[i]);
    if (part == nullptr)
      throw Fault(base::cat("sequence item ", i, ": expected str instance, ", type_name(parts[i]),
                            " found"));
    builder.append(separator.markup ? *escape_html(run, parts[i]) : *part);
    run.heap().check_text(builder.size());
  }
  return run.heap().text(builder, separator.markup);
}

TextRef padded(Interpreter& run, const Text& text, std::size_t left, std::size_t right,
               std::string_view fill) {
  run.heap().check_text(left);
  run.heap().check_text(right);
  run.heap().check_text(text.bytes.size() + (left + right) * fill.size());
  TextBuilder builder;
  for (std::size_t i = 0; i < left; ++i) builder.append(fill);
  builder.append(text);
  for (std::size_t i = 0; i < right; ++i) builder.append(fill);
  return run.heap().text(builder, text.markup);
}

namespace {

struct Entity {
  std::string_view name, character;
};
constexpr Entity kEntities[] = {{"&lt;", "<"},    {"&gt;", ">"},         {"&amp;", "&"},
                                {"&quot;", "\""}, {"&#39;", "'"},        {"&#34;", "\""},
                                {"&apos;", "'"},  {"&nbsp;", "\xC2\xA0"}};

// [from, to) of the text without what lies between `open` and `close`.
Text without(const Text& text, std::string_view open, std::string_view close) {
  TextBuilder out;
  std::size_t at = 0;
  for (;;) {
    const std::size_t begin = find_bytes(text.bytes, open, at);
    const std::size_t end =
        begin == std::string::npos ? begin : find_bytes(text.bytes, close, begin + open.size());
    if (end == std::string::npos) break;
    out.append(text, at, begin);
    at = end + close.size();
  }
  out.append(text, at, text.bytes.size());
  return out.take();
}

}  // namespace

TextRef stripped_of_tags(Interpreter& run, const Text& text) {
  const Text bare = without(without(text, "<!--", "-->"), "<", ">");
  TextBuilder builder;
  MarkReader marks(bare);
  bool space = false;
  for (std::size_t at = 0; at < bare.bytes.size();) {
    const Character c = character_at(bare.bytes, at);
    std::size_t bytes = c.bytes;
    if (is_space(c.code)) {
      space = builder.size() != 0;
    } else {
      if (space) builder.append(" ");
      space = false;
      std::string_view shown = std::string_view(bare.bytes).substr(at, bytes);
      for (const Entity& entity : kEntities)
        if (bare.bytes.compare(at, entity.name.size(), entity.name) == 0) {
          shown = entity.character;
          bytes = entity.name.size();
        }
      builder.append(shown, marks.untrusted(at));
    }
    at += bytes;
  }
  return run.heap().text(builder);
}

void append_url_quoted(TextBuilder& out, const Text& text, bool query) {
  MarkReader marks(text);
  for (std::size_t at = 0; at < text.bytes.size(); ++at) {
    const char c = text.bytes[at];
    const bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
                       c == '.' || c == '-' || c == '~' || (c == '/' && !query);
    char buffer[4] = {c, 0, 0, 0};
    if (query && c == ' ')
      buffer[0] = '+';
    else if (!plain)
      std::snprintf(buffer, sizeof buffer, "%%%02X", static_cast<unsigned char>(c));
    out.append(buffer, marks.untrusted(at));
  }
}

}  // namespace quern::jinja
