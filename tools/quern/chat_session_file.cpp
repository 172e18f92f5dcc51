// A chat in its file: saved after every answer, gone on with later.
#include <iostream>
#include <utility>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat/conversation_json.hpp"
#include "chat/session_file.hpp"
#include "chat_session.hpp"
#include "terminal/completion.hpp"

namespace quern::tool {

namespace {

// A larger cache is written once, at the end: after every answer it would keep the disk busy.
constexpr std::uint64_t kMaxAutosaveBytes = std::uint64_t{256} << 20;

}  // namespace

void ChatSession::save(const std::string& path, bool with_cache) {
  const std::filesystem::path target = terminal::expand_home(path);
  std::error_code ignored;
  const bool own = lock_ && (target == autosave_path_ || std::filesystem::equivalent(target, autosave_path_, ignored));
  std::optional<base::FileLock> lock;
  if (own) saved_.reset();
  else lock.emplace(target);
  conversation_.set_settings(settings_.json());
  chat::save_session_file(target, conversation_, with_cache ? session_.get() : nullptr, branches_);
}

void ChatSession::autosave(bool last) {
  if (autosave_path_.empty()) return;
  const bool with_cache = last || engine::snapshot_bytes(*session_) <= kMaxAutosaveBytes;
  conversation_.set_settings(settings_.json());
  Saved state{chat::write_conversation(conversation_, branches_), {}};
  if (with_cache) state.tokens = session_->tokens();
  std::error_code error;
  // What the file holds already is not written again when the chat is left.
  if (last && saved_ == state && std::filesystem::exists(autosave_path_, error)) return;
  save(autosave_path_, with_cache);
  saved_ = std::move(state);
}

// Fewer than the file has where the system message or the template is another one, or where the text of an answer has
// other tokens than it was made of.
std::size_t ChatSession::n_held() const try {
  if (session_->tokens().empty()) return 0;
  std::vector<chat::Message> messages = conversation_.messages();
  if (messages.empty() || messages.back().role != "user") messages.push_back(chat::message("user", ""));
  return session_->reusable_tokens(render()(messages));
} catch (const base::Error&) {
  return 0;  // no conversation that the template takes: the next answer says what is wrong with it
}

void ChatSession::load(const std::string& path, const std::optional<std::string>& system) {
  const std::string where = base::printable(path);
  const chat::SessionFile file{std::filesystem::path(terminal::expand_home(path))};
  SettingsBook settings = settings_;
  const std::vector<std::string> refused = settings.take(file.conversation().settings(), where);
  engine::RestoreResult restored;
  try {
    restored = file.restore(*session_);
  } catch (const base::Error&) {
    session_->clear();
    throw;
  }
  conversation_ = file.conversation();
  if (system) conversation_.set_system(*system);
  branches_ = file.branches();
  settings_ = std::move(settings);
  attempt_ = 0;
  const std::size_t n = branches_.size();
  const std::string branches = n == 0 ? "" : n == 1 ? "1 branch, " : base::cat(n, " branches, ");
  notice(base::cat("loaded ", where, ": ", conversation_.size(), " messages, ", branches, n_held(),
                   " tokens held without prefill"),
         color_);
  if (restored.other_isa)
    notice(base::cat("warning: its cache was computed on ", restored.info.isa, ": answers may differ in the last bits"),
           color_);
  if (restored.other_length) notice("note: its cache was made for another length and is computed again", color_);
  for (const std::string& name : refused)
    notice(base::cat("warning: its setting ", base::printable(name, 40), " is not taken here"), color_);
}

}  // namespace quern::tool
