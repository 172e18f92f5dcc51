#include "answer_json.hpp"

#include <nlohmann/json.hpp>

#include "text/stream_decoder.hpp"
#include "text/token_text.hpp"

namespace quern::tool {

namespace {

using Json = nlohmann::ordered_json;

const char* reason_name(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::stop: return "stop";
    case engine::FinishReason::length: return "length";
    case engine::FinishReason::interrupted: return "interrupted";
  }
  return "";
}

Json token_json(const text::TokenText* texts, std::int32_t id, float logprob) {
  Json json = {{"id", id}, {"token", nullptr}, {"logprob", logprob}, {"bytes", nullptr}};
  if (texts == nullptr) return json;
  const std::string bytes = texts->of(id);
  json["token"] = text::utf8_lossy(bytes);
  json["bytes"] = Json::array();
  for (const char byte : bytes) json["bytes"].push_back(static_cast<unsigned char>(byte));
  return json;
}

Json scores_json(const LoadedModel& loaded, const std::vector<TokenScore>& scores) {
  std::optional<text::TokenText> texts;
  if (loaded.tokenizer) texts.emplace(*loaded.tokenizer);
  const text::TokenText* const known = texts ? &*texts : nullptr;
  Json list = Json::array();
  for (const TokenScore& score : scores) {
    Json token = token_json(known, score.id, score.logprob);
    token["top_logprobs"] = Json::array();
    for (const auto& [id, logprob] : score.top) token["top_logprobs"].push_back(token_json(known, id, logprob));
    list.push_back(std::move(token));
  }
  return list;
}

Json stop_json(const std::optional<StopFound>& stop) {
  if (!stop) return nullptr;
  Json json = {{"text", stop->text}};
  json["id"] = stop->id ? Json(*stop->id) : Json(nullptr);
  return json;
}

}  // namespace

std::string answer_json(const LoadedModel& loaded, const RunOptions& options, const std::vector<Answer>& answers,
                        bool searched, const AnswerFacts& facts, const std::string& echo) {
  const Answer& best = answers.front();
  Json json = {{"index", facts.index},
               {"model", loaded.model->contract.name},
               {"text", echo + best.text},
               {"ids", best.ids},
               {"logprobs", options.wants_scores() ? scores_json(loaded, best.scores) : Json(nullptr)},
               {"finish_reason", reason_name(best.reason)},
               {"stop", stop_json(best.stop)},
               {"prompt_tokens", facts.prompt_tokens},
               {"completion_tokens", best.ids.size()},
               {"seed", searched || facts.greedy ? Json(nullptr) : Json(facts.seed)},
               {"search", facts.search}};
  if (searched)
    for (const Answer& answer : answers)
      json["sequences"].push_back({{"text", echo + answer.text}, {"ids", answer.ids}, {"score", answer.score}});
  else if (answers.size() > 1)
    for (std::size_t i = 0; i < answers.size(); ++i)
      json["sequences"].push_back({{"text", echo + answers[i].text}, {"ids", answers[i].ids},
                                   {"finish_reason", reason_name(answers[i].reason)}, {"seed", facts.seed + i}});
  json["timings"] = Json::parse(facts.timings_json);
  return json.dump();
}

}  // namespace quern::tool
