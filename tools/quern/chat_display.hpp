// What a person sees of a chat: the answer as it comes, thoughts apart from it, progress of a long
// prompt, notices. Model text goes to standard output, safe for a terminal; notices to standard error.
#pragma once

#include <string>
#include <string_view>

#include "chat/thought_stream.hpp"

namespace quern::tool {

struct DisplayOptions {
  bool color = false;          // thoughts and notices dimmed
  bool cursor = false;         // progress lines that are erased again
  bool hide_thinking = false;
  chat::ThoughtMarks marks;    // written around thoughts where colour does not tell them apart
};

// "on", "off", "auto" of --color: auto on a terminal that knows cursor codes, unless NO_COLOR is set.
bool wants_color(const std::string& when);

class AnswerDisplay {
 public:
  explicit AnswerDisplay(const DisplayOptions& options) : options_(options) {}
  ~AnswerDisplay();
  AnswerDisplay(const AnswerDisplay&) = delete;
  AnswerDisplay& operator=(const AnswerDisplay&) = delete;

  void show(const chat::AnswerPiece& piece);
  // The answer is over: its last line is ended and colours are as before.
  void finish();

 private:
  void begin_thought();
  void end_thought();

  DisplayOptions options_;
  bool in_thought_ = false, hint_ = false;
  bool line_open_ = false;  // the last character was no line end
};

// "prefill 512/2048 (25 %)" on a terminal, while a long prompt is computed.
class PrefillProgress {
 public:
  explicit PrefillProgress(bool cursor) : cursor_(cursor) {}
  ~PrefillProgress() { erase(); }
  PrefillProgress(const PrefillProgress&) = delete;
  PrefillProgress& operator=(const PrefillProgress&) = delete;

  void update(std::size_t done, std::size_t total);
  void erase();

 private:
  bool cursor_, shown_ = false;
};

// A line on standard error.
void notice(std::string_view text, bool color);

}  // namespace quern::tool
