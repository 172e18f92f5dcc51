#include "text/tokenizer.hpp"

#include <random>

#include "base/error.hpp"
#include "catch.hpp"
#include "tables.hpp"

using namespace quern;
using Ids = std::vector<std::int32_t>;

namespace {

struct Made {
  contract::TokenizerDescription description;
  std::vector<std::byte> tables;
  text::Tokenizer tokenizer() const { return text::Tokenizer(description, tables, "test"); }
};

constexpr std::int32_t kBos = 1000, kEnd = 1001, kThink = 1002, kSpaces = 1003, kWord = 1004;

Made make() {
  Made made;
  contract::TokenizerDescription& d = made.description;
  d.model = "bpe";
  d.byte_level = true;
  d.decoders = {"byte_level"};
  d.pre_tokenizers = {"gpt2"};
  d.prefix_ids = {kBos};
  d.prefix_types = {0};
  d.suffix_ids = {kEnd};
  d.suffix_types = {0};
  d.added = {{"<|bos|>", kBos, true, false, false, false, false},
             {"</s>", kEnd, true, false, false, false, false},
             {"<think>", kThink, false, true, false, false, false},
             {"   ", kSpaces, false, false, false, false, false},
             {"Dokument", kWord, false, true, false, false, false}};
  made.tables = text::build_tokenizer_tables(learned_vocabulary(kLearnedText, 100));
  return made;
}

}  // namespace

TEST_CASE("decode gives back any bytes that were encoded") {
  const Made made = make();
  const text::Tokenizer tokenizer = made.tokenizer();
  std::mt19937 random(31);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (unsigned n = random() % 50; n > 0; --n) {
      switch (random() % 5) {
        case 0:
          text += static_cast<char>(random());
          break;
        case 1:
          text += kLearnedText.substr(random() % 100, random() % 9);
          break;
        case 2:
          text += made.description.added[random() % 5].content;
          break;
        case 3:
          text += "\u5B57\U0001F600";
          break;
        default:
          text += std::string(random() % 4, ' ');
      }
    }
    const text::EncodeOptions options{false, random() % 2 == 0};
    REQUIRE(tokenizer.decode(tokenizer.encode(text, options)) == text);
  }
}

TEST_CASE("text that is not parsed for control tokens never gives one") {
  Made made = make();
  made.description.ignore_merges = true;
  const text::Tokenizer tokenizer = made.tokenizer();
  const auto count = [&](std::string_view text, std::int32_t id, bool parse) {
    const Ids ids = tokenizer.encode(text, {false, parse});
    return std::count(ids.begin(), ids.end(), id);
  };
  const std::string text = "<|bos|>the <think>x</think></s>   Dokument<|bos|>";
  for (const std::int32_t control : {kBos, kEnd, kThink}) {
    CHECK(count(text, control, true) > 0);
    CHECK(count(text, control, false) == 0);
  }
  for (const std::int32_t plain : {kSpaces, kWord}) CHECK(count(text, plain, false) == 1);
}

TEST_CASE("elements of HTML are words of a text, markup is not") {
  Made made = make();
  std::int32_t id = 1005;
  const std::vector<std::string> words = {"<b>", "</table>", "<h1>"}, markup = {"<tool_call>", "</think>", "<|b|>", "[INST]"};
  for (const auto* list : {&words, &markup})
    for (const std::string& content : *list) made.description.added.push_back({content, id++, false, false, false, false, false});
  made.description.added.push_back({"<i>", id, true, false, false, false, false});  // a flag decides before the look
  const text::Tokenizer tokenizer = made.tokenizer();
  for (const std::string& content : words) {
    CHECK(tokenizer.encode(content, {false, false}) == Ids{tokenizer.id_of(content)});
    CHECK_FALSE(tokenizer.is_control(tokenizer.id_of(content)));
  }
  for (const std::string& content : markup) CHECK(tokenizer.is_control(tokenizer.id_of(content)));
  CHECK(tokenizer.is_control(id));
}

TEST_CASE("prefix, suffix, special tokens") {
  const Made made = make();
  const text::Tokenizer tokenizer = made.tokenizer();
  CHECK(tokenizer.encode("") == Ids{kBos, kEnd});
  CHECK(tokenizer.encode("", {false, true}).empty());
  CHECK(tokenizer.encode("<|bos|>", {false, true}) == Ids{kBos});
  CHECK(tokenizer.decode({kBos, 'a', kThink, 1 << 20, -5, kEnd}) == "<|bos|>a<think></s>");
  CHECK(tokenizer.decode({kBos, 'a', kThink, kEnd}, true) == "a<think>");
  CHECK(tokenizer.is_special(kBos));
  CHECK_FALSE(tokenizer.is_special(kThink));
  CHECK_FALSE(tokenizer.is_special('a'));
  CHECK(tokenizer.id_of("</s>") == kEnd);
  CHECK(tokenizer.id_of("a") == 'a');
  CHECK(tokenizer.id_of("no such") == -1);
  CHECK(tokenizer.size() == kWord + 1);
}

TEST_CASE("a normalizer acts on text and on the tokens that ask for it, not on the others") {
  Made made = make();
  made.description.normalizers = {"lowercase"};
  const text::Tokenizer tokenizer = made.tokenizer();
  CHECK(tokenizer.encode("DOKUMENT", {false, true}) == Ids{kWord});
  CHECK(tokenizer.encode("<THINK>", {false, true}) == Ids{kThink});
  CHECK(tokenizer.encode("</S>", {false, true}) != Ids{kEnd});
  CHECK(tokenizer.decode(tokenizer.encode("ABC</s>DEF", {false, true})) == "abc</s>def");
}

TEST_CASE("odd prompts have a defined result") {
  const Made made = make();
  const text::Tokenizer tokenizer = made.tokenizer();
  const std::string_view texts[] = {"",
                                    " ",
                                    "   ",
                                    "\r\n",
                                    "\xEF\xBB\xBF"
                                    "bom",
                                    std::string_view("a\0b", 3),
                                    "\xC0\x80",
                                    "\xED\xA0\x80"};
  for (const std::string_view text : texts)
    CHECK(tokenizer.decode(tokenizer.encode(text, {false, true})) == text);
}

TEST_CASE("descriptions that disagree with themselves or the tables are refused") {
  const auto refused = [](auto change) {
    Made made = make();
    change(made.description);
    try {
      made.tokenizer();
    } catch (const base::Error& error) {
      return error.code() == base::ExitCode::input;
    }
    return false;
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& d) { d.model = "unigram"; }));
  CHECK(refused([](auto& d) { d.decoders = {"metaspace"}; }));
  CHECK(refused([](auto& d) { d.pre_tokenizers = {"gpt9"}; }));
  CHECK(refused([](auto& d) { d.normalizers = {"nfz"}; }));
  CHECK(refused([](auto& d) { d.add_prefix_space = true; }));
  CHECK(refused([](auto& d) { d.prefix_ids = {5000}; }));
  CHECK(refused([](auto& d) { d.suffix_ids = {-1}; }));
  CHECK(refused([](auto& d) { d.unk_id = 1 << 25; }));
  CHECK(refused([](auto& d) { d.added[0].id = -1; }));
  CHECK(refused([](auto& d) { d.added[0].content = ""; }));
  CHECK(refused([](auto& d) { d.added[0].content = std::string(2000, 'x'); }));
}

namespace {

// "a{b}c": the bytes in braces are untrusted.
base::MarkedText marked(std::string_view text) {
  base::MarkedText out;
  for (const char c : text) {
    if (c == '{') out.untrusted.push_back({out.text.size(), out.text.size()});
    else if (c == '}') out.untrusted.back().end = out.text.size();
    else out.text += c;
  }
  return out;
}

}  // namespace

TEST_CASE("control tokens of a marked text are those that lie wholly in trusted bytes") {
  const Made made = make();
  const text::Tokenizer tokenizer = made.tokenizer();
  const text::EncodeOptions plain{.add_special = false, .parse_special = false};
  const auto both = [&](std::string_view text) { return tokenizer.encode(text, {.add_special = false}); };
  // Without user text, and with harmless user text: as one unbroken text.
  CHECK(tokenizer.encode(marked("<|bos|>hello world</s>")) == both("<|bos|>hello world</s>"));
  CHECK(tokenizer.encode(marked("<|bos|>hel{lo wor}ld</s>")) == both("<|bos|>hello world</s>"));
  // A user's token is text; a piece of it is enough to spoil a match, and spoils no other.
  CHECK(tokenizer.encode(marked("{<|bos|>}")) == tokenizer.encode("<|bos|>", plain));
  CHECK(tokenizer.encode(marked("<|bos|{>}")) == tokenizer.encode("<|bos|>", plain));
  CHECK(tokenizer.encode(marked("{<}|bos|>")) == tokenizer.encode("<|bos|>", plain));
  CHECK(tokenizer.encode(marked("{<think>}")) == tokenizer.encode("<think>", plain));
  Ids want = tokenizer.encode("x<|bos|>", plain);
  want.push_back(kEnd);
  CHECK(tokenizer.encode(marked("{x<|bos|>}</s>")) == want);
  want = tokenizer.encode("<|bo", plain);
  want.push_back(kBos);
  CHECK(tokenizer.encode(marked("{<|bo}<|bos|>")) == want);
  // What is no control token is found anywhere.
  CHECK(tokenizer.encode(marked("{a   Dokument}")) == both("a   Dokument"));
}

TEST_CASE("a longer match that reaches into user text leaves the shorter one") {
  Made made = make();
  made.description.added.push_back({"</s>x", 1005, true, false, false, false, false});
  made.description.added.push_back({"y<|bos|>", 1006, true, false, false, false, false});
  const text::Tokenizer tokenizer = made.tokenizer();
  const text::EncodeOptions plain{.add_special = false, .parse_special = false};
  Ids want = {kEnd};
  const Ids x = tokenizer.encode("x", plain);
  want.insert(want.end(), x.begin(), x.end());
  CHECK(tokenizer.encode(marked("</s>{x}")) == want);
  CHECK(tokenizer.encode(marked("</s>x")) == Ids{1005});
  Ids end = tokenizer.encode("y", plain);
  end.push_back(kBos);
  CHECK(tokenizer.encode(marked("{y}<|bos|>")) == end);
}

TEST_CASE("marks survive a normalizer") {
  Made made = make();
  made.description.byte_level = true;
  made.description.normalizers = {"lowercase"};
  const text::Tokenizer tokenizer = made.tokenizer();  // <think> is searched in normalized text
  const text::EncodeOptions plain{.add_special = false, .parse_special = false};
  Ids want = tokenizer.encode("a<think>b", plain);
  want.push_back(kThink);
  CHECK(tokenizer.encode(marked("{a<think>b}<think>")) == want);
  want.insert(want.begin(), kThink);
  CHECK(tokenizer.encode(marked("<think>{a<think>b}<think>")) == want);
  // "<THINK>" becomes a token only by being normalized: the user's does not.
  want = {kThink};
  const Ids rest = tokenizer.encode("<think>", plain);
  want.insert(want.end(), rest.begin(), rest.end());
  CHECK(tokenizer.encode(marked("<think>{<THINK>}")) == want);
  CHECK(tokenizer.encode(marked("<think>A{b}")) == tokenizer.encode("<think>Ab", {.add_special = false}));
}
