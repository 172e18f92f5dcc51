#include "grammar/regex.hpp"

#include <cctype>
#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/nfa_builder.hpp"

namespace quern::grammar {

namespace {

using base::cat;

const CharSet kDigits{{'0', '9'}};
const CharSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// Dialects differ about white space beyond ASCII: what some count is neither in \s nor in \S.
const CharSet kSpace{{'\t', '\r'}, {' ', ' '}};
const CharSet kAnySpace{{'\t', '\r'},     {0x1C, ' '},      {0x85, 0x85},     {0xA0, 0xA0},
                        {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                        {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharSet kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

// What is certainly in a class, and what some dialect counts to it (for [^...]).
struct ClassSets {
  CharSet sure, maybe;
  void add(const ClassSets& other) {
    sure.add(other.sure);
    maybe.add(other.maybe);
  }
};

ClassSets one(char32_t c) { return {CharSet{{c, c}}, CharSet{{c, c}}}; }

class Parser {
 public:
  Parser(Grammar& grammar, std::string_view pattern, const std::string& where)
      : grammar_(grammar), text_(pattern), where_(where) {}

  NodeId run() {
    if (text_.size() > kMaxSourceBytes / 64)
      base::reject(where_, "too long a pattern", cat(text_.size(), " bytes"), cat("at most ", kMaxSourceBytes / 64));
    const NodeId node = parse_alternatives(0);
    if (!at_end()) fail("a ) without its (");
    return node;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  [[noreturn, gnu::noinline]] void fail(std::string_view what) const {
    base::reject(where_, cat("pattern \"", base::printable(text_, 60), "\", byte ", at_, ": ", what));
  }
  [[noreturn, gnu::noinline]] void unsupported(std::string_view what) const { fail(cat("not supported: ", what)); }

  NodeId parse_alternatives(std::size_t depth) {
    std::vector<NodeId> children{parse_sequence(depth)};
    while (take("|")) children.push_back(parse_sequence(depth));
    return grammar_.choice(std::move(children));
  }

  NodeId parse_sequence(std::size_t depth) {
    std::vector<NodeId> children;
    while (!at_end() && peek() != '|' && peek() != ')') {
      const bool anchor = peek() == '^' || peek() == '$';
      NodeId item = parse_atom(depth);
      if (parse_quantifier(item) && anchor) fail("a repeated anchor");
      children.push_back(item);
    }
    return grammar_.sequence(std::move(children));
  }

  NodeId parse_atom(std::size_t depth) {
    return take("(") ? parse_group(depth) : parse_single();
  }

  [[gnu::noinline]] NodeId parse_single() {
    if (take("[")) return parse_class();
    if (take("^")) return grammar_.anchor(NodeKind::begin);
    if (take("$")) return grammar_.anchor(NodeKind::end);
    if (take(".")) return grammar_.chars(kLineEnds.complement());
    if (take("\\")) return grammar_.chars(parse_escape(false).sure);
    if (peek() == '*' || peek() == '+' || peek() == '?') fail("a repetition of nothing");
    if (quantifier_length() != 0) fail("a repetition of nothing");
    return grammar_.chars(one(parse_char()).sure);
  }

  char32_t parse_char() {
    char32_t c = 0;
    if (at_end()) fail("the pattern ends too soon");
    if (!next_char(text_, at_, c)) fail("not UTF-8");
    return c;
  }

  NodeId parse_group(std::size_t depth) {
    group_head(depth);
    const NodeId inside = parse_alternatives(depth + 1);
    if (!take(")")) fail("a ( without its )");
    return inside;
  }

  // Apart, as all that is large is: groups nest, so the frames of the functions above count as often.
  [[gnu::noinline]] void group_head(std::size_t depth) {
    if (depth >= kMaxNesting) fail(cat("groups nest deeper than ", kMaxNesting));
    if (!take("?")) return;
    if (take("=") || take("!")) unsupported("look-ahead (?= (?!");
    if (take("<=") || take("<!")) unsupported("look-behind (?<= (?<!");
    if (take("P=")) unsupported("a backreference (?P=");
    if (take(">")) unsupported("an atomic group (?>");
    if (take("P<") || take("<")) {
      while (!at_end() && (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_')) ++at_;
      if (!take(">")) fail("expected > after the name of a group");
    } else if (!take(":")) {
      unsupported("a group that begins with (?" + base::printable(text_.substr(at_, 1)) + " (flags, conditions, comments)");
    }
  }

  // Length of {m}, {m,}, {m,n} at the place, 0 when it is none (a { of its own is a character).
  std::size_t quantifier_length() const {
    if (peek() != '{') return 0;
    std::size_t at = 1, digits = 0, commas = 0;
    for (;; ++at) {
      const char c = peek(at);
      if (c == '}') return digits != 0 || commas != 0 ? at + 1 : 0;
      if (c == ',' && commas++ == 0) continue;
      if (std::isdigit(static_cast<unsigned char>(c)) == 0) return 0;
      ++digits;
    }
  }

  std::uint32_t parse_number() {
    std::uint32_t value = 0;
    for (; std::isdigit(static_cast<unsigned char>(peek())) != 0; ++at_) {
      value = value * 10 + static_cast<std::uint32_t>(peek() - '0');
      if (value > kMaxRepeat) fail(cat("a repetition of more than ", kMaxRepeat));
    }
    return value;
  }

  // False without one. Lazy ones match the same texts.
  [[gnu::noinline]] bool parse_quantifier(NodeId& item) {
    std::uint32_t min = 0, max = kUnbounded;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (quantifier_length() != 0) {
      ++at_;
      if (peek() == ',') unsupported("{,n}, which dialects read differently; write {0,n}");
      min = max = parse_number();
      if (take(",")) max = peek() == '}' ? kUnbounded : parse_number();
      ++at_;
      if (max < min) fail("a repetition whose end lies before its start");
    } else {
      return false;
    }
    if (take("+")) unsupported("a possessive repetition");
    take("?");
    if (peek() == '*' || peek() == '+' || peek() == '?' || quantifier_length() != 0)
      fail("a repetition of a repetition; use a group");
    item = grammar_.repeat(item, min, max);
    return true;
  }

  char32_t parse_hex(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const auto c = static_cast<unsigned char>(peek());
      if (std::isxdigit(c) == 0) fail(cat("expected ", digits, " hexadecimal digits"));
      value = value * 16 + static_cast<char32_t>(std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10);
    }
    return value;
  }

  char32_t parse_unicode_escape() {
    if (take("{")) {
      char32_t value = 0;
      for (; std::isxdigit(static_cast<unsigned char>(peek())) != 0 && value <= kMaxChar; value = value * 16 + parse_hex(1)) {
      }
      if (!take("}") || value > kMaxChar) fail("not a character \\u{...}");
      return value;
    }
    const char32_t value = parse_hex(4);
    if (value < 0xD800 || value > 0xDFFF) return value;
    if (value <= 0xDBFF && take("\\u")) {
      const char32_t low = parse_hex(4);
      if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
    fail("half of a surrogate pair");
  }

  std::optional<ClassSets> shorthand(char letter) const {
    switch (letter) {
      case 'd': return ClassSets{kDigits, kDigits};
      case 'D': return ClassSets{kDigits.complement(), kDigits.complement()};
      case 'w': return ClassSets{kWord, kWord};
      case 'W': return ClassSets{kWord.complement(), kWord.complement()};
      case 's': return ClassSets{kSpace, kAnySpace};
      case 'S': return ClassSets{kAnySpace.complement(), kSpace.complement()};
      default: return std::nullopt;
    }
  }

  // Behind the backslash.
  ClassSets parse_escape(bool in_class) {
    const char letter = peek();
    if (const auto sets = shorthand(letter)) {
      ++at_;
      return *sets;
    }
    if (letter == 'b' && in_class) {
      ++at_;
      return one('\b');
    }
    if (letter == 'b' || letter == 'B') unsupported("a word boundary \\b \\B");
    if (letter == 'p' || letter == 'P') unsupported("a Unicode property \\p{...}");
    if (letter == 'k' || (letter >= '1' && letter <= '9')) unsupported("a backreference");
    if (letter == '0' && std::isdigit(static_cast<unsigned char>(peek(1))) != 0) unsupported("an octal escape");
    constexpr std::string_view kLetters = "nrtfv0", kChars("\n\r\t\f\v\0", 6);
    const std::size_t index = kLetters.find(letter);
    if (!at_end() && index != std::string_view::npos) {
      ++at_;
      return one(static_cast<unsigned char>(kChars[index]));
    }
    if (take("x")) return one(parse_hex(2));
    if (take("u")) return one(parse_unicode_escape());
    if (take("c")) {
      if (std::isalpha(static_cast<unsigned char>(peek())) == 0) fail("expected a letter after \\c");
      return one(static_cast<char32_t>(text_[at_++] & 31));
    }
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      unsupported(cat("the escape \\", letter));
    return one(parse_char());
  }

  NodeId parse_class() {
    const bool negated = take("^");
    if (peek() == ']') fail("an empty class; write \\] for the character");
    ClassSets sets;
    while (!take("]")) {
      if (peek() == '[' && (peek(1) == ':' || peek(1) == '.' || peek(1) == '='))
        unsupported("a POSIX class [:name:]");
      bool single = true;
      const ClassSets low = parse_class_item(single);
      if (peek() != '-' || peek(1) == ']') {
        sets.add(low);
        continue;
      }
      ++at_;
      bool high_single = true;
      const ClassSets high = parse_class_item(high_single);
      if (!single || !high_single) fail("a range from or to a class");
      const CharRange range{low.sure.ranges().front().low, high.sure.ranges().front().low};
      if (range.high < range.low) fail("a range whose end lies before its start");
      sets.add({CharSet{range}, CharSet{range}});
    }
    return grammar_.chars(negated ? sets.maybe.complement() : sets.sure);
  }

  ClassSets parse_class_item(bool& single) {
    if (at_end()) fail("a [ without its ]");
    ClassSets item;
    if (take("\\")) {
      single = !shorthand(peek());
      item = parse_escape(true);
    } else {
      item = one(parse_char());
    }
    if (single && item.sure.empty()) fail("half of a surrogate pair");
    return item;
  }

  Grammar& grammar_;
  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace

Dfa regex_automaton(std::string_view pattern, Matches matches, const std::string& where) {
  Grammar grammar(where);
  NodeId node = Parser(grammar, pattern, where).run();
  if (matches == Matches::part) {
    const NodeId any = grammar.chars(CharSet::any());
    node = grammar.sequence({grammar.repeat(any, 0), node, grammar.repeat(any, 0)});
  }
  const FiniteLimits limits{where, kMaxDfaStates};
  const std::vector<std::uint8_t> none;
  return determinize(NfaBuilder(grammar, Alphabet::characters, none, limits).build(node), limits);
}

Grammar regex_grammar(std::string_view pattern, const std::string& where) {
  const Dfa dfa = regex_automaton(pattern, Matches::whole, where);
  Grammar grammar(where);
  const RuleId root = grammar.add_rule("root");
  grammar.set_root(root);
  grammar.define(root, automaton_node(grammar, dfa, [&](const CharSet& set) { return grammar.chars(set); }));
  return grammar;
}

}  // namespace quern::grammar
