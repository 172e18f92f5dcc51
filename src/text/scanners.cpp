#include "text/scanners.hpp"

#include "text/unicode.hpp"

namespace quern::text {

namespace {

using enum CharClass;

bool is_white(CharClass kind) {
  return kind == space || kind == newline;
}

// End of the run of characters of one class that starts at `at`.
std::size_t run_of(std::string_view text, std::size_t at, CharClass kind) {
  while (at < text.size()) {
    const ClassedChar c = classed_char(text, at);
    if (c.kind != kind) break;
    at += c.bytes;
  }
  return at;
}

// Of a white-space run: its end, the start of its last character, the end of its last \r or \n.
struct WhiteRun {
  std::size_t end, last_start, after_newline;  // after_newline 0: the run has none
};

WhiteRun white_run(std::string_view text, std::size_t at) {
  WhiteRun run{at, at, 0};
  while (run.end < text.size()) {
    const ClassedChar c = classed_char(text, run.end);
    if (!is_white(c.kind)) break;
    run.last_start = run.end;
    run.end += c.bytes;
    if (c.kind == newline) run.after_newline = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : white space before a word leaves its last character to the word.
std::size_t white_piece(std::string_view text, std::size_t at, const WhiteRun& run) {
  return run.end < text.size() && run.last_start > at ? run.last_start : run.end;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// 's|'t|'re|'ve|'m|'ll|'d at an apostrophe: its length, 0 when there is none. Without regard to
// case, U+017F (long s) is an s too.
std::size_t contraction(std::string_view text, std::size_t at, bool any_case) {
  const auto letter = [&](std::size_t i) {
    if (at + i >= text.size()) return '\0';
    return any_case ? lower(text[at + i]) : text[at + i];
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool two =
      ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  if (two) return 3;
  if (any_case && text.substr(at + 1, 2) == "\xC5\xBF") return 3;
  return 0;
}

std::size_t scan_gpt2(std::string_view text, std::size_t at) {
  if (text[at] == '\'')
    if (const std::size_t length = contraction(text, at, false)) return at + length;
  const std::size_t word = text[at] == ' ' ? at + 1 : at;
  if (word < text.size()) {
    const ClassedChar c = classed_char(text, word);
    if (!is_white(c.kind)) return run_of(text, word + c.bytes, c.kind);
  }
  return white_piece(text, at, white_run(text, at));
}

// `max_digits` numbers at most in a piece; the rest is common to llama3 and qwen2.
std::size_t scan_cased(std::string_view text, std::size_t at, std::size_t max_digits) {
  const ClassedChar c = classed_char(text, at);
  if (text[at] == '\'')
    if (const std::size_t length = contraction(text, at, true)) return at + length;
  const std::size_t next = at + c.bytes;
  if (c.kind == letter) return run_of(text, next, letter);
  if (c.kind == number) {
    std::size_t end = next;
    for (std::size_t digits = 1; digits < max_digits && end < text.size(); ++digits) {
      const ClassedChar d = classed_char(text, end);
      if (d.kind != number) break;
      end += d.bytes;
    }
    return end;
  }
  const ClassedChar after = next < text.size() ? classed_char(text, next) : ClassedChar{newline, 0};
  if (c.kind != newline && after.kind == letter) return run_of(text, next + after.bytes, letter);
  if (c.kind == other || (text[at] == ' ' && after.kind == other))
    return run_of(text, run_of(text, next, other), newline);
  const WhiteRun run = white_run(text, at);
  return run.after_newline > 0 ? run.after_newline : white_piece(text, at, run);
}

std::size_t scan_llama3(std::string_view text, std::size_t at) {
  return scan_cased(text, at, 3);
}
std::size_t scan_qwen2(std::string_view text, std::size_t at) {
  return scan_cased(text, at, 1);
}

std::size_t scan_digit_runs(std::string_view text, std::size_t at) {
  const bool digits = classed_char(text, at).kind == number;
  while (at < text.size()) {
    const ClassedChar c = classed_char(text, at);
    if ((c.kind == number) != digits) break;
    at += c.bytes;
  }
  return at;
}

std::size_t scan_digits(std::string_view text, std::size_t at) {
  const ClassedChar c = classed_char(text, at);
  return c.kind == number ? at + c.bytes : scan_digit_runs(text, at);
}

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct NamedScanner {
  std::string_view name, pattern;
  Scanner scan;
};

constexpr NamedScanner kScanners[] = {
    {"gpt2", kGpt2Pattern, scan_gpt2},
    {"llama3", kLlama3Pattern, scan_llama3},
    {"qwen2", kQwen2Pattern, scan_qwen2},
    {"digits", R"(\p{N})", scan_digits},
    {"digit_runs", R"(\p{N}+)", scan_digit_runs},
};

}  // namespace

Scanner find_scanner(std::string_view name) {
  for (const NamedScanner& entry : kScanners)
    if (entry.name == name) return entry.scan;
  return nullptr;
}

std::string_view scanner_pattern(std::string_view name) {
  for (const NamedScanner& entry : kScanners)
    if (entry.name == name) return entry.pattern;
  return {};
}

std::string_view scanner_for_pattern(std::string_view pattern) {
  for (const NamedScanner& entry : kScanners)
    if (entry.pattern == pattern) return entry.name;
  return {};
}

}  // namespace quern::text
