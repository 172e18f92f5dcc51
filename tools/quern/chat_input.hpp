// Where the messages of a chat come from: a line editor on a terminal, plain lines otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "terminal/completion.hpp"
#include "terminal/message_text.hpp"

namespace quern::tool {

struct ChatInputOptions {
  terminal::LineMode mode = terminal::LineMode::single;
  bool simple = false;   // --simple-io: lines as the terminal gives them, no editing
  bool history = true;   // kept on disk
  bool color = false;
  terminal::Completer completer;
};

class ChatInput {
 public:
  virtual ~ChatInput() = default;
  // The next message or command as it was typed; nothing: the input has ended. prefill: what the line
  // holds at first (a message taken back).
  virtual std::optional<std::string> next(const std::string& prefill) = 0;
  // The user edits `text` with the editor of the environment; nothing: it could not be run.
  virtual std::optional<std::string> edit(const std::string& text) = 0;
  virtual bool interactive() const = 0;
  virtual void close() {}  // the terminal is as the shell left it
};

// watch_signals() has been called.
std::unique_ptr<ChatInput> open_chat_input(ChatInputOptions options);

// $VISUAL, $EDITOR or vi on a file of the user's own (mode 0600, removed afterwards). Environment error
// when it cannot be run or fails.
std::string run_editor(const std::string& text);

}  // namespace quern::tool
