// The messages of a chat and what a person does to them. A value: a branch is a copy. Not here: the
// file (session_file.hpp), rendering, the KV cache - which follows by itself, since a session keeps
// the longest common prefix of what it holds with the next prompt.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.hpp"

namespace quern::chat {

// Tokens [begin, end) of the rendered conversation that belong to a message.
struct TokenSpan {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

class Conversation {
 public:
  const std::vector<Message>& messages() const { return messages_; }
  bool empty() const { return messages_.empty(); }
  std::size_t size() const { return messages_.size(); }

  // JSON text of an object that belongs to the caller (sampling options, name of the model, ...).
  const std::string& settings() const { return settings_; }
  void set_settings(std::string json) { settings_ = std::move(json); }

  // ---- one turn after the other
  void add(Message message);
  // More of the last message, which must be the assistant's (an answer as it comes): untrusted text.
  void append(std::string_view content, std::string_view reasoning = {});
  // The system message, first of all; "" removes it.
  void set_system(std::string content);
  const Message* system() const;  // nullptr without

  // ---- operations of people. Messages are numbered from 1, as they are shown; an input error names
  // the number and how many there are.
  // Replaces the content of message n by what a person typed (and drops its reasoning and other members);
  // what follows stays.
  void edit(std::size_t n, std::string content);
  // Removes message n alone.
  void erase(std::size_t n);
  // Takes back the last message of the user and all that came after; its content (to edit it again).
  // Usage error without one.
  std::string undo();
  // Drops the answer to the last message of the user, so that it is given again. Usage error without a
  // message of the user.
  void regenerate();
  // Drops what follows message n (0: all).
  void keep_first(std::size_t n);
  // A copy that ends with message n.
  Conversation branch(std::size_t n) const;
  void clear(bool keep_system);

  // ---- tokens of each message, for those who count (/context). Set after rendering; cut by every change.
  void set_spans(std::vector<TokenSpan> spans);
  std::optional<TokenSpan> span(std::size_t index) const;  // from 0; none: not rendered since it changed

  friend bool operator==(const Conversation&, const Conversation&) = default;

 private:
  void cut_spans(std::size_t n);  // those of the first n messages are still true
  std::size_t last_of_user(std::string_view wanted_for) const;

  std::vector<Message> messages_;
  std::vector<TokenSpan> spans_;  // of the first messages
  std::string settings_ = "{}";
};

}  // namespace quern::chat
