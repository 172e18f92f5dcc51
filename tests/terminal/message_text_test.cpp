#include "terminal/message_text.hpp"

#include "catch.hpp"

using namespace quern::terminal;

TEST_CASE("what was typed is whole, or goes on in the next line") {
  struct Case {
    std::string_view typed;
    bool single, multi;
  };
  const Case cases[] = {
      {"hello", true, false},         {"", true, false},
      {"hello\\", false, true},       {"hello\\\\", true, false},
      {"hello\\\nworld", true, false}, {"\"\"\"", false, false},
      {"\"\"\"a", false, false},      {"\"\"\"a\"\"\"", true, true},
      {"\"\"\"\na\nb\n\"\"\"", true, true}, {"  \"\"\"a", false, false},
      {"\"\"\"a\"\"\" tail", false, false}, {"\"\"\"\"\"\"", true, true},
      {"/clear", true, true},         {"/system \"\"\"a", false, false},
      {"/system \"\"\"a\nb\"\"\"", true, true}, {"say \"\"\"x", true, false},
      {"//clear", true, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.typed);
    CHECK(is_complete(c.typed, LineMode::single) == c.single);
    CHECK(is_complete(c.typed, LineMode::multi) == c.multi);
  }
}

TEST_CASE("the text without its marks") {
  struct Case {
    std::string_view typed, text;
    bool command;
  };
  const Case cases[] = {
      {"hello", "hello", false},
      {"a\\\nb", "a\nb", false},
      {"a\\\nb\\", "a\nb", false},  // the input ended behind a mark
      {"a\nb", "a\nb", false},      // pasted
      {"\"\"\"a\nb\"\"\"", "a\nb", false},
      {"\"\"\"\n  a\nb\n\"\"\"", "  a\nb", false},
      {"\"\"\"a\\\nb\"\"\"", "a\\\nb", false},  // a block is taken as it is
      {"\"\"\"a", "a", false},                  // and one that never closed
      {"/clear  ", "/clear", true},
      {"/set temp 1", "/set temp 1", true},
      {"/system \"\"\"a\nb\"\"\"", "/system a\nb", true},
      {"//clear", "/clear", false},
      {"/* a comment\nof code */", "/* a comment\nof code */", false},
      {"\"\"\"/clear\"\"\"", "/clear", false},
      {"   ", "", false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.typed);
    const Typed typed = finished(c.typed, LineMode::single);
    CHECK(typed.text == c.text);
    CHECK(typed.command == c.command);
  }
  CHECK(finished("a\nb\\", LineMode::multi).text == "a\nb");
  CHECK(finished("a\\\nb\\", LineMode::multi).text == "a\\\nb");
}
