// quern classify: labels and probabilities of texts (a head that pools), or of every token of them.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "answer_span.hpp"
#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "engine/packed_batch.hpp"
#include "quantity.hpp"
#include "ranking.hpp"
#include "signals.hpp"
#include "terminal.hpp"
#include "text_input.hpp"

namespace quern::tool {

namespace {

using Json = nlohmann::ordered_json;

struct ClassifyOptions {
  ModelOptions model;
  InputOptions input;
  std::size_t top_k = 0, longest_answer = 15;
  bool multi_label = false;
  std::string output = "text";
};

Json labels_json(const contract::Contract& contract, const std::vector<Ranked>& ranked) {
  Json labels = Json::array();
  const char* const what = contract.head.kind == contract::HeadKind::regress ? "value" : "probability";
  for (const Ranked& entry : ranked)
    labels.push_back({{"label", contract.head.labels[entry.index]}, {what, entry.probability}});
  return labels;
}

std::string labels_text(const contract::Contract& contract, const std::vector<Ranked>& ranked) {
  std::string text;
  for (const Ranked& entry : ranked) {
    char number[16];
    std::snprintf(number, sizeof number, "%.4f", entry.probability);
    text += "\t" + contract.head.labels[entry.index] + "\t" + number;
  }
  return text;
}

// What a token says in a line for people: its text, else its id.
std::string token_name(const LoadedModel& loaded, std::int32_t id) {
  if (loaded.tokenizer == nullptr) return std::to_string(id);
  const std::string text = loaded.tokenizer->decode({id});
  return text.empty() ? std::to_string(id) : text;
}

// As the checkpoint says what its labels are; one label alone is a yes or no.
Activation activation_of(const contract::Head& head, bool multi_label) {
  if (multi_label || head.kind == contract::HeadKind::multi_label) return Activation::sigmoid;
  if (head.kind == contract::HeadKind::regress) return Activation::none;
  return head.labels.size() == 1 ? Activation::sigmoid : Activation::softmax;
}

class Printer {
 public:
  Printer(const LoadedModel& loaded, const ClassifyOptions& options, const std::vector<InputItem>& items)
      : loaded_(loaded), options_(options), items_(items) {
    const contract::Contract& contract = loaded.model->contract;
    activation_ = activation_of(contract.head, options.multi_label);
    // Of a token people want the label, of a question the answer, of a text all labels.
    const std::size_t all = contract.head.pool ? contract.head.labels.size() : 1;
    top_k_ = options.top_k == 0 ? all : options.top_k;
  }

  void print(const engine::PackedResult& result) const {
    const contract::Contract& contract = loaded_.model->contract;
    Json json = {{"index", result.index}};
    std::string text = std::to_string(result.index);
    if (contract.head.kind == contract::HeadKind::span) {
      text.clear();
      json["answers"] = answers(result, text);
    } else if (contract.head.pool) {
      const std::vector<Ranked> ranked = ranking(result, 0);
      json["labels"] = labels_json(contract, ranked);
      text += labels_text(contract, ranked) + "\n";
    } else {
      text.clear();
      json["tokens"] = tokens(result, text);
    }
    if (options_.output == "json")
      std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    else write_model_text(text);
  }

 private:
  std::vector<Ranked> ranking(const engine::PackedResult& result, std::size_t row) const {
    const std::string& where = items_[result.index].where;
    return rank({result.runner.logits(result.first_logits + row), result.runner.n_outputs()}, top_k_, activation_,
                loaded_.model->contract.head.pool ? where : base::cat(where, ", token ", row));
  }
  // The labels of the text's own tokens: those around it are no words.
  Json tokens(const engine::PackedResult& result, std::string& text) const {
    const std::vector<std::int32_t>& ids = items_[result.index].ids;
    const std::vector<std::uint8_t>& parts = items_[result.index].parts;
    Json list = Json::array();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!parts.empty() && parts[i] == 0) continue;
      const std::vector<Ranked> ranked = ranking(result, i);
      const std::string name = token_name(loaded_, ids[i]);
      list.push_back({{"token", name}, {"id", ids[i]},
                      {"labels", labels_json(loaded_.model->contract, ranked)}});
      text += std::to_string(result.index) + "\t" + name + labels_text(loaded_.model->contract, ranked) + "\n";
    }
    return list;
  }

  Json answers(const engine::PackedResult& result, std::string& text) const {
    const InputItem& item = items_[result.index];
    std::vector<float> logits;
    for (std::size_t i = 0; i < item.ids.size(); ++i) {
      ranking(result, i);  // refuses what is not finite
      const float* const row = result.runner.logits(result.first_logits + i);
      logits.insert(logits.end(), row, row + 2);
    }
    Json list = Json::array();
    for (const AnswerSpan& span : best_spans(logits, item.parts, options_.longest_answer, top_k_)) {
      const std::vector<std::int32_t> ids(item.ids.begin() + static_cast<std::ptrdiff_t>(span.first),
                                          item.ids.begin() + static_cast<std::ptrdiff_t>(span.last) + 1);
      const std::string words = need_tokenizer(loaded_).decode(ids);
      char number[16];
      std::snprintf(number, sizeof number, "%.4f", span.probability);
      list.push_back({{"text", words}, {"probability", span.probability}, {"first_token", span.first},
                      {"last_token", span.last}});
      text += std::to_string(result.index) + "\t" + words + "\t" + number + "\n";
    }
    return list;
  }

  const LoadedModel& loaded_;
  const ClassifyOptions& options_;
  const std::vector<InputItem>& items_;
  Activation activation_;
  std::size_t top_k_;
};

void add_classify_options(CLI::App& app, ClassifyOptions& options) {
  add_model_options(app, options.model);
  add_input_options(app, options.input, Pairs::yes);
  app.add_option("--top-k", options.top_k, "labels of each text or token, answers of each question, most probable first (all; of a token 1, of a question 1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  app.add_option("--max-answer-tokens", options.longest_answer, "tokens of an answer to a question at most (15)")
      ->transform(count_range(1, std::int64_t{1} << 16));
  app.add_flag("--multi-label", options.multi_label, "labels do not exclude each other: sigmoid, not softmax (the model's, else no)");
  app.add_option("--output", options.output, "text or json (text)")->check(CLI::IsMember({"text", "json"}));
  app.footer("examples:\n  quern classify -m MODEL -p \"a fine film\"\n"
             "  quern classify -m MODEL -p \"A man sleeps.\" --pair \"A man is awake.\"\n"
             "  quern classify -m MODEL -f texts.jsonl --output json\n"
             "  quern classify -m QA_MODEL -p \"Who sleeps?\" --pair \"A man sleeps, a dog does not.\"");
}

}  // namespace

int cmd_classify(const std::vector<std::string>& arguments) {
  CLI::App app("Prints the labels of texts or of each of their tokens, or the answers to questions, with probabilities.",
               "quern classify");
  ClassifyOptions options;
  add_classify_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  const LoadedModel loaded = load_model(options.model);
  const contract::HeadKind kind = loaded.model->contract.head.kind;
  if (!contract::has_labels(kind))
    base::reject(loaded.model->weights.where(), "the model has no classification head");
  const std::vector<InputItem> items =
      read_inputs(loaded, options.input, context_length(loaded, options.model));
  for (const InputItem& item : items)
    if (kind == contract::HeadKind::span && std::find(item.parts.begin(), item.parts.end(), 2) == item.parts.end())
      base::reject(item.where, "the model finds answers in a text: give the question with -p and the text with --pair "
                   "(in JSON lines \"text\" and \"pair\")");
  std::vector<engine::PackedSequence> sequences;
  for (const InputItem& item : items) sequences.push_back({item.ids, item.types});
  catch_signals();
  const Printer printer(loaded, options, items);
  engine::run_packed(*loaded.model, *loaded.pool, sequences, {options.model.prefill_chunk, true, interrupted},
                     [&](const engine::PackedResult& result) { printer.print(result); });
  return 0;
}

}  // namespace quern::tool
