#include "answer_printer.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "signals.hpp"
#include "terminal.hpp"

namespace quern::tool {

namespace {

const char* reason_name(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::stop: return "stop";
    case engine::FinishReason::length: return "length";
    case engine::FinishReason::interrupted: return "interrupted";
  }
  return "";
}

}  // namespace

AnswerPrinter::AnswerPrinter(const LoadedModel& loaded, const RunOptions& options)
    : loaded_(loaded), options_(options) {
  if (loaded.tokenizer) stream_.emplace(*loaded.tokenizer, !options.special);
}

void AnswerPrinter::show(const std::string& piece) {
  text_ += piece;
  if (options_.output == "text") write_model_text(piece);
}

bool AnswerPrinter::token(std::int32_t id) {
  ids_.push_back(id);
  if (options_.output == "ids") {
    std::cout << (ids_.size() == 1 ? "" : " ") << id << std::flush;
  } else if (stream_) {
    show(stream_->push(id));
  }
  return !interrupted();
}

AnswerPrinter::Answer AnswerPrinter::decoded(const engine::Hypothesis& hypothesis,
                                             const std::vector<std::int32_t>& ends) const {
  Answer answer{"", hypothesis.ids, hypothesis.score};
  if (!answer.ids.empty() && std::find(ends.begin(), ends.end(), answer.ids.back()) != ends.end())
    answer.ids.pop_back();
  if (options_.output == "ids" || !loaded_.tokenizer) return answer;
  text::TextStream stream(*loaded_.tokenizer, !options_.special);
  for (const std::int32_t id : answer.ids) answer.text += stream.push(id);
  answer.text += stream.finish();
  return answer;
}

void AnswerPrinter::answers(const std::vector<engine::Hypothesis>& hypotheses,
                            const std::vector<std::int32_t>& ends) {
  for (const engine::Hypothesis& hypothesis : hypotheses) {
    if (!answers_.empty() && options_.output != "json") write_model_text("\n");
    answers_.push_back(decoded(hypothesis, ends));
    const Answer& answer = answers_.back();
    if (options_.output == "text") write_model_text(answer.text);
    for (std::size_t i = 0; options_.output == "ids" && i < answer.ids.size(); ++i)
      std::cout << (i == 0 ? "" : " ") << answer.ids[i] << std::flush;
  }
  ids_ = answers_.front().ids;
  text_ = answers_.front().text;
}

void AnswerPrinter::finish(const Summary& summary) {
  if (stream_ && answers_.empty()) show(stream_->finish());
  if (options_.output != "json") {
    write_model_text("\n");
    return;
  }
  nlohmann::ordered_json json = {{"text", text_},
                                 {"ids", ids_},
                                 {"finish_reason", reason_name(summary.reason)},
                                 {"prompt_tokens", summary.prompt_tokens},
                                 {"completion_tokens", ids_.size()},
                                 {"search", summary.search}};
  for (const Answer& answer : answers_)
    json["sequences"].push_back({{"text", answer.text}, {"ids", answer.ids}, {"score", answer.score}});
  json["timings"] = nlohmann::ordered_json::parse(summary.timings_json);
  std::cout << json.dump() << "\n";
}

}  // namespace quern::tool
