// Parts an answer that comes as messages in channels (gpt-oss: <|channel|>analysis<|message|>...<|end|>
// <|start|>assistant<|channel|>final<|message|>...) into thoughts and answer. Headers and marks may be cut
// anywhere between pieces, and are no part of either; but a message to a tool keeps its header, which names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_piece.hpp"

namespace quern::chat {

class ChannelStream {
 public:
  // opened: the answer begins inside a thought.
  explicit ChannelStream(bool opened) : state_(opened ? State::body : State::start), thought_(opened) {}

  std::vector<AnswerPiece> push(std::string_view text);
  std::vector<AnswerPiece> finish();
  bool thinking() const { return state_ == State::body && thought_; }
  bool over() const { return over_; }  // the final message has ended: what follows is no part of the answer

  // Whether a control token is one of the marks.
  static bool is_mark(std::string_view spelling);

 private:
  // start: nothing came yet; between: a message has ended; header: up to its <|message|>.
  enum class State { start, between, header, body };

  bool step(std::vector<AnswerPiece>& out);
  bool before_message();
  bool inside_header(std::vector<AnswerPiece>& out);
  bool inside_body(std::vector<AnswerPiece>& out);
  void begin_body(bool thought, bool marked);
  void end_body(std::string_view mark);
  void add(std::vector<AnswerPiece>& out, std::string text);

  State state_;
  bool thought_ = false;
  bool marked_ = true;                  // the body has a header: line ends before its first word are the mark's
  bool begun_ = false;                  // the body has text
  bool final_ = false, over_ = false;   // the body is the last one; it is at its end
  bool any_[2] = {false, false};        // some answer, some thought has text
  std::string held_;
};

}  // namespace quern::chat
