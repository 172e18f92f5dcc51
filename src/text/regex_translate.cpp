#include <cctype>
#include <ios>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/regex.hpp"
#include "text/unicode_table.hpp"

namespace quern::text {

namespace {

// Unicode's White_Space. PCRE2's own \s has U+180E besides.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
// Its complement as ranges, for use inside a class.
constexpr std::string_view kNonSpaces =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
constexpr std::string_view kLatinNumbers =  // in Oniguruma's \w too, but only outside of a class
    R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
// \w besides what PCRE2 lacks: Alphabetic, marks, decimal digits, connectors.
constexpr std::string_view kWords = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9})"
                                    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        char_class(0);
      } else if (in_.substr(at_, 2) == "(?") {
        group_options();
      } else {
        if (c == '}' && in_.substr(at_, 2) == "}+") fail("possessive interval");
        out_ += c;
        ++at_;
      }
    }
    return out_;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    base::reject(where_, base::cat("regex not supported: ", what), base::printable(in_, 250));
  }

  void set(std::string_view members, bool in_class) {
    out_ += in_class ? std::string(members) : base::cat("[", members, "]");
    at_ += 2;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) fail("it ends in a backslash");
    switch (in_[at_ + 1]) {
      case 's':
        return set(kSpaces, in_class);
      case 'S':
        return set(kNonSpaces, in_class);
      case 'w':
        return set(words(in_class), in_class);
      case 'h':
        return set("0-9a-fA-F", in_class);
      case 'W':
      case 'H':
        if (in_class) fail("negated set inside a class");
        out_ +=
            in_[at_ + 1] == 'W' ? base::cat("[^", words(false), "]") : std::string("[^0-9a-fA-F]");
        at_ += 2;
        return;
      case 'u':
        if (at_ + 6 > in_.size()) fail("short \\u escape");
        out_ += base::cat("\\x{", in_.substr(at_ + 2, 4), "}");
        at_ += 6;
        return;
      case 'p':
      case 'P':
        return property(in_class);
      default: {
        const bool braced = in_.substr(at_ + 1, 2) == "x{";
        const std::size_t end = braced ? in_.find('}', at_) : at_ + 1;
        if (end == std::string_view::npos) fail("missing }");
        out_ += in_.substr(at_, end + 1 - at_);
        at_ = end + 1;
      }
    }
  }

  // \p{L} and its kin, with the characters that are newer than PCRE2's tables.
  void property(bool in_class) {
    const std::size_t end = in_.find('}', at_);
    if (in_.substr(at_ + 2, 1) != "{" || end == std::string_view::npos)
      fail("\\p without a name in braces");
    const std::string_view whole = in_.substr(at_, end + 1 - at_);
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    bool negated = whole[1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const std::string newer = newer_members(name);
    at_ = end + 1;
    if (newer.empty()) {
      out_ += whole;
    } else if (in_class) {
      if (negated) fail("negated category inside a class");
      out_ += base::cat("\\p{", name, "}", newer);
    } else {
      out_ += base::cat(negated ? "[^" : "[", "\\p{", name, "}", newer, "]");
    }
  }

  static std::string words(bool in_class) {
    std::string out = base::cat(kWords, in_class ? std::string_view() : kLatinNumbers);
    for (const std::string_view category : {"L", "M", "Nd", "Nl", "Pc"})
      out += newer_members(category);
    return out;
  }

  static std::string newer_members(std::string_view name) {
    std::string out;
    if (name.empty() || name.size() > 2) return out;
    for (std::size_t i = 0; i < kNewerRangesCount; ++i) {
      const CategoryRange& range = kNewerRanges[i];
      if (!std::string_view(range.category, 2).starts_with(name)) continue;
      out += base::cat(std::hex, "\\x{", range.first, "}");
      if (range.last > range.first) out += base::cat(std::hex, "-\\x{", range.last, "}");
    }
    return out;
  }

  // Oniguruma reads a class inside a class as a union; PCRE2 as literals, so that the brackets go.
  void char_class(int depth) {
    const bool negated = in_.substr(at_, 2) == "[^";
    if (depth > 0 && negated) fail("negated class inside a class");
    if (depth > 8) fail("classes nested too deep");
    if (depth == 0) out_ += negated ? "[^" : "[";
    at_ += negated ? 2 : 1;
    if (at_ < in_.size() && in_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
    while (at_ < in_.size() && in_[at_] != ']') class_member(depth);
    if (at_ == in_.size()) fail("missing ]");
    ++at_;
    if (depth == 0) out_ += ']';
  }

  void class_member(int depth) {
    if (in_[at_] == '\\') return escape(true);
    if (in_.substr(at_, 2) == "&&") fail("class intersection");
    if (in_[at_] != '[') {
      out_ += in_[at_++];
      return;
    }
    if (in_.substr(at_, 2) != "[:") return char_class(depth + 1);
    const std::size_t end = in_.find(":]", at_ + 2);
    if (end == std::string_view::npos) fail("missing :]");
    out_ += in_.substr(at_, end + 2 - at_);
    at_ = end + 2;
  }

  // (?m) is dot-matches-newline in Ruby; ^ and $ are line anchors always (PCRE2_MULTILINE).
  void group_options() {
    out_ += "(?";
    at_ += 2;
    std::size_t end = at_;
    while (end < in_.size() &&
           (std::isalpha(static_cast<unsigned char>(in_[end])) || in_[end] == '-'))
      ++end;
    const bool options = end < in_.size() && (in_[end] == ')' || in_[end] == ':');
    for (; options && at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  std::string_view in_, where_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

std::string literal_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80;
    if (!plain && static_cast<unsigned char>(c) >= ' ' && c != 0x7F) out += '\\';
    if (c == '\0') {
      out += "\\x{0}";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace quern::text
