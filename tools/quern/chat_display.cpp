#include "chat_display.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/strings.hpp"
#include "chat_tty.hpp"
#include "terminal.hpp"

namespace quern::tool {

namespace {

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[22m";
constexpr const char* kEraseLine = "\r\x1b[K";
constexpr std::size_t kLongPrompt = 256;  // tokens; shorter ones are over before they are read

}  // namespace

bool wants_color(const std::string& when) {
  if (when != "auto") return when == "on";
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  return stdout_is_terminal() && !dumb && (no_color == nullptr || no_color[0] == '\0');
}

AnswerDisplay::~AnswerDisplay() {
  if (in_thought_ && options_.color) std::cout << kPlain << std::flush;
}

void AnswerDisplay::begin_thought() {
  in_thought_ = true;
  if (options_.hide_thinking) {
    hint_ = options_.cursor && stdout_is_terminal();
    if (hint_)
      std::cout << (options_.color ? kDim : "") << "thinking..." << (options_.color ? kPlain : "") << std::flush;
    return;
  }
  if (options_.color)
    std::cout << kDim;
  else
    write_model_text(options_.marks.shown_open() + "\n");
}

void AnswerDisplay::end_thought() {
  in_thought_ = false;
  if (hint_) std::cout << kEraseLine;
  hint_ = false;
  if (options_.hide_thinking) return;
  if (options_.color)
    std::cout << kPlain << (line_open_ ? "\n\n" : "\n");
  else
    write_model_text((line_open_ ? "\n" : "") + options_.marks.shown_close() + "\n\n");
  std::cout.flush();
  line_open_ = false;
}

void AnswerDisplay::show(const chat::AnswerPiece& piece) {
  if (piece.text.empty()) return;
  if (piece.thought && !in_thought_) {
    if (line_open_) write_model_text("\n\n");  // a thought behind a part of the answer
    begin_thought();
  }
  std::string text = piece.text;
  if (!piece.thought && in_thought_) {
    end_thought();
    text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));  // there is an empty line already
  }
  if (piece.thought && options_.hide_thinking) return;
  if (text.empty()) return;
  write_model_text(text);
  line_open_ = !text.ends_with('\n');
}

void AnswerDisplay::finish() {
  if (in_thought_) end_thought();
  if (line_open_) write_model_text("\n");
  line_open_ = false;
}

void PrefillProgress::update(std::size_t done, std::size_t total) {
  if (!cursor_ || !stderr_is_terminal() || total == 0) return;
  if (done >= total) return erase();
  if (!shown_ && total < kLongPrompt) return;
  shown_ = true;
  std::cerr << kEraseLine << "prefill " << done << "/" << total << " (" << done * 100 / total << " %)" << std::flush;
}

void PrefillProgress::erase() {
  if (shown_) std::cerr << kEraseLine << std::flush;
  shown_ = false;
}

void notice(std::string_view text, bool color) {
  const bool dim = color && stderr_is_terminal();
  std::cerr << (dim ? kDim : "") << base::printable(text, 2000) << (dim ? kPlain : "") << "\n" << std::flush;
}

}  // namespace quern::tool
