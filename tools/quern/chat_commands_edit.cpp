// Commands that change the conversation. The cache follows by itself: it keeps the longest common prefix
// of what it holds with the next prompt.
#include <iostream>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "chat_command_list.hpp"
#include "terminal.hpp"
#include "terminal/completion.hpp"
#include "text/unicode.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMaxReadBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxBranches = 100;

std::size_t last_of_user(const chat::Conversation& conversation) {
  for (std::size_t n = conversation.size(); n > 0; --n)
    if (conversation.messages()[n - 1].role == "user") return n;
  base::usage_error("/edit", "there is no message of yours yet");
}

void say(const ChatDesk& desk, const std::string& text) {
  notice(text, desk.chat.color());
}

}  // namespace

AfterCommand command_clear(ChatDesk& desk, CommandArguments) {
  desk.chat.conversation().clear(true);
  desk.attached.clear();
  desk.chat.first_attempt();
  say(desk, "forgotten");
  return AfterCommand::next_line;
}

AfterCommand command_regen(ChatDesk& desk, CommandArguments) {
  desk.chat.conversation().regenerate();
  desk.chat.next_attempt();
  return AfterCommand::answer;
}

AfterCommand command_undo(ChatDesk& desk, CommandArguments) {
  desk.prefill = desk.chat.conversation().undo();
  desk.chat.first_attempt();
  say(desk, base::cat("taken back; ", desk.chat.conversation().size(), " messages are left"));
  return AfterCommand::next_line;
}

AfterCommand command_edit(ChatDesk& desk, CommandArguments arguments) {
  chat::Conversation& conversation = desk.chat.conversation();
  const auto [word, given] = first_word(arguments);
  const std::size_t n = word.empty() ? last_of_user(conversation) : number_argument("/edit", word);
  std::string text(given);
  if (given.empty()) {
    if (n < 1 || n > conversation.size()) {
      conversation.edit(n, {});  // an error that names the number
      return AfterCommand::next_line;
    }
    const std::optional<std::string> edited = desk.input.edit(conversation.messages()[n - 1].content.text);
    if (!edited || *edited == conversation.messages()[n - 1].content.text) {
      say(desk, "not changed");
      return AfterCommand::next_line;
    }
    text = *edited;
  }
  conversation.edit(n, text);
  desk.chat.first_attempt();
  const std::string rest = base::cat("; what follows it stays (/branch ", n, " and /regen answer it anew)");
  say(desk, base::cat("message ", n, " changed", n < conversation.size() ? rest : std::string()));
  return AfterCommand::next_line;
}

AfterCommand command_delete(ChatDesk& desk, CommandArguments arguments) {
  const std::size_t n = number_argument("/delete", arguments);
  desk.chat.conversation().erase(n);
  desk.chat.first_attempt();
  say(desk, base::cat("message ", n, " is gone; those behind it have new numbers"));
  return AfterCommand::next_line;
}

AfterCommand command_branch(ChatDesk& desk, CommandArguments arguments) {
  chat::Conversation& conversation = desk.chat.conversation();
  std::vector<chat::Conversation>& branches = desk.chat.branches();
  const auto [word, rest] = first_word(arguments);
  if (word == "list") {
    for (std::size_t k = 0; k < branches.size(); ++k) {
      const auto& messages = branches[k].messages();
      std::cout << "branch " << k + 1 << ": " << messages.size()
                << " messages, the last: " << (messages.empty() ? "-" : base::printable(messages.back().content.text, 60))
                << "\n";
    }
    if (branches.empty()) std::cout << "no branches are kept\n";
    return AfterCommand::next_line;
  }
  if (word == "go") {
    const std::size_t k = number_argument("/branch go", rest);
    if (k < 1 || k > branches.size())
      base::usage_error("/branch", base::cat("there is no branch ", k, "; ", branches.size(), " are kept"));
    std::swap(conversation, branches[k - 1]);
    say(desk, base::cat("on branch ", k, " now, ", conversation.size(), " messages; the one you left is branch ", k));
    return AfterCommand::next_line;
  }
  if (branches.size() >= kMaxBranches)
    base::usage_error("/branch", base::cat("at most ", kMaxBranches, " are kept"));
  const std::size_t n = word.empty() ? conversation.size() : number_argument("/branch", word);
  chat::Conversation next = conversation.branch(n);
  branches.push_back(std::move(conversation));
  conversation = std::move(next);
  desk.chat.first_attempt();
  say(desk, base::cat("goes on from message ", n, "; the whole is kept as branch ", branches.size(),
                      " (/branch go ", branches.size(), ")"));
  return AfterCommand::next_line;
}

AfterCommand command_read(ChatDesk& desk, CommandArguments arguments) {
  if (arguments.empty()) base::usage_error("/read", "needs the path of a file");
  const std::string text = base::read_text_file(terminal::expand_home(arguments), kMaxReadBytes);
  if (text::valid_utf8_prefix(text, 0) != text.size() || text.find('\0') != std::string::npos)
    base::reject(base::printable(arguments), "is not UTF-8 text");
  desk.attached += text;
  if (!desk.attached.ends_with('\n')) desk.attached += '\n';
  const std::size_t n =
      desk.chat.loaded().tokenizer->encode(text, {.add_special = false, .parse_special = false}).size();
  say(desk,
      base::cat(base::printable(arguments), ": ", text.size(), " bytes, ", n, " tokens, go before your next message"));
  return AfterCommand::next_line;
}

AfterCommand command_system(ChatDesk& desk, CommandArguments arguments) {
  chat::Conversation& conversation = desk.chat.conversation();
  if (arguments.empty()) {
    const chat::Message* system = conversation.system();
    if (system == nullptr)
      std::cout << "no system message\n" << std::flush;
    else
      write_model_text(system->content.text + "\n");
    return AfterCommand::next_line;
  }
  conversation.set_system(arguments == "\"\"" ? std::string() : std::string(arguments));
  say(desk, arguments == "\"\"" ? "the system message is gone" : "system message set");
  return AfterCommand::next_line;
}

}  // namespace quern::tool
