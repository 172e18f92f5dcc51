// A renderer for tests: messages become ids of tiny_contract()'s vocabulary without a template.
#pragma once

#include <string>
#include <vector>

#include "chat/conversation.hpp"
#include "engine/session_cases.hpp"

namespace quern::tests {

constexpr std::int32_t kEnd = 99, kAnswer = 98;

inline chat::Message said(std::string role, std::string text, std::string thoughts = "") {
  chat::Message m = chat::message(std::move(role), std::move(text));
  if (!thoughts.empty()) m.reasoning_content = chat::message("", std::move(thoughts)).content;
  return m;
}

// <role> content <end>, one token a character; the last token opens the answer.
inline Ids rendered(const std::vector<chat::Message>& messages) {
  Ids ids;
  for (const chat::Message& m : messages) {
    ids.push_back(m.role == "system" ? 95 : m.role == "user" ? 96 : kAnswer);
    for (const char c : m.content.text) ids.push_back(static_cast<unsigned char>(c) % 95);
    ids.push_back(kEnd);
  }
  ids.push_back(kAnswer);
  return ids;
}

// The text of an answer that renders to its ids; only ids below 95 have one.
inline std::string text_of(const Ids& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += static_cast<char>(id % 95);
  return text;
}

inline chat::Conversation chat_of(std::size_t n_turns, std::size_t length = 12) {
  chat::Conversation c;
  c.set_system("system");
  for (std::size_t i = 0; i < n_turns; ++i) {
    c.add(said("user", text_of(random_ids(length, 95, static_cast<std::uint32_t>(2 * i)))));
    c.add(said("assistant", text_of(random_ids(length, 95, static_cast<std::uint32_t>(2 * i + 1)))));
  }
  return c;
}

}  // namespace quern::tests
