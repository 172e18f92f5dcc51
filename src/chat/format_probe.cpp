#include "chat/format_probe.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace quern::chat {

namespace {

using jinja::Data;
using jinja::Trust;

// Texts that no template contains.
constexpr std::string_view kUser = "qzUserq", kAnswer = "qzAnswerq", kSystem = "qzSystemq";

struct ThoughtMarks {
  std::string_view begin, end;
};
constexpr ThoughtMarks kThoughts[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
    {"<thinking>", "</thinking>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
};
constexpr std::string_view kSwitches[] = {"enable_thinking", "thinking"};

Message probe_message(std::string role, std::string_view text) {
  return message(std::move(role), std::string(text));
}

}  // namespace

std::optional<base::MarkedText> FormatProbe::text_of(const std::vector<Message>& messages,
                                                     bool prompt,
                                                     const jinja::Template::Variables& more) const {
  RenderRequest request;
  request.add_generation_prompt = prompt;
  request.variables = more;
  std::vector<Data> data;
  for (const Message& message : messages) data.push_back(to_data(message, "probe"));
  try {
    return format_.render_data(data, request);
  } catch (const base::Error&) {
    return std::nullopt;  // the template refuses this chat
  }
}

// How an answer begins: with a thought open, never, or as a variable says.
void FormatProbe::find_thinking(FormatTraits& traits) const {
  const std::vector<Message> user = {probe_message("user", kUser)};
  const auto plain = text_of(user, true);
  if (!plain) return;
  const ThoughtMarks* found = nullptr;
  for (const std::string_view name : kSwitches) {
    const auto on = text_of(user, true, {{std::string(name), Data::of(true)}});
    const auto off = text_of(user, true, {{std::string(name), Data::of(false)}});
    if (!on || !off || on->text == off->text) continue;
    traits.thinking = Thinking::switchable;
    traits.thinking_switch = name;
    for (const ThoughtMarks& marks : kThoughts)
      if (found == nullptr && (on->text.find(marks.begin) != std::string::npos ||
                               off->text.find(marks.begin) != std::string::npos ||
                               off->text.find(marks.end) != std::string::npos))
        found = &marks;
    break;
  }
  for (const ThoughtMarks& marks : kThoughts) {
    const std::size_t open = plain->text.rfind(marks.begin);
    if (open == std::string::npos || plain->text.find(marks.end, open) != std::string::npos)
      continue;
    if (plain->text.find(kUser) > open) continue;  // an instruction that names the tag
    traits.opens_thought = true;
    if (traits.thinking == Thinking::none) traits.thinking = Thinking::always;
    found = &marks;
  }
  if (found == nullptr) return;
  traits.think_begin = found->begin;
  traits.think_end = found->end;
}

// The first control token behind an answer, or its stop where the model's vocabulary has none.
void FormatProbe::find_turn_end(FormatTraits& traits) const {
  const auto text =
      text_of({probe_message("user", kUser), probe_message("assistant", kAnswer)}, false);
  traits.stop_ids = format_.contract_.tokens.eos;
  if (!text) return;
  const std::size_t answer = text->text.rfind(kAnswer);
  if (answer == std::string::npos) return;
  const std::string rest = text->text.substr(answer + kAnswer.size());
  for (const std::int32_t id : format_.tokenizer_.encode(base::MarkedText{rest, {}})) {
    const std::string token(format_.tokenizer_.token_bytes(id));
    if (!format_.tokenizer_.is_control(id)) continue;
    traits.turn_end = token;
    if (std::find(traits.stop_ids.begin(), traits.stop_ids.end(), id) == traits.stop_ids.end())
      traits.stop_ids.push_back(id);
    return;
  }
}

FormatTraits FormatProbe::run() const {
  FormatTraits traits;
  const auto user = text_of({probe_message("user", kUser)}, true);
  const auto system =
      text_of({probe_message("system", kSystem), probe_message("user", kUser)}, true);
  traits.accepts_system = system && system->text.find(kSystem) != std::string::npos;
  const auto bos = format_.contract_.tokens.bos;
  const std::string begin = bos ? std::string(format_.tokenizer_.token_bytes(*bos)) : std::string();
  traits.adds_bos = user && !begin.empty() && user->text.starts_with(begin);
  find_thinking(traits);
  find_turn_end(traits);
  return traits;
}

}  // namespace quern::chat
