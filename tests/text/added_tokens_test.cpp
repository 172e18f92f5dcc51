#include "text/added_tokens.hpp"

#include "catch.hpp"

using namespace quern;

namespace {

text::AddedEntry entry(std::string content, std::int32_t id) {
  return {std::move(content), id, false, false, false, false};
}

// "text|#id(text)|..." for comparison at a glance.
std::string shown(const text::AddedMatcher& matcher, std::string_view text,
                  bool skip_control = false) {
  std::vector<text::AddedPiece> pieces;
  matcher.split(text, skip_control, pieces);
  std::string out;
  for (const text::AddedPiece& piece : pieces) {
    if (!out.empty()) out += '|';
    out += piece.id < 0 ? std::string(piece.text)
                        : "#" + std::to_string(piece.id) + "(" + std::string(piece.text) + ")";
  }
  return out;
}

}  // namespace

TEST_CASE("the leftmost and then the longest content wins") {
  const text::AddedMatcher matcher({entry("<a>", 1), entry("<a>x", 2), entry("a>x", 3),
                                    entry("<", 4), entry("ab", 5), entry("abcd", 6)});
  CHECK(shown(matcher, "<a>") == "#1(<a>)");
  CHECK(shown(matcher, "<a>xy") == "#2(<a>x)|y");
  CHECK(shown(matcher, "<a") == "#4(<)|a");
  CHECK(shown(matcher, "zabcz") == "z|#5(ab)|cz");
  CHECK(shown(matcher, "abcd<<") == "#6(abcd)|#4(<)|#4(<)");
  CHECK(shown(matcher, "") == "");
  CHECK(shown(text::AddedMatcher({}), "abc") == "abc");
}

TEST_CASE("flags reject a match or take the white space around it") {
  auto word = entry("word", 1);
  word.single_word = true;
  auto left = entry("<l>", 2), right = entry("<r>", 3);
  left.lstrip = true;
  right.rstrip = true;
  const text::AddedMatcher matcher({word, left, right});
  CHECK(shown(matcher, "word") == "#1(word)");
  CHECK(shown(matcher, "swords word.") == "swords |#1(word)|.");
  CHECK(shown(matcher, "word_ \u00E9word word\u0301") == "word_ \u00E9word word\u0301");
  CHECK(shown(matcher, "\u3000word-") == "\u3000|#1(word)|-");
  CHECK(shown(matcher, "a \u3000\t<l> b") == "a|#2( \u3000\t<l>)| b");
  CHECK(shown(matcher, "a <r>\n\u2003 b") == "a |#3(<r>\n\u2003 )|b");
  CHECK(shown(matcher, "<r>  <l>") == "#3(<r>  )|#2(<l>)");
  CHECK(shown(matcher, "\xFFword\x80") == "\xFF|#1(word)|\x80");
}

TEST_CASE("control tokens can be left in the text") {
  auto control = entry("<|x|>", 1);
  control.control = true;
  const text::AddedMatcher matcher({control, entry("  ", 2)});
  CHECK(shown(matcher, "a<|x|>  b") == "a|#1(<|x|>)|#2(  )|b");
  CHECK(shown(matcher, "a<|x|>  b", true) == "a<|x|>|#2(  )|b");
}

TEST_CASE("a content that is a long prefix of the text does not make matching slow") {
  const text::AddedMatcher matcher(
      {entry(std::string(text::kMostAddedBytes, 'a') + "b", 1), entry("a", 2)});
  std::vector<text::AddedPiece> pieces;
  matcher.split(std::string(20000, 'a'), false, pieces);
  CHECK(pieces.size() == 20000);
}
