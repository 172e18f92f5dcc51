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

  // The ids of `messages`, rendered, with room for at least `room` new tokens. Input error ("the
  // conversation has N tokens, context is M") under policy error, and when the last turn alone does not
  // fit. Policy truncate drops turns until a quarter of the context is free, so that the next turns
  // need not drop (and prefill) again.
  FitResult fit(const std::vector<Message>& messages, std::size_t room, const Render& render);
  // The same in the middle of an answer, for GenerateOptions::on_full: `text` are the ids so far, `messages`
  // end with the unfinished answer.
  FitResult fit_answer(const std::vector<Message>& messages, std::span<const std::int32_t> text,
                       std::size_t room, const Render& render);

 private:
  engine::OverflowOptions options_;
  std::size_t context_;
  engine::TokenWindow window_;
  std::vector<Message> dropped_;  // policy truncate: the turns left out so far
};

}  // namespace quern::chat
