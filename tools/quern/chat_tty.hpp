// The terminal of a chat: its modes, its signals, bytes in and out. Modes are restored however the
// program ends, also by a crash, and after Ctrl-Z. Not here: what keys mean (terminal/), what is shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "terminal/screen.hpp"

namespace quern::tool {

// Signals of a chat, from watch_signals() on. Ctrl-C only sets a flag, which stops the answer that is
// being written; SIGTERM and SIGHUP ask the program to end after the message is kept.
void watch_signals();
bool take_interrupt();       // Ctrl-C since the last call
bool interrupt_pending();
int end_signal();            // SIGTERM or SIGHUP that has come, else 0
// The signal with its default action: the shell sees the true cause.
void raise_default(int signal);

class Tty {
 public:
  // Standard input and one of the outputs are terminals that understand cursor codes: nullptr else.
  static Tty* open();

  enum class Mode {
    typed,    // as the shell left it
    editing,  // bytes as they come, Ctrl-C too; pastes in brackets
    running,  // no echo of what is typed ahead; Ctrl-C and Ctrl-Z are signals
  };
  void set_mode(Mode mode);

  // Waits for bytes: "" when a signal or a new size should be looked at, or after timeout_ms (-1: none);
  // nothing: the terminal is gone.
  std::optional<std::string> read(int timeout_ms);
  void write(std::string_view text) const;

  terminal::ScreenSize size() const;
  bool take_resized();    // since the last call
  bool take_continued();  // the program was stopped: what stands on the terminal is not known
  void suspend();       // Ctrl-Z typed while editing
  int output() const { return output_; }

 private:
  Tty() = default;
  int output_ = 1;
};

// Where notices and prompts go is a terminal that understands cursor codes.
bool terminal_has_cursor();

}  // namespace quern::tool
