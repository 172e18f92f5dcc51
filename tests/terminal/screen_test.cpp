#include "terminal/screen.hpp"

#include "catch.hpp"
#include "terminal/width.hpp"

using namespace quern::terminal;

namespace {

View view_of(std::string text, std::size_t cursor) { return {"> ", ". ", std::move(text), cursor, {}}; }

}  // namespace

TEST_CASE("rows are broken at the width, wide characters never in half") {
  Layout layout = lay_out(view_of("abcdefghij", 10), 10);
  CHECK(layout.rows == std::vector<std::string>{"> abcdefgh", "ij"});
  CHECK(layout.cursor_row == 1);
  CHECK(layout.cursor_column == 2);

  layout = lay_out(view_of("abcdefgh", 8), 10);  // a full row: the cursor is in the next
  CHECK(layout.rows == std::vector<std::string>{"> abcdefgh", ""});
  CHECK(layout.cursor_row == 1);

  layout = lay_out(view_of("abcdefg\xE5\xAD\x97", 7), 10);
  CHECK(layout.rows == std::vector<std::string>{"> abcdefg", "\xE5\xAD\x97"});

  layout = lay_out(view_of("a\n\nb", 2), 20);
  CHECK(layout.rows == std::vector<std::string>{"> a", ". ", ". b"});
  CHECK(layout.cursor_row == 1);
  CHECK(layout.cursor_column == 2);
}

TEST_CASE("nothing of the text reaches the terminal as a control character") {
  const Layout layout = lay_out(view_of("a\x1b[31m\xC2\x9B\x07\xE2\x80\xAEz\xFF", 0), 80);
  CHECK(layout.rows.front() == "> a\\x1b[31m\\xc2\\x9b\\x07\\xe2\\x80\\xaez\\xff");
  CHECK(columns_of("e\xCC\x81") == 1);
  CHECK(columns_of("\xE5\xAD\x97\xE5\xAD\x97") == 4);
  CHECK(columns_of("\xF0\x9F\x98\x80") == 2);
}

TEST_CASE("the screen goes back over what it drew, also after the terminal was made narrower") {
  Screen screen({10, 24});
  CHECK(screen.draw(view_of("abcdefghij", 10)).starts_with("\r\x1b[J> abcdefgh\r\nij"));
  CHECK(screen.draw(view_of("x", 1)).starts_with("\r\x1b[1A\x1b[J> x"));
  screen.draw(view_of("abcdefghij", 10));
  screen.resize({5, 24});  // the full row is two rows now
  CHECK(screen.erase().starts_with("\r\x1b[2A\x1b[J"));
}

TEST_CASE("of more rows than the terminal has those around the cursor are drawn") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  Screen screen({20, 6});
  const std::string end = screen.draw(view_of(text, text.size()));
  CHECK(end.find("line 99") != std::string::npos);
  CHECK(end.find("line 50\r") == std::string::npos);
  const std::string start = screen.draw(view_of(text, 0));
  CHECK(start.find("line 0") != std::string::npos);
  CHECK(start.find("line 99") == std::string::npos);
  // What leaves is whole.
  const std::string left = screen.leave(view_of(text, 0));
  CHECK(left.find("line 0\r") != std::string::npos);
  CHECK(left.find("line 99\r") != std::string::npos);
}

TEST_CASE("a line that does not fit says so") {
  CHECK(fit_columns("abcdef", 6) == "abcdef");
  CHECK(fit_columns("abcdefg", 6) == "abc...");
  CHECK(fit_columns("\xE5\xAD\x97\xE5\xAD\x97\xE5\xAD\x97\xE5\xAD\x97", 7) == "\xE5\xAD\x97\xE5\xAD\x97...");
  CHECK(fit_columns("ab\ncd", 6) == "ab...");
}
