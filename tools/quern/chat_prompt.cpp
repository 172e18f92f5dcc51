#include "chat_prompt.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace {

constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";

std::int32_t control_id(const text::Tokenizer& tokenizer, std::string_view content) {
  const std::int32_t id = tokenizer.id_of(content);
  if (id < 0) base::reject("chat", base::cat("the vocabulary has no ", content), {}, "a ChatML tokenizer");
  return id;
}

}  // namespace

// Appends <|im_start|>role\n text <|im_end|>\n. Role line and text are one run of plain text, as they lie
// between two control tokens of the rendered template.
void append_chat_message(std::vector<std::int32_t>& ids, const text::Tokenizer& tokenizer, std::string_view role,
                    std::string_view text) {
  const text::EncodeOptions plain{.add_special = false, .parse_special = false};
  ids.push_back(control_id(tokenizer, kStart));
  const std::vector<std::int32_t> body = tokenizer.encode(base::cat(role, "\n", text), plain);
  ids.insert(ids.end(), body.begin(), body.end());
  ids.push_back(control_id(tokenizer, kEnd));
  const std::vector<std::int32_t> line_end = tokenizer.encode("\n", plain);
  ids.insert(ids.end(), line_end.begin(), line_end.end());
}

void append_answer_start(std::vector<std::int32_t>& ids, const text::Tokenizer& tokenizer) {
  ids.push_back(control_id(tokenizer, kStart));
  const text::EncodeOptions plain{.add_special = false, .parse_special = false};
  const std::vector<std::int32_t> opening = tokenizer.encode("assistant\n", plain);
  ids.insert(ids.end(), opening.begin(), opening.end());
}

bool has_chat_format(const contract::Contract& contract) { return contract.chat.builtin == "chatml"; }

std::vector<std::int32_t> chat_ids(const contract::Contract& contract, const text::Tokenizer& tokenizer,
                                   const ChatTurn& turn) {
  std::vector<std::int32_t> ids;
  const std::string& system = turn.system.empty() ? contract.chat.default_system : turn.system;
  if (!system.empty()) append_chat_message(ids, tokenizer, "system", system);
  append_chat_message(ids, tokenizer, "user", turn.prompt);
  ids.push_back(control_id(tokenizer, kStart));
  const text::EncodeOptions plain{.add_special = false, .parse_special = false};
  const std::vector<std::int32_t> opening = tokenizer.encode("assistant\n", plain);
  ids.insert(ids.end(), opening.begin(), opening.end());
  return ids;
}

}  // namespace quern::tool
