#include "chat_input.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat_tty.hpp"
#include "terminal/line_editor.hpp"
#include "terminal/screen.hpp"
#include "text/unicode.hpp"

namespace quern::tool {

namespace {

using terminal::Outcome;

constexpr int kEscapeWaitMs = 50;
constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

class EditedInput final : public ChatInput {
 public:
  EditedInput(Tty& tty, ChatInputOptions options)
      : tty_(tty),
        options_(std::move(options)),
        editor_(history_, options_.completer, options_.mode),
        screen_(tty.size()) {
    tty_.set_mode(Tty::Mode::running);
    if (!options_.history) return;
    try {
      const std::filesystem::path path = terminal::default_history_path();
      if (!path.empty()) file_.emplace(path, history_);
    } catch (const base::Error& error) {
      std::cerr << "quern: note: " << base::printable(error.what(), 500) << "; going on without it\n";
    }
  }

  std::optional<std::string> next(const std::string& prefill) override {
    tty_.set_mode(Tty::Mode::editing);
    screen_ = terminal::Screen(tty_.size());
    editor_.restart(prefill);
    const std::optional<std::string> line = loop();
    tty_.set_mode(Tty::Mode::running);
    take_interrupt();
    if (line && history_.add(*line)) remember(*line);
    return line;
  }

  std::optional<std::string> edit(const std::string& text) override {
    tty_.set_mode(Tty::Mode::typed);
    std::optional<std::string> edited;
    try {
      edited = run_editor(text);
    } catch (const base::Error& error) {
      std::cerr << "quern: error: " << base::printable(error.what(), 500) << "\n";
    }
    tty_.set_mode(Tty::Mode::running);
    return edited;
  }
  bool interactive() const override { return true; }
  void close() override { tty_.set_mode(Tty::Mode::typed); }

 private:
  std::string prompt() const { return ">>> "; }
  terminal::View view() const { return editor_.view(prompt(), "... "); }
  void draw() { tty_.write(screen_.draw(view())); }

  void remember(const std::string& line) {
    if (!file_) return;
    try {
      file_->append(line);
    } catch (const base::Error& error) {
      std::cerr << "quern: note: " << base::printable(error.what(), 500) << "; the history is not kept\n";
      file_.reset();
    }
  }

  std::optional<std::string> loop() {
    draw();
    while (end_signal() == 0) {
      std::vector<terminal::KeyEvent> events;
      if (!waiting_.empty()) {
        events = std::exchange(waiting_, {});
      } else {
        const std::optional<std::string> bytes = tty_.read(keys_.half_escape() ? kEscapeWaitMs : -1);
        if (!bytes) return std::nullopt;
        look_at_terminal();
        events = bytes->empty() && keys_.half_escape() ? keys_.escape_timeout() : keys_.push(*bytes);
      }
      if (events.empty()) continue;
      for (std::size_t i = 0; i < events.size(); ++i) {
        const Outcome outcome = editor_.key(events[i]);
        if (outcome == Outcome::editing) continue;
        // What was typed ahead of the answer waits for the next message.
        waiting_.assign(events.begin() + static_cast<std::ptrdiff_t>(i) + 1, events.end());
        if (outcome == Outcome::accepted || outcome == Outcome::leave) return end_line(outcome);
        act(outcome);
        break;
      }
      draw();
    }
    tty_.write(screen_.leave(view()));
    return std::nullopt;
  }

  void look_at_terminal() {
    const bool continued = tty_.take_continued();
    if (!tty_.take_resized() && !continued) return;
    if (continued) screen_ = terminal::Screen(tty_.size());
    screen_.resize(tty_.size());
    draw();
  }

  std::optional<std::string> end_line(Outcome outcome) {
    tty_.write(screen_.leave(view()));
    if (outcome == Outcome::leave) return std::nullopt;
    return editor_.text();
  }

  void act(Outcome outcome) {
    switch (outcome) {
      case Outcome::cleared:
        if (!editor_.text().empty()) tty_.write(screen_.leave(view()));
        editor_.restart();
        break;
      case Outcome::clear_screen: tty_.write(screen_.clear_all()); break;
      case Outcome::suspend:
        tty_.write(screen_.erase());
        tty_.suspend();
        break;
      case Outcome::open_editor: {
        tty_.write(screen_.erase());
        const std::optional<std::string> edited = edit(editor_.text());
        tty_.set_mode(Tty::Mode::editing);
        if (edited) editor_.set_text(*edited);
        break;
      }
      default: break;
    }
  }

  Tty& tty_;
  ChatInputOptions options_;
  terminal::History history_;
  std::optional<terminal::HistoryFile> file_;
  terminal::LineEditor editor_;
  terminal::KeyDecoder keys_;
  terminal::Screen screen_;
  std::vector<terminal::KeyEvent> waiting_;
};

// Lines of a pipe or file, or of a terminal as it edits them itself (--simple-io, TERM=dumb).
class PlainInput final : public ChatInput {
 public:
  explicit PlainInput(terminal::LineMode mode) : mode_(mode), prompts_(::isatty(0) != 0 && ::isatty(1) != 0) {}

  std::optional<std::string> next(const std::string&) override {
    std::string typed;
    for (bool first = true;; first = false) {
      if (prompts_) std::cout << (first ? "> " : "... ") << std::flush;
      const std::optional<std::string> line = read_line();
      if (!line) {
        if (prompts_) std::cout << "\n";
        if (prompts_ && take_interrupt()) return "";  // Ctrl-C clears the line
        return first ? std::nullopt : std::optional(typed);
      }
      typed += (first ? "" : "\n") + *line;
      if (terminal::is_complete(typed, mode_)) return typed;
      if (typed.size() > kMaxLineBytes)
        base::reject(where(), base::cat("a message of more than ", kMaxLineBytes, " bytes"));
    }
  }
  std::optional<std::string> edit(const std::string& text) override {
    if (!prompts_) base::usage_error("/edit", "needs a terminal, or the new text behind it: /edit N TEXT");
    return run_editor(text);
  }
  bool interactive() const override { return prompts_; }

 private:
  std::string where() const { return base::cat("standard input:", n_lines_); }

  // The last line needs no line end.
  std::optional<std::string> read_line() {
    ++n_lines_;
    std::string line;
    bool any = false;
    for (char c = 0; read_byte(c);) {
      any = true;
      if (c == '\n') break;
      line += c;
      if (line.size() > kMaxLineBytes)
        base::reject(where(), base::cat("a line of more than ", kMaxLineBytes, " bytes"));
    }
    if (!any) return std::nullopt;
    if (line.ends_with('\r')) line.pop_back();
    if (text::valid_utf8_prefix(line, 0) != line.size() || line.find('\0') != std::string::npos)
      base::reject(where(), "is not UTF-8 text", base::printable(line, 40));
    return line;
  }

  bool read_byte(char& c) {
    if (at_ == held_.size()) {
      held_.resize(65536);
      ssize_t n = -1;
      while ((n = ::read(STDIN_FILENO, held_.data(), held_.size())) < 0 && errno == EINTR)
        if (end_signal() != 0 || interrupt_pending()) break;
      held_.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
      at_ = 0;
      if (held_.empty()) return false;
    }
    c = held_[at_++];
    return true;
  }

  terminal::LineMode mode_;
  bool prompts_;
  std::string held_;
  std::size_t at_ = 0, n_lines_ = 0;
};

}  // namespace

std::unique_ptr<ChatInput> open_chat_input(ChatInputOptions options) {
  if (!options.simple)
    if (Tty* tty = Tty::open()) return std::make_unique<EditedInput>(*tty, std::move(options));
  return std::make_unique<PlainInput>(options.mode);
}

}  // namespace quern::tool
