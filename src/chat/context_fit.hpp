// Makes a conversation fit in the context by a policy (engine/overflow.hpp), and says what it cost. Whole
// turns are dropped here, tokens in engine::TokenWindow. Rendering is the caller's function.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "chat/message.hpp"
#include "engine/overflow.hpp"

namespace quern::chat {

using Render = std::function<std::vector<std::int32_t>(const std::vector<Message>&)>;

struct FitResult {
  std::vector<std::int32_t> ids;                 // to generate from
  std::optional<engine::OverflowReport> report;  // something more was dropped: announce it
};

class ContextFit {
 public:
  ContextFit(const engine::OverflowOptions& options, std::size_t context);

  // The ids of `messages`, rendered, with room for at least `room` new tokens (1 to a quarter of the
  // context). Input error "the conversation has N tokens, context is M" under policy error, and where the
  // last turn alone does not fit (truncate). Policy truncate drops turns until a quarter of the context is
  // free, so that the turns that follow need not drop, and prefill, again.
  FitResult fit(const std::vector<Message>& messages, std::size_t room, const Render& render);

  // In the middle of an answer, for GenerateOptions::on_full: `text` are the ids it passes, the last
  // n_answer of them the answer so far; messages and render as for fit(). No ids: nothing can be dropped,
  // the answer ends.
  FitResult fit_answer(const std::vector<Message>& messages, std::span<const std::int32_t> text,
                       std::size_t n_answer, const Render& render);

  // OverflowOptions::keep, of policy shift: the end of the system message's tokens, say.
  void set_keep(std::size_t keep) { window_.set_keep(keep); }
  const engine::OverflowOptions& options() const { return options_; }
  // Messages that policy truncate leaves out (the first ones after the system message).
  std::size_t n_dropped_messages() const { return dropped_.size(); }

 private:
  bool drop_turn(std::vector<Message>& kept);
  FitResult truncate(const std::vector<Message>& messages, std::span<const std::int32_t> answer,
                     std::size_t room, const Render& render);

  engine::OverflowOptions options_;
  std::size_t context_;
  engine::TokenWindow window_;
  std::vector<Message> dropped_;  // policy truncate
};

}  // namespace quern::chat
