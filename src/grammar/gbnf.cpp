#include "grammar/gbnf.hpp"

#include <cctype>
#include <map>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"

namespace quern::grammar {

namespace {

using base::cat;

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where)
      : text_(text), where_(where), grammar_(where) {}

  Grammar run() {
    if (text_.size() > kMaxSourceBytes)
      base::reject(where_, "too large a grammar", cat(text_.size(), " bytes"), cat("at most ", kMaxSourceBytes));
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    skip_space(true);
    while (!at_end()) parse_rule();
    const auto root = rules_.find("root");
    if (root == rules_.end() || !root->second.defined) base::reject(where_, "no rule named \"root\"");
    for (const auto& [name, use] : rules_)
      if (!use.defined)
        base::reject(cat(where_, ":", use.line), cat("rule \"", name, "\" is used but not defined"));
    grammar_.set_root(root->second.id);
    return std::move(grammar_);
  }

 private:
  struct Use {
    RuleId id;
    std::size_t line;  // of the first use
    bool defined;
  };

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Counted on from the last call, for every first use of a rule asks.
  std::size_t line() {
    for (; counted_ < at_ && counted_ < text_.size(); ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }

  [[noreturn]] void fail(std::string_view what) {
    const std::size_t start = at_ == 0 ? 0 : text_.rfind('\n', at_ - 1) + 1;  // npos + 1 is 0
    const std::string got = at_end() ? "the end" : cat("\"", base::printable(text_.substr(at_, 1), 10), "\"");
    base::reject(cat(where_, ":", line(), ":", at_ - start + 1), what, got);
  }

  void skip_space(bool newlines) {
    while (!at_end()) {
      const char c = text_[at_];
      if (c == '#') {
        while (!at_end() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string parse_name() {
    const std::size_t start = at_;
    while (!at_end() && is_name_char(text_[at_])) ++at_;
    if (at_ == start) fail("expected the name of a rule");
    if (at_ - start > 256) fail("too long a name of a rule");
    return std::string(text_.substr(start, at_ - start));
  }

  Use& use_of(const std::string& name) {
    const auto found = rules_.find(name);
    if (found != rules_.end()) return found->second;
    return rules_.emplace(name, Use{grammar_.add_rule(name), line(), false}).first->second;
  }

  void parse_rule() {
    if (peek() == '|') fail("an alternative on a line of its own: write the | at the end of the line before");
    const std::string name = parse_name();
    skip_space(false);
    if (!text_.substr(at_).starts_with("::=")) fail(cat("expected ::= after the name \"", name, "\""));
    at_ += 3;
    skip_space(true);
    Use& use = use_of(name);
    if (use.defined) fail(cat("rule \"", name, "\" is defined twice"));
    use.defined = true;
    const RuleId id = use.id;
    grammar_.define(id, parse_alternatives(0));
    if (!at_end() && peek() != '\n' && peek() != '\r') fail("expected the end of the line");
    skip_space(true);
  }

  NodeId parse_alternatives(std::size_t depth) {
    std::vector<NodeId> children{parse_sequence(depth)};
    while (take('|')) {
      skip_space(true);
      children.push_back(parse_sequence(depth));
    }
    return grammar_.choice(std::move(children));
  }

  NodeId parse_sequence(std::size_t depth) {
    std::vector<NodeId> children;
    for (;;) {
      if (at_end() || peek() == '|' || peek() == ')' || peek() == '\n' || peek() == '\r') break;
      NodeId item = parse_item(depth);
      while (!at_end() && (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{')) {
        item = parse_repetition(item);
        skip_space(depth > 0);
      }
      children.push_back(item);
    }
    return grammar_.sequence(std::move(children));
  }

  NodeId parse_item(std::size_t depth) {
    NodeId item = 0;
    const char c = peek();
    if (c == '"') {
      item = parse_literal();
    } else if (c == '[') {
      item = parse_class();
    } else if (c == '.') {
      ++at_;
      item = grammar_.chars(CharSet::any());
    } else if (c == '(') {
      item = parse_group(depth);
    } else if (c == '<' || c == '!') {
      item = parse_token();
    } else if (is_name_char(c)) {
      item = grammar_.rule(use_of(parse_name()).id);
    } else {
      fail("expected a literal, a class, a group or the name of a rule");
    }
    skip_space(depth > 0);
    return item;
  }

  NodeId parse_group(std::size_t depth) {
    if (depth >= kMaxNesting) fail(cat("groups nest deeper than ", kMaxNesting));
    ++at_;
    skip_space(true);
    const NodeId inside = parse_alternatives(depth + 1);
    if (!take(')')) fail("expected )");
    return inside;
  }

  NodeId parse_literal() {
    ++at_;
    std::string text;
    while (!take('"')) text += utf8(parse_char("a literal without its closing \""));
    return grammar_.text(text);
  }

  NodeId parse_class() {
    ++at_;
    const bool negated = take('^');
    CharSet set;
    while (!take(']')) {
      const char32_t low = parse_char("a class without its closing ]");
      char32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        high = parse_char("a class without its closing ]");
        if (high < low) fail("a range whose end lies before its start");
      }
      set.add(low, high);
    }
    return grammar_.chars(negated ? set.complement() : std::move(set));
  }

  char32_t parse_char(std::string_view unclosed) {
    if (at_end()) fail(unclosed);
    char32_t c = 0;
    if (peek() != '\\') {
      if (!next_char(text_, at_, c)) fail("not UTF-8");
      return c;
    }
    ++at_;
    const char letter = peek();
    if (letter == 'x' || letter == 'u' || letter == 'U') {
      ++at_;
      return parse_hex(letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
    }
    constexpr std::string_view kLetters = "nrt\\\"[]-^", kChars = "\n\r\t\\\"[]-^";
    const std::size_t index = at_end() ? std::string_view::npos : kLetters.find(letter);
    if (index == std::string_view::npos) fail("unknown escape");
    ++at_;
    return static_cast<unsigned char>(kChars[index]);
  }

  char32_t parse_hex(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(peek());
      if (std::isxdigit(c) == 0) fail(cat("expected ", digits, " hexadecimal digits"));
      value = value * 16 + static_cast<char32_t>(std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10);
    }
    if (value > kMaxChar || (value >= 0xD800 && value <= 0xDFFF)) fail("an escape that is no character");
    return value;
  }

  std::uint32_t parse_number() {
    if (std::isdigit(static_cast<unsigned char>(peek())) == 0) fail("expected a number");
    std::uint32_t value = 0;
    for (; std::isdigit(static_cast<unsigned char>(peek())) != 0; ++at_) {
      value = value * 10 + static_cast<std::uint32_t>(peek() - '0');
      if (value > 100'000'000) fail("too large a number");
    }
    return value;
  }

  NodeId parse_repetition(NodeId item) {
    const char c = peek();
    ++at_;
    if (c == '*') return grammar_.repeat(item, 0);
    if (c == '+') return grammar_.repeat(item, 1);
    if (c == '?') return grammar_.repeat(item, 0, 1);
    skip_space(true);
    const std::uint32_t min = parse_number();
    std::uint32_t max = min;
    skip_space(true);
    if (take(',')) {
      skip_space(true);
      max = peek() == '}' ? kUnbounded : parse_number();
      skip_space(true);
    }
    if (!take('}')) fail("expected } of a repetition");
    if (max < min) fail("a repetition whose end lies before its start");
    if ((max == kUnbounded ? min : max) > kMaxRepeat)
      fail(cat("a repetition of more than ", kMaxRepeat));
    return grammar_.repeat(item, min, max);
  }

  NodeId parse_token() {
    TokenPattern pattern;
    pattern.negated = take('!');
    const std::size_t start = at_;
    if (!take('<')) fail("expected < of a token");
    if (take('[')) {
      pattern.id = static_cast<std::int32_t>(parse_number());
      if (!take(']') || !take('>')) fail("expected ]> of a token");
      return grammar_.token(std::move(pattern));
    }
    while (!at_end() && peek() != '>' && peek() != '\n') ++at_;
    if (!take('>')) fail("a token without its closing >");
    if (at_ - start > 256 || at_ - start < 3) fail("not the spelling of a token");
    pattern.spelling = text_.substr(start, at_ - start);
    return grammar_.token(std::move(pattern));
  }

  std::string_view text_;
  std::string where_;
  Grammar grammar_;
  std::size_t at_ = 0, counted_ = 0, line_ = 1;
  std::map<std::string, Use> rules_;
};

}  // namespace

Grammar parse_gbnf(std::string_view text, const std::string& where) { return Parser(text, where).run(); }

}  // namespace quern::grammar
