// A one-turn chat as token ids. The plain ChatML form only; template programs (Jinja) are not run here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/contract.hpp"
#include "text/tokenizer.hpp"

namespace quern::tool {

struct ChatTurn {
  std::string system;        // "" = the model's default
  std::string_view prompt;
};

// True when the contract describes a chat format this command can write.
bool has_chat_format(const contract::Contract& contract);

// <|im_start|>system ... <|im_start|>assistant\n. Control tokens are ids put in by us; the texts of the
// system and the user are encoded as plain text and never become control tokens.
std::vector<std::int32_t> chat_ids(const contract::Contract& contract, const text::Tokenizer& tokenizer,
                                   const ChatTurn& turn);

// The parts: <|im_start|>role\n text <|im_end|>\n, and what the answer follows.
void append_chat_message(std::vector<std::int32_t>& ids, const text::Tokenizer& tokenizer, std::string_view role,
                         std::string_view text);
void append_answer_start(std::vector<std::int32_t>& ids, const text::Tokenizer& tokenizer);

}  // namespace quern::tool
