#include "chat/thought_stream.hpp"

#include <random>

#include "catch.hpp"

using namespace quern::chat;

namespace {

using Pieces = std::vector<AnswerPiece>;

const ThoughtMarks kThink{"<think>", "</think>"};
const ThoughtMarks kChannels{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>",
                             true};
constexpr std::string_view kTool = "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>";

void append(Pieces& all, const Pieces& more) {
  for (const AnswerPiece& piece : more) {
    if (!all.empty() && all.back().thought == piece.thought)
      all.back().text += piece.text;
    else
      all.push_back(piece);
  }
}

Pieces parts(const ThoughtMarks& marks, bool opened, std::string_view text) {
  ThoughtStream stream(marks, opened);
  Pieces all = stream.push(text);
  append(all, stream.finish());
  return all;
}

struct Case {
  ThoughtMarks marks;
  bool opened;
  std::string_view text;
  Pieces pieces;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {kThink, false, "<think>\nwhy\n</think>\n\nso", {{true, "why"}, {false, "so"}}},
      {kThink, false, "\n <think>why</think>so", {{true, "why"}, {false, "so"}}},
      {kThink, true, "why\n\nnot\n</think>\n\n so\n", {{true, "why\n\nnot"}, {false, " so\n"}}},
      {kThink, true, "<think>\nwhy</think>so", {{true, "why"}, {false, "so"}}},
      {kThink, false, "plain", {{false, "plain"}}},
      {kThink, false, "  plain", {{false, "  plain"}}},
      {kThink, false, "the tag <think> is </think> text", {{false, "the tag <think> is </think> text"}}},
      {kThink, false, "<thin", {{false, "<thin"}}},
      {kThink, false, "<thin ice>", {{false, "<thin ice>"}}},
      {kThink, false, "<think>\n\n</think>\n\nso", {{false, "so"}}},
      {kThink, false, "<think>a < b </ c</think>so", {{true, "a < b </ c"}, {false, "so"}}},
      {kThink, false, "<think>cut off </thi", {{true, "cut off </thi"}}},
      {kThink, false, "<think>", {}},
      {kThink, false, "", {}},
      {kChannels, false, "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>so",
       {{true, "hm"}, {false, "so"}}},
      {kChannels, false, "<|channel|>final<|message|>so", {{false, "so"}}},
      {kChannels, false,
       "<|channel|>analysis<|message|>hm <|end|><|start|>assistant<|channel|>analysis<|message|> or\n\nso"
       "<|end|><|start|>assistant<|channel|>final<|message|>yes",
       {{true, "hm\n\nor\n\nso"}, {false, "yes"}}},
      {kChannels, false,
       "<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>analysis<|message|>hm<|end|><|start|>ass",
       {{true, "hm"}}},
      {kChannels, false,
       "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>analysis<|message|>\n"
       "<|end|><|start|>assistant<|channel|>final<|message|>",
       {{true, "hm"}}},
      {kChannels, false,
       "<|channel|>commentary<|message|>I look.\n<|end|><|start|>assistant<|channel|>analysis<|message|>hm"
       "<|end|><|start|>assistant<|channel|>final<|message|>\nyes\n",
       {{false, "I look.\n"}, {true, "hm"}, {false, "\n\nyes\n"}}},
      {kChannels, false, "<|channel|>final<|message|>yes<|end|><|start|>user<|message|>no", {{false, "yes"}}},
      {kChannels, false, "<|channel|>final<|message|>yes<|return|>", {{false, "yes"}}},
      {kChannels, false, "<|channel|>fin", {}},
      {kChannels, false, "<|message|>bare<|end|>and", {{false, "bare\n\nand"}}},
      {kChannels, false, " plain text < 3", {{false, " plain text < 3"}}},
      {kChannels, false, "<|chan", {{false, "<|chan"}}},
      {kChannels, true, "hm <| not a mark <", {{true, "hm <| not a mark <"}}},
      {kChannels, true, "cut<|end|><|start|>assistant<|channel|>analysis<|message|>of", {{true, "cut\n\nof"}}},
      {{"", ""}, false, "<think>x</think>", {{false, "<think>x</think>"}}},
  };
  return all;
}

}  // namespace

TEST_CASE("an answer is parted into thoughts and answer") {
  for (const Case& c : cases()) {
    CAPTURE(c.text);
    CHECK(parts(c.marks, c.opened, c.text) == c.pieces);
  }
}

TEST_CASE("a call of a tool keeps its header") {
  const std::string text = std::string("<|channel|>analysis<|message|>hm<|end|>").append(kTool).append("{}<|call|>x");
  CHECK(parts(kChannels, false, text) == Pieces{{true, "hm"}, {false, std::string(kTool) + "{}"}});
}

TEST_CASE("a header without an end is text") {
  const std::string text = "<|channel|>" + std::string(600, 'x');
  CHECK(parts(kChannels, false, text) == Pieces{{false, text}});
}

TEST_CASE("an answer in channels is over when its last message is") {
  ThoughtStream stream(kChannels, true);
  (void)stream.push("hm<|end|>");
  CHECK(!stream.over());
  CHECK(!stream.thinking());
  (void)stream.push("<|start|>assistant<|channel|>final<|message|>yes");
  CHECK(!stream.over());
  (void)stream.push("<|end|>");
  CHECK(stream.over());
  CHECK(stream.push("more").empty());
}

TEST_CASE("marks are of control tokens") {
  CHECK(kChannels.has("<|end|>"));
  CHECK(kChannels.has("<|constrain|>"));
  CHECK(kThink.has("<think>"));
  CHECK(!kThink.has("<|end|>"));
  CHECK(!kThink.has(""));
}

TEST_CASE("where the pieces are cut makes no difference") {
  std::mt19937 random(5);
  for (const Case& c : cases())
    for (int round = 0; round < 50; ++round) {
      ThoughtStream stream(c.marks, c.opened);
      Pieces all;
      for (std::size_t at = 0; at < c.text.size();) {
        const std::size_t n = 1 + random() % (round == 0 ? 1 : 7);
        append(all, stream.push(c.text.substr(at, n)));
        at += n;
      }
      append(all, stream.finish());
      CAPTURE(c.text);
      CHECK(all == c.pieces);
    }
}
