// Parts a model's answer, as it comes, into thoughts and answer by the marks of its template. A mark may
// be cut anywhere between pieces. Not here: which marks a template has, how thoughts are shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_piece.hpp"
#include "chat/channel_stream.hpp"

namespace quern::chat {

// Texts around thoughts, "<think>" and "</think>". Thoughts begin where the answer begins, or not at all:
// a mark that an answer only mentions is text.
struct ThoughtMarks {
  std::string open, close;
  bool channels = false;  // thoughts are messages in a channel of their own (channel_stream.hpp)

  // Whether a control token of this spelling is part of a mark.
  bool has(std::string_view spelling) const;
  // What is written around thoughts: channels have no marks that a person would read.
  std::string shown_open() const { return channels ? "<think>" : open; }
  std::string shown_close() const { return channels ? "</think>" : close; }
};

class ThoughtStream {
 public:
  // opened: the prompt ends with the opening mark, so the answer begins inside a thought.
  ThoughtStream(ThoughtMarks marks, bool opened);

  // White space around a thought belongs to its marks and is left out; an answer's own white space is
  // kept but for line ends before its first word.
  std::vector<AnswerPiece> push(std::string_view text);
  std::vector<AnswerPiece> finish();

  bool over() const { return channels_ && channels_->over(); }
  bool thinking() const { return channels_ ? channels_->thinking() : state_ == State::thought; }

 private:
  enum class State { start, thought, answer_start, answer };

  bool step(std::vector<AnswerPiece>& out);
  bool at_start(bool last);
  bool before_thought();
  bool inside_thought(std::vector<AnswerPiece>& out);

  ThoughtMarks marks_;
  State state_;
  bool begun_ = false;  // the thought has text
  std::optional<ChannelStream> channels_;
  std::string held_;
};

}  // namespace quern::chat
