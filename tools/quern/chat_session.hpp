// One running chat: the conversation, the session that holds its tokens, and how an answer comes about.
// Not here: commands (chat_commands.hpp), reading input, option parsing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_lock.hpp"
#include "chat/context_fit.hpp"
#include "chat/conversation.hpp"
#include "chat_display.hpp"
#include "chat_renderer.hpp"
#include "chat_settings.hpp"
#include "engine/session.hpp"

namespace quern::tool {

// Counts of one answer, or of many.
struct TurnCounts {
  std::size_t reused = 0, prefilled = 0, rebuilt = 0, decoded = 0, thought = 0;
  std::size_t drafted = 0, accepted = 0;  // guesses
  double prefill_seconds = 0, decode_seconds = 0;
  void add(const TurnCounts& other);
};
// "prefill 12 tokens (340 reused), 95.1 t/s; decode 48 tokens, 60.2 t/s"
std::string counts_text(const TurnCounts& counts);

enum class TurnEnd { answered, interrupted, nothing };  // nothing: stopped before the first token

class ChatSession {
 public:
  ChatSession(const LoadedModel& loaded, const ChatCommandOptions& options, SettingsBook settings);

  // Answers the last message of the user, shown as it comes and added to the conversation. Input error,
  // and the conversation is as before, when the prompt is refused.
  TurnEnd answer();

  chat::Conversation& conversation() { return conversation_; }
  std::vector<chat::Conversation>& branches() { return branches_; }  // kept beside the one that goes on
  SettingsBook& settings() { return settings_; }
  const engine::Session& session() const { return *session_; }
  const ChatRenderer& renderer() const { return renderer_; }
  const LoadedModel& loaded() const { return loaded_; }
  const TurnCounts& last() const { return last_; }
  const TurnCounts& total() const { return total_; }
  std::size_t n_dropped_messages() const { return fit_.n_dropped_messages(); }
  bool color() const { return color_; }
  // Ids of the conversation as the next answer would see them, all of them.
  std::vector<std::int32_t> ids() const;
  // The next answer to the same message shall be another one (/regen).
  void next_attempt() { ++attempt_; }
  void first_attempt() { attempt_ = 0; }

  // One file with everything; with_cache: its tokens need no prefill when it is loaded. Environment error for the
  // session of another chat that is open.
  void save(const std::string& path, bool with_cache);
  // Replaces the conversation and the settings; input error, and all is as before, for a file refused. `system`
  // takes the place of its system message. Says on standard error what was loaded.
  void load(const std::string& path, const std::optional<std::string>& system = {});
  // After an answer: the session's file, if there is one. A large cache is left for the last save.
  void autosave(bool last);
  void unlock() { lock_.reset(); }  // before a signal ends the process: another chat may have the session's file

 private:
  struct Answer;
  struct Saved {  // what the session's file holds
    std::string text;
    std::vector<std::int32_t> tokens;
    bool operator==(const Saved&) const = default;
  };

  engine::FinishReason generate(Answer& answer);
  bool take(Answer& answer, std::int32_t id);
  void show(Answer& answer, const std::string& text);
  void close_thought(Answer& answer);
  engine::GenerateOptions generate_options(Answer& answer, std::size_t max_new_tokens);
  std::vector<std::int32_t> make_room(Answer& answer, std::span<const std::int32_t> text);
  sampling::TokenRuleOptions rules(std::size_t n_prompt);
  std::int64_t turn_seed() const;
  void count(Answer& answer);
  void explain_end(const Answer& answer, engine::FinishReason reason) const;
  chat::Render render() const;
  // Tokens that need no prefill when the conversation goes on as it is now.
  std::size_t n_held() const;

  const LoadedModel& loaded_;
  ChatRenderer renderer_;
  SettingsBook settings_;
  std::size_t context_;
  std::string autosave_path_;
  std::optional<base::FileLock> lock_;  // of that file, for as long as the chat lasts
  std::optional<Saved> saved_;
  bool color_, cursor_;
  std::optional<std::size_t> keep_;
  chat::Conversation conversation_;
  std::vector<chat::Conversation> branches_;
  chat::ContextFit fit_;
  std::unique_ptr<engine::Session> session_;
  std::unique_ptr<Speculation> speculation_;
  TurnCounts last_, total_;
  std::uint64_t attempt_ = 0;
};

}  // namespace quern::tool
