#include "text/normalizer.hpp"

#include "base/error.hpp"
#include "catch.hpp"

using namespace quern;

namespace {

std::string normal(const std::vector<std::string>& steps, std::string_view text) {
  return text::Normalizer(steps, "test").apply(text);
}

}  // namespace

TEST_CASE("the steps of a normalizer") {
  CHECK(normal({}, "a\u0301") == "a\u0301");
  CHECK(normal({"nfc"}, "a\u0301\u212B") == "\u00E1\u00C5");
  CHECK(normal({"nfd"}, "\u00E1\uAC00") == "a\u0301\u1100\u1161");
  CHECK(normal({"nfkc"}, "\uFB01\u00BD") == "fi1\u20442");
  CHECK(normal({"nfkd"}, "\uFB01\u00E1") == "fia\u0301");
  CHECK(normal({"lowercase"}, "\u0130\u03A3A\u0392") == "i\u0307\u03C3a\u03B2");
  CHECK(normal({"nfd", "strip_accents"}, "\u00E9\u20DD") == "e");
  // Marks since Unicode 10 stay; two letters since Unicode 12 were marks before.
  CHECK(normal({"strip_accents"}, "a\u07FDb\u0AFAc\u1CF2d\u0301e") == "a\u07FDb\u0AFAcde");
  CHECK(normal({"strip_left"}, " \u3000 a ") == "a ");
  CHECK(normal({"strip_right"}, " a \n") == " a");
  CHECK(normal({"prepend:\u2581"}, "a") ==
        "\u2581"
        "a");
  CHECK(normal({"prepend:\u2581"}, "") == "");
  CHECK(normal({"replace/ /_/"}, "a b  c") == "a_b__c");
  CHECK(normal({"replace|//||"}, "a//b///") == "ab/");
}

TEST_CASE("clean-up, ideographs, marks, patterns") {
  CHECK(normal({"clean_text"}, std::string_view("a\0\x01\t\u0085\uFFFD\u00A0b\u200C", 15)) ==
        "a  b");
  CHECK(normal({"space_ideographs"}, "a\u5B57\u3042") == "a \u5B57 \u3042");
  CHECK(normal({"strip_marks"}, "\u00E9\u20DDx") == "e\u20DDx");
  CHECK(normal({"nmt"}, "a\x07\n\u200B\u2581\u00A0") == "a   \u00A0");
  CHECK(normal({"replace_regex/ {2,}/_/"}, "a b   c") == "a b_c");
  CHECK(normal({"byte_alphabet"}, " \u00E9") == "\u0120\u00C3\u00A9");
}

TEST_CASE("a normalizer says whether the start of the text is what it was") {
  const auto kept = [](const std::vector<std::string>& steps, std::string_view text) {
    return text::Normalizer(steps, "test").run(text).start_kept;
  };
  CHECK(kept({"nfkc", "lowercase", "prepend:_", "replace/ /_/", "strip_right"}, " \uFB01 "));
  CHECK(kept({"strip_left"}, "a "));
  CHECK_FALSE(kept({"strip_left"}, " a"));
  CHECK_FALSE(kept({"clean_text"},
                   "\x01"
                   "a"));
  CHECK(kept({"clean_text"}, "a\x01"));
  CHECK_FALSE(kept({"replace/ab/x/"}, "abc"));
  CHECK(kept({"replace/a/xy/"}, "abc"));
}

namespace {

// A compiled map with one key of one byte: a double array of units, then the texts.
std::string map_of(char key, std::string_view text) {
  const auto byte = static_cast<unsigned char>(key);
  std::vector<std::uint32_t> units(512);
  units[0] = 1u << 10;                           // children at 0 ^ 1
  units[1u ^ byte] = byte | 1u << 8 | 2u << 10;  // a value at its place ^ 2
  units[1u ^ byte ^ 2u] = 1u << 31 | 0;
  std::string out(4, '\0');
  const auto bytes = static_cast<std::uint32_t>(units.size() * 4);
  for (int i = 0; i < 4; ++i) out[static_cast<std::size_t>(i)] = static_cast<char>(bytes >> 8 * i);
  for (const std::uint32_t unit : units)
    for (int i = 0; i < 4; ++i) out += static_cast<char>(unit >> 8 * i);
  return out.append(text) + '\0';
}

}  // namespace

TEST_CASE("character maps: whole clusters, longest prefixes, damage") {
  const std::string map = map_of('e', "EE");
  const auto run = [&](const char* step, std::string_view text) {
    return text::Normalizer({step}, "test", map).apply(text);
  };
  CHECK(run("charsmap", "be") == "bEE");
  CHECK(run("charsmap", "e\u0301x") == "EEx");  // the cluster becomes what its first key says
  CHECK(run("charsmap", "e\u0301\u0302\u0303") == "EE\u0301\u0302\u0303");  // too long for that
  CHECK(run("sentencepiece", "e\u0301 x") == "EE\u0301\u2581x");
  CHECK(run("sentencepiece-prefix-trim", "  e   x  ") ==
        "\u2581"
        "EE\u2581x");
  CHECK(run("sentencepiece-prefix", " x ") == "\u2581\u2581x\u2581");
  CHECK(run("sentencepiece-trim", "   ").empty());
  CHECK(run("sentencepiece", "\xFFx") == "\uFFFDx");
  for (std::size_t size = 0; size < map.size(); size += 37) {
    const std::string cut = map.substr(0, size);
    try {
      text::Normalizer({"charsmap"}, "test", cut).apply("be");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::input);
    }
  }
  for (const char* step : {"charsmap", "sentencepiece-trim-trim", "sentencepiece-x"})
    CHECK_THROWS_AS(text::Normalizer({step}, "test"), base::Error);
}

TEST_CASE("bytes that are not UTF-8 pass through") {
  CHECK(normal({"nfc"},
               "\xFF"
               "a\u0301\x80") == "\xFF\u00E1\x80");
  CHECK(normal({"lowercase"}, "A\xC3") == "a\xC3");
}

TEST_CASE("a replace step can spell any two texts") {
  for (const auto& [from, to] :
       {std::pair("/", "|"), std::pair("/|#", "!~@%"), std::pair("a", "")}) {
    const std::string step = text::replace_step(from, to);
    CHECK(normal({step}, std::string("x") + from + "y") == std::string("x") + to + "y");
  }
}

TEST_CASE("unknown steps are input errors") {
  for (const char* step : {"nfx", "", "replace", "replace/", "replace//x/", "replace/a/b",
                           "replace/a/b/c", "Prepend:"})
    CHECK_THROWS_AS(text::Normalizer({step}, "test"), base::Error);
}
