#include "jinja/lexer.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "jinja/characters.hpp"

namespace quern::jinja {

namespace {

// \r\n and \r become \n; one line end at the very end goes.
std::string normal_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string what) const { throw SyntaxFault{line_, std::move(what)}; }
  bool here(std::string_view word) const {
    return std::string_view(source_).substr(at_, word.size()) == word;
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  void advance(std::size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + bytes),
                                         '\n'));
    at_ += bytes;
  }
  std::size_t spaces(std::size_t from) const {  // where the white space that begins there ends
    while (from < source_.size()) {
      const Character c = character_at(source_, from);
      if (!is_space(c.code)) break;
      from += c.bytes;
    }
    return from;
  }

  // Text up to the next tag, then the tag.
  void data() {
    std::size_t open = at_;
    for (;; ++open) {
      open = source_.find('{', open);
      if (open == std::string::npos) break;
      const char next = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
    }
    if (open == std::string::npos) {
      push(TokenKind::data, source_.substr(at_));
      advance(source_.size() - at_);
      return;
    }
    const char kind = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    const std::size_t keep = stripped_end(at_, open, sign, kind != '{');
    if (keep > at_) push(TokenKind::data, source_.substr(at_, keep - at_));
    advance(open - at_);
    std::size_t skip = 2;
    if (sign == '-' || sign == '+') ++skip;
    if (kind == '#') return comment(skip);
    if (kind == '%' && raw(skip)) return;
    push(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin, "");
    advance(skip);
    inside(kind == '{');
  }

  // The end of data [from, to) before a tag with this sign. lstrip: blocks and comments.
  std::size_t stripped_end(std::size_t from, std::size_t to, char sign, bool lstrip) const {
    std::size_t end = to;
    if (sign == '-') {
      while (end > from) {
        const std::size_t start = character_before(source_, end);
        if (start < from || !is_space(character_at(source_, start).code)) break;
        end = start;
      }
      return end;
    }
    if (sign == '+' || !lstrip) return to;
    std::size_t line = to;  // the start of the line, within this data
    while (line > from && source_[line - 1] != '\n') --line;
    if (line == from && !line_starting_) return to;
    return spaces(line) >= to ? line : to;
  }

  // After a tag: `-` took all white space, blocks and comments one line end.
  void after_tag(bool minus, bool trim) {
    const std::size_t start = at_;
    if (minus) {
      advance(spaces(at_) - at_);
    } else if (trim && peek() == '\n') {
      advance(1);
    }
    // What the tag's match ended with decides whether the next data begins a line.
    line_starting_ = at_ > start ? source_[at_ - 1] == '\n' : false;
  }

  void comment(std::size_t skip) {
    const std::size_t close = source_.find("#}", at_ + skip);
    if (close == std::string::npos) fail("Missing end of comment tag");
    const char sign = close > at_ + skip ? source_[close - 1] : '\0';
    advance(close + 2 - at_);
    after_tag(sign == '-', sign != '+');
  }

  // {% raw %} ... {% endraw %} at the place: all of it as data.
  bool raw(std::size_t skip) {
    std::size_t at = spaces(at_ + skip);
    if (source_.compare(at, 3, "raw") != 0) return false;
    at = spaces(at + 3);
    const bool minus = source_.compare(at, 3, "-%}") == 0;
    if (!minus && source_.compare(at, 2, "%}") != 0) return false;
    advance(at + (minus ? 3 : 2) - at_);
    const std::size_t opened = at_;
    if (minus) advance(spaces(at_) - at_);
    line_starting_ = at_ > opened && source_[at_ - 1] == '\n';
    for (std::size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 1)) {
      const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
      std::size_t end = spaces(open + 2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (source_.compare(end, 6, "endraw") != 0) continue;
      end = spaces(end + 6);
      const char tail = end < source_.size() ? source_[end] : '\0';
      if (tail == '-' || tail == '+') ++end;
      if (source_.compare(end, 2, "%}") != 0) continue;
      const std::size_t keep = stripped_end(at_, open, sign, true);
      if (keep > at_) push(TokenKind::data, source_.substr(at_, keep - at_));
      advance(end + 2 - at_);
      after_tag(tail == '-', tail != '+');
      return true;
    }
    fail("Missing end of raw directive");
  }

  // Tokens of a tag up to its end, which counts only outside brackets.
  void inside(bool variable) {
    std::string brackets;
    for (;;) {
      if (at_ >= source_.size()) return;  // the parser says what is missing
      if (brackets.empty() && tag_end(variable)) return;
      const std::size_t space = spaces(at_);
      if (space > at_) {
        advance(space - at_);
        continue;
      }
      if (number() || name() || string()) continue;
      operator_token(brackets);
    }
  }

  bool tag_end(bool variable) {
    const std::string_view close = variable ? "}}" : "%}";
    const char sign = peek();
    const bool signed_end =
        (sign == '-' || (sign == '+' && !variable)) &&
        std::string_view(source_).substr(std::min(at_ + 1, source_.size()), 2) == close;
    if (!signed_end && !here(close)) return false;
    push(variable ? TokenKind::variable_end : TokenKind::block_end, "");
    advance(signed_end ? 3 : 2);
    after_tag(signed_end && sign == '-', !variable && !(signed_end && sign == '+'));
    return true;
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }

  // digits with single underscores between them: where they end
  std::size_t digits(std::size_t from) const {
    if (from >= source_.size() || !digit(source_[from])) return from;
    while (from < source_.size() &&
           (digit(source_[from]) ||
            (source_[from] == '_' && from + 1 < source_.size() && digit(source_[from + 1]))))
      ++from;
    return from;
  }

  bool number() {
    if (!digit(peek())) return false;
    const std::size_t whole = digits(at_);
    std::size_t end = whole;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot) {
      if (end < source_.size() && source_[end] == '.' && digits(end + 1) > end + 1)
        end = digits(end + 1);
      if (end < source_.size() && (source_[end] | 32) == 'e') {
        std::size_t power = end + 1;
        if (power < source_.size() && (source_[power] == '+' || source_[power] == '-')) ++power;
        if (digits(power) > power) end = digits(power);
      }
    }
    const bool real = end > whole;
    if (!real) end = integer_end(whole);
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    push(real ? TokenKind::real : TokenKind::integer, std::move(text));
    advance(end - at_);
    return true;
  }

  std::size_t integer_end(std::size_t whole) const {
    if (peek() != '0') return whole;
    const char base = static_cast<char>(peek(1) | 32);
    const auto fits = [base](char c) {
      if (base == 'b') return c == '0' || c == '1';
      if (base == 'o') return c >= '0' && c <= '7';
      return base == 'x' && (digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'));
    };
    std::size_t end = at_ + 2;
    while (end < source_.size() &&
           (fits(source_[end]) ||
            (source_[end] == '_' && end + 1 < source_.size() && fits(source_[end + 1]))))
      ++end;
    if (end > at_ + 2) return end;
    std::size_t zeros = at_;  // "0123" is 0, then 123
    while (zeros < whole && (source_[zeros] == '0' || source_[zeros] == '_')) ++zeros;
    return zeros;
  }

  bool name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const Character c = character_at(source_, end);
      if (!is_word(c.code)) break;
      end += c.bytes;
    }
    if (end == at_) return false;
    const std::uint32_t first = character_at(source_, at_).code;
    if (first != '_' && !is_alpha(first)) fail("Invalid character in identifier");
    push(TokenKind::name, source_.substr(at_, end - at_));
    advance(end - at_);
    return true;
  }

  bool string() {
    const char quote = peek();
    if (quote != '"' && quote != '\'') return false;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      fail(base::cat("unexpected char ", quote == '"' ? "'\"'" : "\"'\"",
                     ": a string without its end"));
    push(TokenKind::string,
         unescape_literal(std::string_view(source_).substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1 - at_);
    return true;
  }

  void operator_token(std::string& brackets) {
    for (const std::string_view op : kOperators) {
      if (!here(op)) continue;
      if (op == "(" || op == "[" || op == "{") brackets += op == "(" ? ')' : op == "[" ? ']' : '}';
      if (op == ")" || op == "]" || op == "}") {
        if (brackets.empty()) fail(base::cat("unexpected '", op, "'"));
        if (brackets.back() != op[0])
          fail(base::cat("unexpected '", op, "', expected '", brackets.back(), "'"));
        brackets.pop_back();
      }
      push(TokenKind::op, std::string(op));
      advance(op.size());
      return;
    }
    const Character c = character_at(source_, at_);
    fail(base::cat("unexpected char '", base::printable(rest().substr(0, c.bytes)), "'"));
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // data at the place begins a line
  std::vector<Token> tokens_;
};

void append_hex(std::string& out, std::string_view inside, std::size_t& at, std::size_t n,
                int line) {
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const char c = at + i < inside.size() ? inside[at + i] : '\0';
    const int value = c >= '0' && c <= '9'                 ? c - '0'
                      : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                           : -1;
    if (value < 0) throw SyntaxFault{line, "truncated \\x, \\u or \\U escape in a string"};
    code = code * 16 + static_cast<std::uint32_t>(value);
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    throw SyntaxFault{line, "an escape in a string is no Unicode character"};
  append_character(out, code);
  at += n;
}

}  // namespace

std::string unescape_literal(std::string_view inside, int line) {
  std::string out;
  for (std::size_t at = 0; at < inside.size();) {
    if (inside[at] != '\\' || at + 1 >= inside.size()) {
      out += inside[at++];
      continue;
    }
    const char c = inside[at + 1];
    at += 2;
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out += kTo[simple];
    } else if (c == '\n') {
      // a line continues
    } else if (c >= '0' && c <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(c - '0');
      for (int i = 0; i < 2 && at < inside.size() && inside[at] >= '0' && inside[at] <= '7'; ++i)
        code = code * 8 + static_cast<std::uint32_t>(inside[at++] - '0');
      append_character(out, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_hex(out, inside, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, line);
    } else if (c == 'N') {
      throw SyntaxFault{line, "\\N{...} in a string is not supported"};
    } else {
      out += '\\';
      out += c;
    }
  }
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(normal_source(source)).run();
}

}  // namespace quern::jinja
