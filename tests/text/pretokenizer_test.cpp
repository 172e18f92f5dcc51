#include "text/pretokenizer.hpp"

#include <random>

#include "base/error.hpp"
#include "catch.hpp"
#include "text/regex.hpp"

using namespace quern;
using Words = std::vector<std::string>;

namespace {

Words words(const std::vector<std::string>& steps, std::string_view text) {
  Words out;
  text::PreTokenizer(steps, "test").run(text, [&](std::string_view word) {
    out.emplace_back(word);
  });
  return out;
}

std::string error_of(const std::vector<std::string>& steps) {
  try {
    text::PreTokenizer made(steps, "here");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the five behaviours of a split") {
  const char* text = "the-final--countdown-";
  CHECK(words({"regex-removed:-"}, text) == Words{"the", "final", "countdown"});
  CHECK(words({"regex:-"}, text) == Words{"the", "-", "final", "-", "-", "countdown", "-"});
  CHECK(words({"regex-merged_with_previous:-"}, text) ==
        Words{"the-", "final-", "-", "countdown-"});
  CHECK(words({"regex-merged_with_next:-"}, text) ==
        Words{"the", "-final", "-", "-countdown", "-"});
  CHECK(words({"regex-contiguous:-"}, text) == Words{"the", "-", "final", "--", "countdown", "-"});
  CHECK(words({"regex-removed-inverted:-"}, text) == Words{"-", "-", "-", "-"});
  CHECK(words({"punctuation-contiguous"}, "a--b") == Words{"a", "--", "b"});
  CHECK(words({"punctuation-isolated"}, "a--b") == Words{"a", "-", "-", "b"});
}

TEST_CASE("steps run in order, and smollm is digits then gpt2") {
  CHECK(words({"smollm"}, "ab12 c") == Words{"ab", "1", "2", " c"});
  CHECK(words({"smollm"}, "x  12's") == words({"digits", "gpt2"}, "x  12's"));
  CHECK(words({"prefix_space", "gpt2"}, "ab cd") == Words{" ab", " cd"});
  CHECK(words({"gpt2", "prefix_space"}, "ab'cd") == Words{" ab", " '", " cd"});
  // After byte_alphabet the steps see the spelling: byte 0xB2 of a continuation is a superscript
  // two there.
  CHECK(words({"byte_alphabet", "digits"}, "\xC3\xB2x") == Words{"\xC3", "\xB2", "x"});
  CHECK(words({"digits"}, "\xC3\xB2x") == Words{"\xC3\xB2x"});
}

TEST_CASE("nothing is lost by steps that only cut, whatever the bytes") {
  std::mt19937 random(9);
  const std::vector<std::vector<std::string>> all = {
      {"gpt2"},
      {"smollm"},
      {"llama3"},
      {"qwen2"},
      {R"(regex:\p{L}+|\s)"},
      {"punctuation-merged_with_next", "gpt2", "byte_alphabet", "digit_runs"}};
  for (const auto& steps : all) {
    const text::PreTokenizer made(steps, "test");
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      for (unsigned n = random() % 40; n > 0; --n)
        text.push_back(static_cast<char>(random() % 2 ? random() : 32 + random() % 90));
      std::string joined;
      made.run(text, [&](std::string_view word) {
        REQUIRE(!word.empty());
        joined += word;
      });
      REQUIRE(joined == text);
    }
  }
}

TEST_CASE("an unknown step or regex is an input error that quotes it") {
  for (const char* step : {"gpt5", "regex-sideways:a", "regex(", "", "punctuation-", "regex-:a"})
    CHECK(error_of({step}).find(*step ? step : "unknown") != std::string::npos);
  for (const char* pattern : {"(", "[a", "a{2}+", "[a&&b]", "(?<n", "\\", "[[^a]b]", "\\p{Nope}"})
    CHECK(error_of({std::string("regex:") + pattern}).find(pattern) != std::string::npos);
  CHECK(!error_of(std::vector<std::string>(33, "gpt2")).empty());
}

TEST_CASE("regexes keep Oniguruma's meaning") {
  CHECK(words({R"(regex-removed:\s)"},
              "a\u180E"
              "b\u0085"
              "c") == Words{"a\u180E"
                            "b",
                            "c"});  // U+180E is no space
  CHECK(words({R"(regex:[\s])"}, "a\u180E\u2003") == Words{"a\u180E", "\u2003"});
  CHECK(words({R"(regex:[a[bc]]+)"}, "xabcx") ==
        Words{"x", "abc", "x"});                                    // nested class is a union
  CHECK(words({R"(regex:\h+)"}, "xF0y") == Words{"x", "F0", "y"});  // hexadecimal digit
  CHECK(words({R"(regex:b$)"}, "ab\nab") == Words{"a", "b", "\na", "b"});  // $ ends lines
  CHECK(words({R"(regex:(?m:a.b))"}, "a\nb") == Words{"a\nb"});            // (?m) is dotall
  CHECK(words({R"(regex:\u0041)"}, "xAx") == Words{"x", "A", "x"});
  CHECK(words({std::string("regex:") + text::literal_pattern("a.[^-]\n|")}, "xa.[^-]\n|b") ==
        Words{"x", "a.[^-]\n|", "b"});
  CHECK(words({R"(regex:x*)"}, "axxb") == Words{"a", "xx", "b"});  // empty matches are passed over
}

TEST_CASE("a megabyte of one kind passes through a regex") {
  const std::string pattern =
      R"(regex:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}\p{M}]*[\p{Ll}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]+|\s*[\r\n]+|\s+(?!\S)|\s+|.)";
  for (const char* part : {"A", "a", " ", "\n", "\u5B57", "e\u0301", "^"}) {
    std::string text;
    while (text.size() < 1000000) text += part;
    std::size_t bytes = 0;
    text::PreTokenizer({pattern}, "test").run(text, [&](std::string_view word) {
      bytes += word.size();
    });
    CHECK(bytes == text.size());
  }
}

TEST_CASE("marks for spaces, by where the prefix goes and whether they cut") {
  const std::string m = "\xE2\x96\x81";
  CHECK(words({"metaspace-always:" + m}, "a b  c") == Words{m + "a", m + "b", m, m + "c"});
  CHECK(words({"metaspace-always:" + m}, " a") == Words{m + "a"});
  CHECK(words({"metaspace-never:" + m}, "a b") == Words{"a", m + "b"});
  CHECK(words({"metaspace-first-whole:" + m}, "a b") == Words{m + "a" + m + "b"});
  CHECK(words({"white_space-removed", "metaspace-first:" + m}, "a b") == Words{m + "a", "b"});
  CHECK(words({"white_space-removed", "metaspace-first:" + m}, " a b") == Words{"a", "b"});
  Words later;
  text::PreTokenizer({"metaspace-first:" + m}, "test")
      .run(
          "a", [&](std::string_view word) { later.emplace_back(word); }, false);
  CHECK(later == Words{"a"});
}

TEST_CASE("words, scripts, fixed lengths, white space") {
  CHECK(words({"words"}, "it's 1_000,x \u00E9\u0301!!") ==
        Words{"it", "'", "s", "1_000", ",", "x", "\u00E9\u0301", "!!"});
  CHECK(words({"scripts"}, "  ab \u5B57\u304B\u30AB x1") ==
        Words{"ab ", "\u5B57\u304B\u30AB ", "x", "1"});
  CHECK(words({"fixed_length:2"}, "a\u00E9bcd") == Words{"a\u00E9", "bc", "d"});
  CHECK(words({"white_space-removed"}, "\u3000 a\tb ") == Words{"a", "b"});
  CHECK(words({"white_space-merged_with_next"}, "a b") == Words{"a", " b"});
  for (const char* step : {"fixed_length:0", "fixed_length:", "fixed_length:2x", "metaspace-x:_",
                           "metaspace-always:", "white_space-", "words:"})
    CHECK(error_of({step}).find(step) != std::string::npos);
}
