#include "batch/request.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.hpp"
#include "batch/item_error.hpp"
#include "batch/request_fields.hpp"
#include "text/stream_decoder.hpp"

namespace quern::batch {

namespace {

constexpr std::size_t kMostTokens = std::size_t{1} << 26;
constexpr std::size_t kMostChoices = 128, kMostPrompts = 2048, kMostStops = 64, kMostTop = 1000;

[[noreturn]] void invalid(std::string_view where, std::string_view what) {
  throw ItemError("invalid_request", where, what);
}

// ---- how answers are chosen, of every generating endpoint ----

float bias_of(const std::string& where, const base::Json& value) {
  if (!value.is_number()) invalid(where, "is no number");
  const double bias = value.get<double>();
  if (!(bias >= -100 && bias <= 100)) invalid(where, base::cat("is out of range (got ", bias, ", expected -100 to 100)"));
  return bias == -100 ? -std::numeric_limits<float>::infinity() : static_cast<float>(bias);  // as OpenAI: a ban
}

void read_bias(Fields& fields, SamplingFields& sampling) {
  const base::Json* const value = fields.find("logit_bias");
  if (value == nullptr) return;
  if (!value->is_object()) fields.wrong("logit_bias", "is no object of token ids");
  for (const auto& [word, bias] : value->items()) {
    const std::string where = base::cat(fields.where(), ".logit_bias[", base::printable(word, 40), "]");
    if (word.empty() || word.size() > 9 || word.find_first_not_of("0123456789") != std::string::npos)
      invalid(where, "is no token id");
    sampling.logit_bias.emplace_back(std::stoi(word), bias_of(where, bias));
  }
}

void read_sampling(Fields& fields, Request& request) {
  SamplingFields& s = request.sampling;
  s.temperature = fields.number("temperature", 0, 100);
  s.top_p = fields.number("top_p", 0, 1);
  s.min_p = fields.number("min_p", 0, 1);
  s.typical_p = fields.number("typical_p", 0, 1);
  s.top_k = fields.count("top_k", 0, kMostTokens);
  s.presence_penalty = fields.number("presence_penalty", -100, 100);
  s.frequency_penalty = fields.number("frequency_penalty", -100, 100);
  s.repeat_penalty = fields.number("repeat_penalty", 0.01, 100);
  if (const auto seed = fields.integer("seed", 0, INT64_MAX)) s.seed = static_cast<std::uint64_t>(*seed);
  read_bias(fields, s);
}

void read_lengths(Fields& fields, Request& request) {
  request.max_tokens = fields.count("max_tokens", 1, kMostTokens);
  for (const char* other : {"max_completion_tokens", "n_predict"}) {
    const auto value = fields.count(other, 1, kMostTokens);
    if (value && request.max_tokens && value != request.max_tokens)
      fields.wrong(other, "says another number than max_tokens");
    if (value) request.max_tokens = value;
  }
  request.min_tokens = fields.count("min_tokens", 0, kMostTokens);
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.stops = fields.texts("stop", kMostStops);
  for (const std::string& stop : request.stops)
    if (stop.empty()) fields.wrong("stop", "holds an empty text");
  request.stop_ids = fields.ids("stop_token_ids");
}

void set_form(Fields& fields, Request& request, std::string_view key, FormKind kind, std::string text) {
  if (request.form != FormKind::none) fields.wrong(key, "is a second form of the answer");
  request.form = kind;
  request.form_text = std::move(text);
}

void read_response_format(Fields& fields, Request& request) {
  const base::Json* const value = fields.find("response_format");
  if (value == nullptr) return;
  const std::string where = fields.where() + ".response_format";
  Fields format(*value, where);
  const std::string type = format.text("type").value_or("");
  if (type == "json_object") {
    const base::Json* const schema = format.find("schema");
    set_form(fields, request, "response_format", FormKind::json_schema,
             schema != nullptr ? schema->dump() : R"({"type": "object"})");
  } else if (type == "json_schema") {
    const base::Json* const inner = format.find("json_schema");
    if (inner == nullptr) format.wrong("json_schema", "is missing");
    Fields schema(*inner, where + ".json_schema");
    schema.ignore({"name", "description", "strict"});  // a form is always strict
    const base::Json* const document = schema.find("schema");
    if (document == nullptr) schema.wrong("schema", "is missing");
    set_form(fields, request, "response_format", FormKind::json_schema, document->dump());
    schema.finish();
  } else if (type != "text") {
    format.unsupported("type", base::cat("\"", base::printable(type, 40), "\" is not text, json_object or json_schema"));
  }
  format.finish();
}

void read_form(Fields& fields, Request& request) {
  read_response_format(fields, request);
  if (const base::Json* const schema = fields.find("json_schema"))
    set_form(fields, request, "json_schema", FormKind::json_schema, schema->dump());
  if (auto grammar = fields.text("grammar")) set_form(fields, request, "grammar", FormKind::grammar, std::move(*grammar));
  if (auto regex = fields.text("regex")) set_form(fields, request, "regex", FormKind::regex, std::move(*regex));
}

void read_generation(Fields& fields, Request& request) {
  read_sampling(fields, request);
  read_lengths(fields, request);
  read_form(fields, request);
  request.n = fields.count("n", 1, kMostChoices).value_or(1);
  fields.only("stream", false, "answers of a batch are not streamed");
  fields.ignore({"model", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
                 "stream_options"});
}

// ---- chats ----

std::string text_of_parts(const base::Json& parts, const std::string& where) {
  std::string text;
  for (const base::Json& part : parts) {
    const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text") &&
                         part["text"].is_string();
    if (!is_text) throw ItemError("unsupported_field", where, "holds a part that is no text");
    if (!text.empty()) text += '\n';
    text += part["text"].get<std::string>();
  }
  return text;
}

// Of one message: role known, content a text (or absent beside tool calls); parts of text become one.
base::Json checked_message(const base::Json& message, const std::string& where) {
  if (!message.is_object()) invalid(where, base::cat("is no object (got ", message.type_name(), ")"));
  if (!message.contains("role") || !message["role"].is_string()) invalid(where + ".role", "is missing or no string");
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};
  const std::string role = message["role"].get<std::string>();
  if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles))
    invalid(where + ".role", base::cat("unknown role \"", base::printable(role, 40),
                                       "\" (expected system, developer, user, assistant, tool or function)"));
  base::Json out = message;
  const bool has_content = message.contains("content") && !message["content"].is_null();
  if (has_content && message["content"].is_array()) {
    out["content"] = text_of_parts(message["content"], where + ".content");
  } else if (has_content && !message["content"].is_string()) {
    invalid(where + ".content", base::cat("is no text (got ", message["content"].type_name(), ")"));
  } else if (!has_content && !(role == "assistant" && message.contains("tool_calls"))) {
    invalid(where + ".content", "is missing");
  }
  return out;
}

void read_messages(Fields& fields, Request& request) {
  const base::Json* const list = fields.find("messages");
  if (list == nullptr) fields.wrong("messages", "is missing");
  if (!list->is_array() || list->empty()) fields.wrong("messages", "is no list with at least one message");
  base::Json checked = base::Json::array();
  for (const base::Json& message : *list)
    checked.push_back(checked_message(message, base::cat(fields.where(), ".messages[", checked.size(), "]")));
  request.messages = chat::messages_of_json(checked.dump(), fields.where());
}

void read_tools(Fields& fields, Request& request) {
  const base::Json* const tools = fields.find("tools");
  if (tools != nullptr && !tools->is_array()) fields.wrong("tools", "is no list");
  const base::Json* const choice = fields.find("tool_choice");
  const bool none = choice != nullptr && *choice == "none";
  if (choice != nullptr && !none && *choice != "auto")
    fields.unsupported("tool_choice", "a call cannot be forced: only auto and none");
  if (tools != nullptr && !tools->empty() && !none) request.tools_json = tools->dump();
  fields.ignore({"parallel_tool_calls"});
}

void read_template(Fields& fields, Request& request) {
  if (const base::Json* const kwargs = fields.find("chat_template_kwargs")) {
    if (!kwargs->is_object()) fields.wrong("chat_template_kwargs", "is no object");
    request.template_kwargs_json = kwargs->dump();
  }
  request.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  request.continue_final = fields.boolean("continue_final_message").value_or(false);
  if (request.continue_final) request.add_generation_prompt = false;
}

Request read_chat(Fields& fields) {
  Request request;
  request.endpoint = Endpoint::chat;
  read_messages(fields, request);
  read_tools(fields, request);
  read_template(fields, request);
  read_generation(fields, request);
  request.logprobs = fields.boolean("logprobs").value_or(false);
  if (const auto top = fields.count("top_logprobs", 0, kMostTop)) {
    if (!request.logprobs && *top > 0) fields.wrong("top_logprobs", "needs logprobs: true");
    request.top_logprobs = *top;
  }
  fields.only("modalities", base::Json::array({"text"}), "answers are text only");
  return request;
}

// ---- raw text ----

// A text, a list of texts, ids, or a list of lists of ids.
std::vector<Prompt> prompts_of(Fields& fields, std::string_view key) {
  const base::Json* const value = fields.find(key);
  if (value == nullptr) fields.wrong(key, "is missing");
  const std::string where = base::cat(fields.where(), ".", key);
  const auto ids_of = [&](const base::Json& list) {
    Prompt prompt;
    for (const base::Json& id : list) prompt.ids.push_back(token_id_of(id, where));
    if (prompt.ids.empty()) invalid(where, "is an empty list");
    return prompt;
  };
  if (value->is_string()) return {Prompt{value->get<std::string>(), {}}};
  if (!value->is_array() || value->empty()) invalid(where, "is no text and no list of texts or token ids");
  if (value->front().is_number()) return {ids_of(*value)};
  if (value->size() > kMostPrompts) invalid(where, base::cat("has ", value->size(), " entries, at most ", kMostPrompts));
  std::vector<Prompt> prompts;
  for (const base::Json& item : *value) {
    if (item.is_string()) prompts.push_back({item.get<std::string>(), {}});
    else if (item.is_array()) prompts.push_back(ids_of(item));
    else invalid(where, base::cat("holds something that is no text (got ", item.type_name(), ")"));
  }
  return prompts;
}

Request read_completion(Fields& fields) {
  Request request;
  request.endpoint = Endpoint::completion;
  request.prompts = prompts_of(fields, "prompt");
  read_generation(fields, request);
  request.echo = fields.boolean("echo").value_or(false);
  if (const auto top = fields.count("logprobs", 0, kMostTop)) {
    request.logprobs = true;
    request.top_logprobs = *top;
  }
  if (request.echo && request.logprobs) fields.unsupported("echo", "not together with logprobs");
  fields.only("suffix", "", "nothing is put behind the answer");
  fields.only("best_of", 1, "only 1: answers are not ranked");
  return request;
}

Request read_embedding(Fields& fields) {
  Request request;
  request.endpoint = Endpoint::embedding;
  request.prompts = prompts_of(fields, "input");
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") fields.wrong("encoding_format", "is neither float nor base64");
  request.base64 = format == "base64";
  fields.ignore({"model", "user"});
  return request;
}

// ---- lines ----

base::Json parsed(std::string_view line) {
  try {
    return base::parse_json(line, "");
  } catch (const base::Error& error) {
    throw ItemError("invalid_json", error);
  }
}

void check_custom_id(Fields& fields, const char* key, InputFormat format) {
  const base::Json* const id = fields.find(key);
  if (id == nullptr) return;
  if (format == InputFormat::jsonl && id->is_number_unsigned()) return;
  if (!id->is_string()) invalid(key, base::cat("is no string (got ", id->type_name(), ")"));
  const std::size_t bytes = id->get_ref<const std::string&>().size();
  if (bytes > kMaxCustomIdBytes) invalid(key, base::cat("has ", bytes, " bytes, at most ", kMaxCustomIdBytes));
}

Request read_openai(const base::Json& json) {
  Fields line(json, "line");
  check_custom_id(line, "custom_id", InputFormat::openai);
  if (!line.has("custom_id")) line.wrong("custom_id", "is missing");
  for (const char* key : {"method", "url", "body"})
    if (!line.has(key)) line.wrong(key, "is missing");
  if (line.text("method") != "POST") line.wrong("method", "is not POST");
  const std::string url = *line.text("url");
  Fields body(*line.find("body"), "body");
  line.finish();
  Request request;
  if (url == "/v1/chat/completions") request = read_chat(body);
  else if (url == "/v1/completions") request = read_completion(body);
  else if (url == "/v1/embeddings") request = read_embedding(body);
  else line.wrong("url", base::cat("unknown: \"", base::printable(url, 60),
                                   "\" (expected /v1/chat/completions, /v1/completions or /v1/embeddings)"));
  body.finish();
  return request;
}

Request read_simple(const base::Json& json) {
  Request request;
  if (json.is_string()) {
    request.prompts = {Prompt{json.get<std::string>(), {}}};
    return request;
  }
  Fields line(json, "line");
  check_custom_id(line, "custom_id", InputFormat::jsonl);
  if (line.has("custom_id") && line.has("id")) line.wrong("id", "is there beside custom_id");
  check_custom_id(line, "id", InputFormat::jsonl);
  const char* const key = line.has("text") ? "text" : "prompt";
  if (line.has("messages")) {
    if (line.has(key)) line.wrong(key, "is there beside messages");
    request = read_chat(line);
  } else {
    request.prompts = {Prompt{line.text(key).value_or(""), {}}};
    if (!line.has(key)) line.wrong("prompt", "is missing (or messages)");
    request.system = line.text("system");
    read_template(line, request);
    read_generation(line, request);
    request.logprobs = line.boolean("logprobs").value_or(false);
    request.top_logprobs = line.count("top_logprobs", 0, kMostTop).value_or(0);
  }
  if (request.n != 1) line.unsupported("n", "one answer a line (or OpenAI's format)");
  line.finish();
  return request;
}

}  // namespace

Request read_request(const Line& line, InputFormat format) {
  if (line.too_long())
    throw ItemError("line_too_long", "line", base::cat("has ", line.n_bytes, " bytes, at most ", kMaxLineBytes));
  try {
    if (format == InputFormat::openai) return read_openai(parsed(line.text));
    if (format == InputFormat::jsonl) return read_simple(parsed(line.text));
  } catch (const ItemError&) {
    throw;
  } catch (const base::Error& error) {
    throw ItemError("invalid_request", error);
  }
  if (!text::is_valid_utf8(line.text)) throw ItemError("invalid_utf8", "line", "is not UTF-8");
  Request request;
  request.prompts = {Prompt{std::string(line.text), {}}};
  return request;
}

}  // namespace quern::batch
