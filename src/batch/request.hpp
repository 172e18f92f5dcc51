// What one line asks for, checked: every field is used, without effect on the answer (the model's name, a user's
// mark), or an error that names it. Numbers are in range; texts are not tokenized yet. Not here: what the model makes
// of it (tools/quern/batch_task.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "batch/record.hpp"
#include "chat/message.hpp"

namespace quern::batch {

enum class Endpoint {
  chat,        // /v1/chat/completions, or messages
  completion,  // /v1/completions: raw text
  embedding,   // /v1/embeddings
  prompt,      // a simple line: a chat of one message where the model has a chat format, else raw text
};

struct Prompt {  // text, or ids where it was given as such
  std::string text;
  std::vector<std::int32_t> ids;
};

// How the answer is chosen; what is absent is the command's.
struct SamplingFields {
  std::optional<double> temperature, top_p, min_p, typical_p, repeat_penalty, presence_penalty, frequency_penalty;
  std::optional<std::size_t> top_k;
  std::optional<std::uint64_t> seed;
  std::vector<std::pair<std::int32_t, float>> logit_bias;
};

enum class FormKind { none, json_schema, grammar, regex };

struct Request {
  Endpoint endpoint = Endpoint::prompt;
  std::vector<Prompt> prompts;          // all endpoints but chat: at least one
  std::vector<chat::Message> messages;  // chat: at least one
  std::optional<std::string> system;    // of a simple line
  std::string tools_json;               // chat: a JSON list, "" = none
  std::string template_kwargs_json;     // variables of the template, "" = none
  bool add_generation_prompt = true, continue_final = false;

  SamplingFields sampling;
  std::optional<std::size_t> max_tokens, min_tokens;
  bool ignore_eos = false;
  std::vector<std::string> stops;
  std::vector<std::int32_t> stop_ids;
  FormKind form = FormKind::none;
  std::string form_text;

  std::size_t n = 1;  // answers of each prompt
  bool echo = false;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool base64 = false;  // embeddings as little-endian float32 in base64
};

// Throws ItemError for whatever is wrong with the line.
Request read_request(const Line& line, InputFormat format);

}  // namespace quern::batch
