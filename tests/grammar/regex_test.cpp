// Regular expressions: accepted texts, refused syntax, and every short text against std::regex.
#include "grammar/regex.hpp"

#include <regex>

#include "catch.hpp"
#include "grammar/helpers.hpp"

namespace quern::tests {

namespace {

using grammar::Matches;

std::u32string characters(std::string_view text) {
  std::u32string out;
  char32_t c = 0;
  for (std::size_t at = 0; at < text.size();) {
    REQUIRE(grammar::next_char(text, at, c));
    out += c;
  }
  return out;
}

bool matches(std::string_view pattern, std::string_view text, Matches kind = Matches::whole) {
  return grammar::regex_automaton(pattern, kind, "test").accepts(characters(text));
}

const std::pair<const char*, const char*> kRefused[] = {
    {"(?=a)", "not supported: look-ahead"},   {"(?!a)b", "not supported: look-ahead"},
    {"(?<=a)", "not supported: look-behind"}, {"(?<!a)b", "not supported: look-behind"},
    {"(a)\\1", "not supported: a backreference"}, {"(?P<n>a)(?P=n)", "not supported: a backreference"},
    {"\\k<n>", "not supported: a backreference"}, {"a\\b", "not supported: a word boundary"},
    {"\\p{L}", "not supported: a Unicode property"}, {"(?i)a", "not supported: a group that begins with (?i"},
    {"(?>a)", "not supported: an atomic group"}, {"a*+", "not supported: a possessive repetition"},
    {"a{,3}", "not supported: {,n}"},  {"[[:alpha:]]", "not supported: a POSIX class"},
    {"\\q", "not supported: the escape \\q"}, {"(a", "a ( without its )"}, {"a)", "a ) without its ("},
    {"[a", "a [ without its ]"}, {"[]", "an empty class"}, {"*a", "a repetition of nothing"},
    {"{2}", "a repetition of nothing"}, {"a**", "a repetition of a repetition"}, {"^*", "a repeated anchor"},
    {"[b-a]", "whose end lies before"}, {"[\\d-z]", "a range from or to a class"}, {"a{3,1}", "whose end lies before"},
    {"a{20000}", "more than 10000"}, {"\\xZZ", "hexadecimal"}, {"\\ud800", "surrogate"}, {"\\", "the pattern ends too soon"},
    {"\\u{110000}", "not a character"},
    {"((a{100}){100}){100}", "too large an automaton"},
};

}  // namespace

TEST_CASE("regular expressions of the documented subset", "[regex]") {
  CHECK(matches("a|bc", "bc"));
  CHECK(!matches("a|bc", "abc"));
  CHECK(matches("^a$", "a"));
  CHECK(matches("(?:ab)+", "abab"));
  CHECK(matches("(?P<year>\\d{4})-(?<month>\\d\\d)", "2024-05"));
  CHECK(matches("a{", "a{"));
  CHECK(matches("[^\\s]+", "abc"));
  CHECK(!matches("[^\\s]", "\xC2\xA0"));
  CHECK(!matches("\\s", "\xC2\xA0"));
  CHECK(!matches("\\S", "\xC2\xA0"));
  CHECK(matches("\\u00e9\\u{1F600}\\uD83D\\uDE00", "\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80"));
  CHECK(matches("[\\u0400-\\u04FF]+", "\xD0\x9F\xD1\x80"));
  CHECK(matches(".", "\xF0\x9F\x98\x80"));
  CHECK(!matches(".", "\n"));
  CHECK(matches("\\x41\\cA\\t\\.", "A\x01\t."));
  CHECK(matches("a*?b+?c??", "aabb"));
  CHECK(!matches("a^b", "ab"));
  CHECK(matches("b", "abc", Matches::part));
  CHECK(!matches("^b", "abc", Matches::part));
  CHECK(!matches("b$", "abc", Matches::part));
  CHECK(matches("^a|c$", "xxc", Matches::part));
  CHECK(matches("^a|c$", "axx", Matches::part));
  CHECK(!matches("^a|c$", "xax", Matches::part));
  CHECK(matches("^$", "", Matches::part));
  CHECK(!matches("^$", "a", Matches::part));
  CHECK(matches("", "anything", Matches::part));
  CHECK(matches("(^|,)x(,|$)", "a,x", Matches::part));
  CHECK(!matches("(^|,)x(,|$)", "ax", Matches::part));
}

TEST_CASE("what goes beyond the subset is refused by name", "[regex]") {
  for (const auto& [pattern, message] : kRefused) {
    INFO(pattern);
    const std::string got = refusal([&] { grammar::regex_automaton(pattern, Matches::whole, "test"); });
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  }
  CHECK(refusal([&] { grammar::regex_automaton(std::string(60'000, '('), Matches::whole, "t"); }).find("nest") !=
        std::string::npos);
  CHECK(!refusal([&] { grammar::Automaton(grammar::regex_grammar("a^b", "test")); }).empty());
}

TEST_CASE("random patterns agree with std::regex on every short text", "[regex]") {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t n) { return random() % n; };
  const std::function<std::string(int)> make = [&](int depth) -> std::string {
    static const std::vector<std::string> kAtoms = {"a", "b", "c", "[ab]", "[^a]", "\\w", "[a-b]", "(?:)", "."};
    if (depth == 0) return kAtoms[pick(kAtoms.size())];
    switch (pick(6)) {
      case 0: return make(depth - 1) + make(depth - 1);
      case 1: return "(?:" + make(depth - 1) + "|" + make(depth - 1) + ")";
      case 2: return "(" + make(depth - 1) + ")*";
      case 3: return "(" + make(depth - 1) + ")?";
      case 4: return "(" + make(depth - 1) + "){1,2}";
      default: return make(depth - 1);
    }
  };
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; texts.size() < 300; ++i)
    for (const char c : {'a', 'b', 'c', '-'}) texts.push_back(texts[i] + c);
  for (int round = 0; round < 150; ++round) {
    std::string pattern = make(3);
    if (pick(3) == 0) pattern = "^" + pattern;
    if (pick(3) == 0) pattern += "$";
    INFO(pattern);
    const std::regex reference(pattern, std::regex::ECMAScript);
    for (const Matches kind : {Matches::whole, Matches::part}) {
      const grammar::Dfa dfa = grammar::regex_automaton(pattern, kind, "test");
      for (const std::string& text : texts) {
        const bool expected = kind == Matches::whole ? std::regex_match(text, reference)
                                                     : std::regex_search(text, reference);
        if (dfa.accepts(characters(text)) != expected) {
          INFO(text);
          CHECK(dfa.accepts(characters(text)) == expected);
        }
      }
    }
  }
}

}  // namespace quern::tests
