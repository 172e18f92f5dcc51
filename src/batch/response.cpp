#include "batch/response.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "text/stream_decoder.hpp"

namespace quern::batch {

namespace {

using base::Json;

// Escapes control bytes; whatever is no UTF-8 becomes U+FFFD. DEL and C1 controls are characters of JSON, but raw
// control bytes of a terminal: they are escaped too.
std::string dumped(const Json& json) {
  const std::string plain = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(plain.size() + 1);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto c = static_cast<unsigned char>(plain[i]);
    const auto next = static_cast<unsigned char>(i + 1 < plain.size() ? plain[i + 1] : '\0');
    constexpr const char* kHex = "0123456789abcdef";
    if (c == 0x7F) {
      out += "\\u007f";
    } else if (c == 0xC2 && next >= 0x80 && next < 0xA0) {
      out += "\\u00";
      out += kHex[next >> 4];
      out += kHex[next & 15];
      ++i;
    } else {
      out += plain[i];
    }
  }
  return out += '\n';
}

// As short as a float needs: 0.1 rather than 0.10000000149011612; the same float when it is read back.
double shortest(float value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double out = 0;
  std::from_chars(digits.data(), end, out);
  return out;
}

std::string named(const char* prefix, const LineFacts& facts) {
  return prefix + request_id(facts.key).substr(std::strlen("batch_req_"));
}

Json id_json(const LineFacts& facts) {
  return facts.custom_id ? Json(*facts.custom_id) : Json(nullptr);
}

Json usage_json(std::size_t prompt, std::size_t completion) {
  return {{"prompt_tokens", prompt}, {"completion_tokens", completion}, {"total_tokens", prompt + completion}};
}

// ---- scores of tokens ----

Json token_json(const TokenLogprob& token) {
  Json bytes = Json::array();
  for (const char byte : token.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text::utf8_lossy(token.bytes)}, {"logprob", shortest(token.logprob)}, {"bytes", bytes}};
}

Json chat_scores(const std::vector<ScoredToken>& scores, bool ids) {
  Json list = Json::array();
  const auto json_of = [&](const TokenLogprob& token) {
    Json json = token_json(token);
    if (ids) json["id"] = token.id;
    return json;
  };
  for (const ScoredToken& score : scores) {
    Json json = json_of(score.token);
    json["top_logprobs"] = Json::array();
    for (const TokenLogprob& token : score.top) json["top_logprobs"].push_back(json_of(token));
    list.push_back(std::move(json));
  }
  return list;
}

// The older form. Offsets are those of characters in the answer.
Json completion_scores(const std::vector<ScoredToken>& scores) {
  Json out = {{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()},
              {"text_offset", Json::array()}};
  std::size_t offset = 0;
  for (const ScoredToken& score : scores) {
    out["tokens"].push_back(text::utf8_lossy(score.token.bytes));
    out["token_logprobs"].push_back(shortest(score.token.logprob));
    Json top = Json::object();
    for (const TokenLogprob& token : score.top) top[text::utf8_lossy(token.bytes)] = shortest(token.logprob);
    out["top_logprobs"].push_back(std::move(top));
    out["text_offset"].push_back(offset);
    offset += static_cast<std::size_t>(std::count_if(score.token.bytes.begin(), score.token.bytes.end(),
                                                     [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }
  return out;
}

// ---- bodies ----

Json chat_body(const LineFacts& facts, const Request& request, const GenerationResult& result) {
  Json choices = Json::array();
  for (const ChoiceResult& choice : result.choices) {
    Json json = {{"index", choices.size()},
                 {"message", {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}}},
                 {"logprobs", nullptr},
                 {"finish_reason", choice.finish_reason}};
    if (request.logprobs) json["logprobs"] = {{"content", chat_scores(choice.scores, false)}, {"refusal", nullptr}};
    if (choice.seed) json["seed"] = *choice.seed;
    choices.push_back(std::move(json));
  }
  return {{"id", named("chatcmpl-", facts)}, {"object", "chat.completion"}, {"created", 0}, {"model", facts.model},
          {"choices", choices}, {"usage", usage_json(result.prompt_tokens, result.completion_tokens)}};
}

Json completion_body(const LineFacts& facts, const Request& request, const GenerationResult& result) {
  Json choices = Json::array();
  for (const ChoiceResult& choice : result.choices) {
    Json json = {{"index", choices.size()},
                 {"text", choice.text},
                 {"logprobs", nullptr},
                 {"finish_reason", choice.finish_reason}};
    if (request.logprobs) json["logprobs"] = completion_scores(choice.scores);
    if (choice.seed) json["seed"] = *choice.seed;
    choices.push_back(std::move(json));
  }
  return {{"id", named("cmpl-", facts)}, {"object", "text_completion"}, {"created", 0}, {"model", facts.model},
          {"choices", choices}, {"usage", usage_json(result.prompt_tokens, result.completion_tokens)}};
}

Json openai_line(const LineFacts& facts, int status, Json body) {
  return {{"id", request_id(facts.key)},
          {"custom_id", id_json(facts)},
          {"response", {{"status_code", status}, {"request_id", named("req_", facts)}, {"body", std::move(body)}}},
          {"error", nullptr}};
}

Json simple_line(const LineFacts& facts) {
  return {{"id", request_id(facts.key)}, {"custom_id", id_json(facts)}, {"line", facts.number}};
}

std::string base64_of(const std::vector<float>& vector) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string_view bytes(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float));
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) -> unsigned {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string generation_line(const LineFacts& facts, const Request& request, const GenerationResult& result) {
  if (facts.format == InputFormat::openai) {
    const bool chat = request.endpoint == Endpoint::chat;
    return dumped(openai_line(facts, 200, chat ? chat_body(facts, request, result)
                                               : completion_body(facts, request, result)));
  }
  const ChoiceResult& answer = result.choices.front();
  Json json = simple_line(facts);
  json["text"] = answer.text;
  if (facts.ids) json["ids"] = answer.ids;
  if (request.logprobs) json["logprobs"] = chat_scores(answer.scores, facts.ids);
  json["finish_reason"] = answer.finish_reason;
  json["seed"] = answer.seed ? Json(*answer.seed) : Json(nullptr);
  json["usage"] = usage_json(result.prompt_tokens, result.completion_tokens);
  json["error"] = nullptr;
  return dumped(json);
}

std::string embedding_line(const LineFacts& facts, const Request& request, const EmbeddingResult& result) {
  Json data = Json::array();
  for (const std::vector<float>& vector : result.vectors) {
    Json embedding = request.base64 ? Json(base64_of(vector)) : Json::array();
    if (!request.base64)
      for (const float x : vector) embedding.push_back(shortest(x));
    data.push_back({{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(embedding)}});
  }
  return dumped(openai_line(facts, 200,
                            {{"object", "list"}, {"data", std::move(data)}, {"model", facts.model},
                             {"usage", {{"prompt_tokens", result.prompt_tokens}, {"total_tokens", result.prompt_tokens}}}}));
}

std::string error_line(const LineFacts& facts, const ItemError& error) {
  const std::string message = base::printable(error.what(), 500);
  const Json short_error = {{"code", error.item_code()}, {"message", message}, {"line", facts.number}};
  if (facts.format != InputFormat::openai) {
    Json json = simple_line(facts);
    json["text"] = nullptr;
    json["error"] = short_error;
    return dumped(json);
  }
  Json json = openai_line(facts, 400,
                          {{"error",
                            {{"message", message},
                             {"type", "invalid_request_error"},
                             {"param", nullptr},
                             {"code", error.item_code()}}}});
  json["error"] = short_error;
  return dumped(json);
}

}  // namespace quern::batch
