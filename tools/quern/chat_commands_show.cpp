// Commands that show the chat, change its options, keep it in a file.
#include <iomanip>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat_command_list.hpp"
#include "engine/report.hpp"
#include "terminal.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kShownBytes = 2000;  // of a message in the list of all

std::size_t n_tokens(const ChatDesk& desk, const std::string& text) {
  return desk.chat.loaded().tokenizer->encode(text, {.add_special = false, .parse_special = false}).size();
}

// In the list of all messages: the beginning of a long text.
std::string beginning(const std::string& text, std::size_t n) {
  if (text.size() <= kShownBytes) return text;
  std::size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return base::cat(text.substr(0, end), "... (", text.size(), " bytes; /show ", n, ")");
}

void show_message(std::size_t n, const chat::Message& message, bool whole, bool thoughts) {
  write_model_text(base::cat("[", n, "] ", message.role, "\n"));
  if (thoughts && message.reasoning_content) {
    const std::string& thought = message.reasoning_content->text;
    write_model_text(base::cat("(thoughts) ", whole ? thought : beginning(thought, n), "\n"));
  }
  write_model_text((whole ? message.content.text : beginning(message.content.text, n)) + "\n");
}

}  // namespace

AfterCommand command_show(ChatDesk& desk, CommandArguments arguments) {
  const std::vector<chat::Message>& messages = desk.chat.conversation().messages();
  const bool thoughts = !desk.chat.settings().settings().hide_thinking;
  if (!arguments.empty()) {
    const std::size_t n = number_argument("/show", arguments);
    if (n < 1 || n > messages.size())
      base::usage_error("/show", base::cat("there is no message ", n, "; the chat has ", messages.size()));
    show_message(n, messages[n - 1], true, thoughts);
    return AfterCommand::next_line;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) show_message(i + 1, messages[i], false, thoughts);
  if (messages.empty()) std::cout << "no messages yet\n";
  return AfterCommand::next_line;
}

AfterCommand command_stats(ChatDesk& desk, CommandArguments) {
  const ChatSession& chat = desk.chat;
  std::cout << "last answer: " << counts_text(chat.last()) << "\n"
            << "this chat:   " << counts_text(chat.total()) << "\n"
            << "cache:       " << chat.session().tokens().size() << " tokens held of " << chat.session().context()
            << "\n";
  return AfterCommand::next_line;
}

AfterCommand command_context(ChatDesk& desk, CommandArguments) {
  const ChatSession& chat = desk.chat;
  const std::vector<chat::Message>& messages = desk.chat.conversation().messages();
  const std::size_t used = messages.empty() ? 0 : chat.ids().size(), context = chat.session().context();
  std::cout << used << " of " << context << " tokens (" << used * 100 / context << " %), " << messages.size()
            << " messages";
  if (chat.n_dropped_messages() > 0) std::cout << ", the first " << chat.n_dropped_messages() << " left out";
  std::cout << "\n";
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::cout << std::setw(4) << i + 1 << "  " << std::left << std::setw(9) << base::printable(messages[i].role, 20)
              << std::right << std::setw(7) << n_tokens(desk, messages[i].content.text) << "  "
              << base::printable(messages[i].content.text, 40) << "\n";
  }
  return AfterCommand::next_line;
}

AfterCommand command_set(ChatDesk& desk, CommandArguments arguments) {
  SettingsBook& settings = desk.chat.settings();
  auto [name, value] = first_word(arguments);
  while (name.starts_with('-')) name.remove_prefix(1);
  if (name.empty()) {
    for (const auto& [option, values] : settings.given()) {
      std::cout << option;
      for (const std::string& word : values) std::cout << " " << base::printable(word, 100);
      std::cout << "\n";
    }
    if (settings.given().empty()) std::cout << "everything is as the model has it\n";
    std::cout << "options: ";
    for (const std::string& option : SettingsBook::names()) std::cout << option << " ";
    std::cout << "\n";
    return AfterCommand::next_line;
  }
  const std::string option = settings.described(std::string(name));
  const bool flag = name == "hide-thinking" || name == "show-timings";
  if (value.empty() && !option.empty() && !flag) {
    std::cout << option << "\n";
    return AfterCommand::next_line;
  }
  settings.set(std::string(name),
               value.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::string(value)});
  notice(base::cat(name, " = ", value.empty() ? "on" : std::string(value)), desk.chat.color());
  return AfterCommand::next_line;
}

AfterCommand command_think(ChatDesk& desk, CommandArguments word) {
  SettingsBook& settings = desk.chat.settings();
  const bool color = desk.chat.color();
  if (word == "hide" || word == "show") {
    settings.set_hidden(word == "hide");
    notice(word == "hide" ? "thoughts are hidden" : "thoughts are shown", color);
    return AfterCommand::next_line;
  }
  if (word != "on" && word != "off" && word != "auto") base::usage_error("/think", "needs on, off, auto, hide or show");
  settings.set_thinking(word == "on" ? Thinking::on : word == "off" ? Thinking::off : Thinking::automatic);
  notice(base::cat("thinking: ", word,
                   desk.chat.renderer().knows_thinking() || word == "auto"
                       ? ""
                       : " (this model's template has no switch for it: no effect)"),
         color);
  return AfterCommand::next_line;
}

AfterCommand command_save(ChatDesk& desk, CommandArguments path) {
  if (path.empty()) base::usage_error("/save", "needs the path of a file");
  desk.chat.save(std::string(path), true);
  notice(base::cat("saved ", base::printable(path), ": ", desk.chat.conversation().size(), " messages, ",
                   desk.chat.session().tokens().size(), " tokens with their cache"),
         desk.chat.color());
  return AfterCommand::next_line;
}

AfterCommand command_load(ChatDesk& desk, CommandArguments path) {
  if (path.empty()) base::usage_error("/load", "needs the path of a file");
  desk.chat.load(std::string(path));
  return AfterCommand::next_line;
}

}  // namespace quern::tool
