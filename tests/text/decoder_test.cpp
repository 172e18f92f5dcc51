#include "text/decoder.hpp"

#include "base/error.hpp"
#include "catch.hpp"

using namespace quern;

namespace {

using Strings = std::vector<std::string>;

// The text of tokens, and what each push gave.
struct Decoded {
  std::string text;
  Strings chunks;
};

Decoded decode(const Strings& steps, const Strings& tokens) {
  const text::Decoder decoder(steps, false, "test");
  text::Decoder::Stream stream(decoder);
  Decoded out;
  for (const std::string& token : tokens) out.chunks.push_back(stream.push(token));
  out.chunks.push_back(stream.finish());
  for (const std::string& chunk : out.chunks) out.text += chunk;
  return out;
}

const std::string kMark = "\xE2\x96\x81", kBroken = "\xEF\xBF\xBD";
const Strings kPieces = {"replace/" + kMark + "/ /", "byte_fallback", "fuse", "strip/ /1/0/"};

}  // namespace

TEST_CASE("one leading space is stripped of the text, not of each chunk") {
  CHECK(decode(kPieces, {kMark + "a", kMark + "b", kMark + "c"}).text == "a b c");
  CHECK(decode(kPieces, {kMark, kMark + "b"}).text == " b");
  CHECK(decode(kPieces, {"a", kMark + "b"}).chunks == Strings{"a", " b", ""});
  CHECK(decode(kPieces, {}).text.empty());
}

TEST_CASE("a run of byte tokens is text when it has ended, or one U+FFFD a token") {
  CHECK(decode(kPieces, {"<0xE5>", "<0xAD>", "<0x97>", "x"}).chunks ==
        Strings{"", "", "", "\u5B57x", ""});
  CHECK(decode(kPieces, {"<0xE5>", "<0xAD>"}).chunks == Strings{"", "", kBroken + kBroken});
  CHECK(decode({"byte_fallback"}, {"<0x41>", "<0xFF>"}).text == kBroken + kBroken);
  CHECK(decode({"byte_runs"}, {"<0x41>", "<0xFF>"}).text == "A" + kBroken);
  CHECK(decode({"byte_fallback"}, {"<0x4G>", "<0x4>", "<0x41>"}).text == "<0x4G><0x4>A");
}

TEST_CASE("word pieces, word ends, marks and spaces") {
  CHECK(decode({"word_pieces/##/"}, {"a", "##b", "c", "."}).text == "ab c .");
  CHECK(decode({"word_pieces-cleanup/##/"}, {"do", "not", ".", "it", "'s"}).text == "do not. it's");
  CHECK(decode({"word_ends|</w>|"}, {"ab</w>", "c", "d</w>"}).chunks ==
        Strings{"", "ab ", "c", "d"});
  CHECK(decode({"metaspace:" + kMark}, {kMark + "a" + kMark, kMark + "b"}).text == "a b");
  CHECK(decode({"metaspace-never:" + kMark}, {kMark + "a", kMark + "b"}).text == " a b");
  CHECK(decode({"first_space-one:" + kMark}, {kMark, kMark + "b"}).text == " b");
  CHECK(decode({"first_space-all:" + kMark}, {kMark, kMark + "b"}).text == "b");
  CHECK(decode({"join_spaces"}, {"a", "b"}).text == "a b");
  CHECK(decode({"whole/<unk>/ ? /"}, {"<unk>", "<unk>x"}).text == " ? <unk>x");
  CHECK(decode({"byte_level"}, {"\u0120a", "\u00E9\U0001F600"}).text == " a\u00E9\U0001F600");
}

TEST_CASE("steps behind fuse see one text, whatever the chunks") {
  CHECK(decode({"fuse", "replace/ab/-/"}, {"a", "b", "ab"}).text == "--");
  CHECK(decode({"replace/ab/-/"}, {"a", "b", "ab"}).text == "ab-");
  CHECK(decode({"fuse", "strip/ /2/1/"}, {" ", "  a", " ", " ", "b", "  "}).text == " a  b ");
  CHECK(decode({"strip/ /2/1/"}, {"   a  ", " "}).text == " a ");
  CHECK(decode({"fuse", "strip/ /1/1/"}, {" "}).text.empty());
  CHECK(decode({"fuse", "replace_regex/[ab]+/-/"}, {"a", "b", "cab"}).text == "-c-");
}

TEST_CASE("unknown decoder steps are refused by name") {
  for (const char* step : {"", "fuze", "strip/ /x/1/", "strip/ /1/", "replace//x/", "replace/x/",
                           "metaspace:", "word_ends//", "replace_regex/(/x/"}) {
    INFO(step);
    CHECK_THROWS_AS(text::Decoder({step}, false, "test"), base::Error);
  }
}
