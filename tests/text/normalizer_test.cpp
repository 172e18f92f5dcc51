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
  CHECK(normal({"strip_left"}, " \u3000 a ") == "a ");
  CHECK(normal({"strip_right"}, " a \n") == " a");
  CHECK(normal({"prepend:\u2581"}, "a") ==
        "\u2581"
        "a");
  CHECK(normal({"prepend:\u2581"}, "") == "");
  CHECK(normal({"replace/ /_/"}, "a b  c") == "a_b__c");
  CHECK(normal({"replace|//||"}, "a//b///") == "ab/");
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
