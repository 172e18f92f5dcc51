// quern chat: a conversation in the terminal, or line by line from a pipe. Answers and what a command was
// asked to show on standard output; notices and errors on standard error.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <utility>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "chat_commands.hpp"
#include "chat_input.hpp"
#include "chat_session.hpp"
#include "chat_settings.hpp"
#include "chat_tty.hpp"
#include "command.hpp"
#include "terminal/completion.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMaxPromptBytes = std::size_t{16} << 20;

constexpr const char* kFooter =
    "In the chat: /help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.\n"
    "examples:\n  quern chat -m MODEL\n  quern chat -m MODEL -sys \"Answer in one sentence.\" --temp 0.7\n"
    "  quern chat -m MODEL --session trip.qs            saved after every answer, gone on with next time\n"
    "  quern chat -m MODEL -c 4096 --on-overflow truncate\n"
    "  quern chat -m MODEL -st -p \"Why is the sky blue?\"\n  printf 'Hello\\nAnd now?\\n' | quern chat -m MODEL";

std::string file_text(const std::string& path) {
  std::string text = path == "-" ? read_input("-") : base::read_text_file(terminal::expand_home(path), kMaxPromptBytes);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// A chat from its first line to its last.
class ChatLoop {
 public:
  ChatLoop(ChatSession& chat, ChatInput& input, const ChatCommandOptions& options)
      : desk_{chat, input},
        single_turn_(options.single_turn),
        mode_(options.multiline ? terminal::LineMode::multi : terminal::LineMode::single) {}

  void run(std::optional<std::string> first) {
    bool going = !first || send(*first);
    while (going && !(single_turn_ && answered_)) {
      const std::optional<std::string> line = desk_.input.next(std::exchange(desk_.prefill, {}));
      if (!line) break;
      going = take(*line);
    }
    desk_.chat.autosave(true);
  }

 private:
  // False to leave.
  bool take(const std::string& line) {
    const terminal::Typed typed = terminal::finished(line, mode_);
    if (typed.text.empty()) return true;
    if (!typed.command) return send(typed.text);
    try {
      switch (run_command(desk_, typed.text)) {
        case AfterCommand::leave: return false;
        case AfterCommand::answer: return answer(false);
        case AfterCommand::next_line: break;
      }
      std::cout << std::flush;
    } catch (const base::Error& error) {
      report(error);
    }
    return true;
  }

  // On a terminal an error is told and the chat goes on; a script is not left to go on with less.
  void report(const base::Error& error) const {
    if (!desk_.input.interactive()) throw error;
    std::cerr << "quern: error: " << base::printable(error.what(), 500) << "\n";
  }

  bool send(const std::string& text) {
    desk_.chat.conversation().add(chat::message("user", desk_.attached + text));
    desk_.chat.first_attempt();
    return answer(true);
  }

  // new_message: the last message is taken back when there is no answer.
  bool answer(bool new_message) {
    TurnEnd end = TurnEnd::nothing;
    try {
      end = desk_.chat.answer();
      answered_ = true;
    } catch (const base::Error& error) {
      if (new_message) take_back();
      report(error);
      return true;
    }
    if (end == TurnEnd::nothing && new_message) take_back();
    if (end != TurnEnd::nothing) desk_.attached.clear();
    try {
      desk_.chat.autosave(false);
    } catch (const base::Error& error) {
      report(error);
    }
    // A script's Ctrl-C is meant for all of it.
    if (end != TurnEnd::answered && end_signal() == 0 && !desk_.input.interactive()) {
      desk_.chat.unlock();
      raise_default(SIGINT);
    }
    return end_signal() == 0;
  }

  void take_back() {
    std::string text = desk_.chat.conversation().undo();
    text.erase(0, desk_.attached.size());
    desk_.prefill = std::move(text);
  }

  ChatDesk desk_;
  bool single_turn_, answered_ = false;
  terminal::LineMode mode_;
};

std::optional<std::string> system_message(const ChatCommandOptions& options) {
  return options.system_file.empty() ? options.system : file_text(options.system_file);
}

std::unique_ptr<ChatInput> chat_input(const ChatCommandOptions& options) {
  ChatInputOptions input;
  input.mode = options.multiline ? terminal::LineMode::multi : terminal::LineMode::single;
  input.simple = options.simple_io;
  const char* none = std::getenv("QUERN_NOHISTORY");
  input.history = !options.no_history && (none == nullptr || none[0] == '\0' || none[0] == '0');
  input.color = wants_color(options.color);
  input.completer = command_completer();
  return open_chat_input(std::move(input));
}

}  // namespace

int cmd_chat(const std::vector<std::string>& arguments) {
  CLI::App app("A conversation with a model, in the terminal or line by line from a pipe.", "quern chat");
  ChatCommandOptions options;
  add_chat_command_options(app, options);
  app.footer(kFooter);
  if (parse_arguments(app, arguments)) return 0;
  parse_cache_type(options.model.k_type, "-ctk");
  parse_cache_type(options.model.v_type, "-ctv");
  settle_speculation(options.speculation);
  SettingsBook settings(options.settings, app);
  if (options.settings.sampling.seed < 0)  // kept, so that a chat gone on with draws as one that never ended
    settings.set("seed", {base::cat(std::random_device{}() & 0x7FFFFFFFu)});

  const LoadedModel loaded = load_model(options.model);
  engine::check_generates(*loaded.model);
  if (loaded.model->contract.kind != contract::ModelKind::decoder)
    base::reject(loaded.model->weights.where(), "is no decoder: ask it with quern run");
  note_long_context(options.model.context, loaded.model->contract);
  std::optional<std::string> first = options.prompt;
  if (!options.prompt_file.empty()) first = file_text(options.prompt_file);
  ChatSession chat(loaded, options, std::move(settings));
  const std::optional<std::string> system = system_message(options);
  if (!options.session.empty() && std::filesystem::exists(terminal::expand_home(options.session)))
    chat.load(options.session, system);
  else if (system)
    chat.conversation().set_system(*system);
  const std::unique_ptr<ChatInput> input = chat_input(options);
  watch_signals();
  if (input->interactive() && !first)
    notice(base::cat(loaded.model->contract.name, " - /help lists the commands, Ctrl-D leaves"), chat.color());
  ChatLoop(chat, *input, options).run(first);
  input->close();
  chat.unlock();
  if (end_signal() != 0) raise_default(end_signal());
  if (take_interrupt()) raise_default(SIGINT);
  return 0;
}

}  // namespace quern::tool
