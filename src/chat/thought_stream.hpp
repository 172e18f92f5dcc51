// Parts a model's answer, as it comes, into thoughts and answer by the marks of its template. A mark may
// be cut anywhere between pieces. Not here: which marks a template has, how thoughts are shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quern::chat {

// Texts around thoughts, "<think>" and "</think>". Thoughts begin where the answer begins, or not at all:
// a mark that an answer only mentions is text.
struct ThoughtMarks {
  std::string open, close;
  // Of formats whose thoughts have a channel of their own, "" in others: what may stand before an answer
  // without thoughts, and what lies between one thought and the next. No part of either.
  std::string answer = {}, again = {};

  bool channels() const { return !answer.empty(); }
};

struct AnswerPiece {
  bool thought = false;
  std::string text;
  friend bool operator==(const AnswerPiece&, const AnswerPiece&) = default;
};

class ThoughtStream {
 public:
  // opened: the prompt ends with the opening mark, so the answer begins inside a thought.
  ThoughtStream(ThoughtMarks marks, bool opened);

  // White space around a thought belongs to its marks and is left out; an answer's own white space is
  // kept but for line ends before its first word.
  std::vector<AnswerPiece> push(std::string_view text);
  std::vector<AnswerPiece> finish();

  bool thinking() const { return state_ == State::thought; }
  bool thought_closed() const { return closed_; }

 private:
  enum class State { start, thought, answer_start, answer };

  bool step(std::vector<AnswerPiece>& out);
  bool at_start(bool last);
  bool before_thought();
  bool inside_thought(std::vector<AnswerPiece>& out);

  ThoughtMarks marks_;
  State state_;
  bool begun_ = false, closed_ = false;  // the thought has text; it is over
  bool any_ = false, again_ = false;     // some thought has text; the next one begins a paragraph
  std::string held_;
};

}  // namespace quern::chat
