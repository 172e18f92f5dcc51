#include "terminal/line_editor.hpp"

#include "catch.hpp"

using namespace quern::terminal;

namespace {

// Bytes of a keyboard through decoder and editor; the outcome of the last key that was no editing.
struct Typist {
  History history;
  Completer completer;
  LineMode mode = LineMode::single;
  KeyDecoder decoder;
  std::optional<LineEditor> made;

  LineEditor& editor() {
    if (!made) made.emplace(history, completer, mode);
    return *made;
  }
  Outcome type(std::string_view bytes) {
    Outcome last = Outcome::editing;
    for (const KeyEvent& event : decoder.push(bytes))
      if (const Outcome outcome = editor().key(event); outcome != Outcome::editing) last = outcome;
    return last;
  }
  // With a | where the cursor stands.
  std::string state() {
    const View view = editor().view("> ", ". ");
    std::string text = view.text;
    return text.insert(view.cursor, "|");
  }
};

std::string typed(std::string_view bytes) {
  Typist typist;
  typist.type(bytes);
  return typist.state();
}

}  // namespace

TEST_CASE("emacs keys edit the text as they do elsewhere") {
  struct Case {
    std::string_view keys, state;
  };
  const Case cases[] = {
      {"abc", "abc|"},
      {"abc\x01x", "x|abc"},
      {"abc\x01\x05x", "abcx|"},
      {"abc\x02\x02x", "ax|bc"},
      {"abc\x01\x06x", "ax|bc"},
      {"abc\x1b[D\x1b[Dx", "ax|bc"},
      {"abc\x1bOD\x1bOCx", "abcx|"},
      {"abc\x1b[Hx\x1b[Fy", "xabcy|"},
      {"abc\x1b[1~\x1b[3~", "|bc"},
      {"abc\x01\x04", "|bc"},
      {"abc\x7f", "ab|"},
      {"abc\x08", "ab|"},
      {"one two three\x17", "one two |"},
      {"one two three\x17\x17", "one |"},
      {"one two three\x17\x17\x19", "one two three|"},
      {"one two\x01\x0b\x19\x19", "one twoone two|"},
      {"one two\x15xx\x19", "xxone two|"},
      {"one two\x1b" "bx", "one x|two"},
      {"one two\x01\x1b" "fx", "onex| two"},
      {"one two\x01\x1b" "d", "| two"},
      {"a/b/c\x1b\x7f", "a/b/|"},
      {"a/b/c\x17", "|"},
      {"abc\x14", "acb|"},
      {"abc\x02\x02\x14", "ba|c"},
      {"one two\x1b[1;5Dx", "one x|two"},
      {"one two\x1b[1;3D\x1b[1;3Dx", "x|one two"},
      {"abc\x1b[99Zd", "abcd|"},        // unknown sequences are nothing
      {"abc\x1b[200", "abc|"},          // a sequence that has not ended
      {"abc\x1f", "|"},                 // undo
      {"one two\x17\x1f", "one two|"},
      {"first\x15second\x15\x19\x1by", "first|"},
      {"\xC3\xA9\xE5\xAD\x97\xF0\x9F\x98\x80\x7f", "\xC3\xA9\xE5\xAD\x97|"},
      {"e\xCC\x81x\x02\x7f", "|x"},     // a mark goes with its letter
      {"a\xFF" "b", "a\xEF\xBF\xBD" "b|"},
      {"a\xC3" "b", "a\xEF\xBF\xBD" "b|"},
      {"a\x1b\rb", "a\nb|"},
      {"a\x1b[13;2ub", "a\nb|"},
      {"ab\x1b\rcd\x01x", "ab\nx|cd"},
      {"ab\x1b\rcd\x1b[Ax", "abx|\ncd"},
      {"ab\x1b\rcd\x10\x1b[A\x01\x1b[Bx", "ab\nx|cd"},
      {"ab\x1b\rcd\x02\x02\x0b\x0b", "ab\n|"},
      {"ab\x1b\rcd\x1b[A\x0b", "ab|cd"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.keys);
    CHECK(typed(c.keys) == c.state);
  }
}

TEST_CASE("keys cut anywhere act as keys that came at once") {
  const std::string keys = "one \xE5\xAD\x97 two\x1b[D\x1b[1;5D\x1b[200~p\rq\x1b[201~\x1bOHx\x1b[3~";
  Typist typist;
  for (const char byte : keys) typist.type({&byte, 1});
  CHECK(typist.state() == typed(keys));
}

TEST_CASE("a paste is text: line ends stay, control characters go, nothing is sent") {
  Typist typist;
  CHECK(typist.type("\x1b[200~one\r\ntwo\rthree\x03\x04\x1b[D\tx\x1b[201~!") == Outcome::editing);
  CHECK(typist.state() == "one\ntwo\nthree[D\tx!|");
  CHECK(typist.type("\r") == Outcome::accepted);

  Typist large;
  const std::string much(KeyDecoder::kMaxPasteBytes + 100000, 'y');
  large.type("\x1b[200~" + much + "\x1b[201~z");
  CHECK(large.editor().text().size() <= EditBuffer::kMaxBytes);
  CHECK(large.type("\x15" "ok\r") == Outcome::accepted);
}

TEST_CASE("outcomes of the control keys") {
  CHECK(Typist{}.type("\x04") == Outcome::leave);
  CHECK(Typist{}.type("a\x04") == Outcome::editing);
  CHECK(Typist{}.type("abc\x03") == Outcome::cleared);
  CHECK(Typist{}.type("abc\x1a") == Outcome::suspend);
  CHECK(Typist{}.type("abc\x0c") == Outcome::clear_screen);
  CHECK(Typist{}.type("abc\x07") == Outcome::open_editor);
  CHECK(Typist{}.type("abc\r") == Outcome::accepted);
  CHECK(Typist{}.type("abc\n") == Outcome::accepted);
  CHECK(Typist{}.type("abc\\\r") == Outcome::editing);
  CHECK(Typist{}.type("abc\\\rdef\r") == Outcome::accepted);
  CHECK(Typist{}.type("\"\"\"abc\r\rdef\r") == Outcome::editing);
  CHECK(Typist{}.type("\"\"\"abc\r\rdef\"\"\"\r") == Outcome::accepted);
}

TEST_CASE("history is walked, searched, and leaves the text of one's own alone") {
  Typist typist;
  for (const char* entry : {"alpha", "beta\ngamma", "delta"}) typist.history.add(entry);
  typist.type("mine\x1b[A");
  CHECK(typist.state() == "delta|");
  typist.type("\x10");
  CHECK(typist.state() == "beta\ngamma|");
  typist.type("\x1b[A");  // within the entry first
  CHECK(typist.state() == "beta|\ngamma");
  typist.type("\x1b[A");
  CHECK(typist.state() == "alpha|");
  typist.type("\x1b[A");
  CHECK(typist.state() == "alpha|");
  typist.type("\x1b[B\x0e\x0e");
  CHECK(typist.state() == "mine|");
  typist.type("\x1b<");
  CHECK(typist.state() == "alpha|");
  typist.type("\x1b>");
  CHECK(typist.state() == "mine|");

  typist.type("\x12" "a");
  CHECK(typist.state() == "delta|");
  CHECK(typist.editor().view("> ", ". ").prompt == "(search) 'a': ");
  typist.type("\x12");
  CHECK(typist.state() == "beta\ngamma|");
  typist.type("lph");  // "alph"
  CHECK(typist.state() == "alpha|");
  typist.type("q");
  CHECK(typist.editor().view("> ", ". ").prompt == "(no match) 'alphq': ");
  typist.type("\x7f");
  CHECK(typist.type("\r") == Outcome::accepted);
  CHECK(typist.editor().text() == "alpha");
  typist.editor().restart();
  typist.type("own\x12" "delta\x07");
  CHECK(typist.state() == "own|");
}

TEST_CASE("Tab puts in what candidates share, then shows them") {
  Typist typist;
  typist.completer = [](std::string_view before) {
    return Completion{0, matching({"/clear", "/context", "/edit"}, before), true};
  };
  typist.type("/c\t");
  CHECK(typist.state() == "/c|");
  CHECK(typist.editor().view("", "").below == std::vector<std::string>{"/clear", "/context"});
  typist.type("o\t");
  CHECK(typist.state() == "/context |");
  CHECK(typist.editor().view("", "").below.empty());
  typist.type("\t");
  CHECK(typist.state() == "/context |");
}

TEST_CASE("random bytes never leave the editor in half a character") {
  unsigned seed = 1;
  for (int round = 0; round < 300; ++round) {
    Typist typist;
    typist.history.add("old \xE5\xAD\x97");
    typist.completer = [](std::string_view) { return Completion{0, {"x\xC3\xA9", "x\xC3\xAA"}, true}; };
    std::string bytes;
    for (int i = 0; i < 200; ++i) {
      seed = seed * 1664525 + 1013904223;
      bytes += static_cast<char>(seed >> 24);
      if (seed % 7 == 0) bytes += "\x1b[A\xC3\xA9";
    }
    typist.type(bytes);
    const View view = typist.editor().view("> ", ". ");
    REQUIRE(view.cursor <= view.text.size());
    REQUIRE((view.cursor == view.text.size() || (static_cast<unsigned char>(view.text[view.cursor]) & 0xC0) != 0x80));
    lay_out(view, 1 + seed % 90);
  }
}
