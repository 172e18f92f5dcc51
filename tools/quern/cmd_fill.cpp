// quern fill: what a masked-token model puts in place of the mask tokens of a text.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "arguments.hpp"
#include "base/error.hpp"
#include "command.hpp"
#include "engine/packed_batch.hpp"
#include "ranking.hpp"
#include "signals.hpp"
#include "terminal.hpp"
#include "text_input.hpp"

namespace quern::tool {

namespace {

using Json = nlohmann::ordered_json;

struct FillOptions {
  ModelOptions model;
  InputOptions input;
  std::size_t top_k = 5;
  std::optional<std::int32_t> mask;  // absent: the model's
  std::string output = "text";
};

std::string text_of(const LoadedModel& loaded, const std::vector<std::int32_t>& ids) {
  return loaded.tokenizer ? loaded.tokenizer->decode(ids, true) : "";
}

void print(const LoadedModel& loaded, const FillOptions& options, const InputItem& item,
           const engine::PackedResult& result) {
  const std::int32_t mask = *options.mask;
  const std::size_t vocab_size = loaded.model->contract.vocab_size;
  const std::size_t allowed = loaded.tokenizer ? std::min(loaded.tokenizer->size(), vocab_size) : vocab_size;
  Json masks = Json::array();
  std::string text;
  for (std::size_t i = 0; i < item.ids.size(); ++i) {
    if (item.ids[i] != mask) continue;
    Json fillings = Json::array();
    const std::span<const float> row(result.runner.logits(result.first_logits + i), vocab_size);
    const std::string place = base::cat(item.where, ", token ", i);
    for (const Ranked& entry : rank(row.first(allowed), options.top_k, Activation::softmax, place)) {
      std::vector<std::int32_t> filled = item.ids;
      filled[i] = static_cast<std::int32_t>(entry.index);
      const std::string token = text_of(loaded, {filled[i]});
      fillings.push_back({{"token", token}, {"id", entry.index}, {"probability", entry.probability},
                          {"text", text_of(loaded, filled)}});
      char number[16];
      std::snprintf(number, sizeof number, "%.4f", entry.probability);
      text += std::to_string(result.index) + "\t" + std::to_string(i) + "\t" + number + "\t" +
              (token.empty() ? std::to_string(entry.index) : token) + "\n";
    }
    masks.push_back({{"position", i}, {"fillings", std::move(fillings)}});
  }
  if (options.output == "json")
    std::cout << Json({{"index", result.index}, {"masks", std::move(masks)}})
                     .dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    write_model_text(text);
}

void check_masks(const std::vector<InputItem>& items, std::int32_t mask) {
  for (const InputItem& item : items)
    if (std::find(item.ids.begin(), item.ids.end(), mask) == item.ids.end())
      base::reject(item.where, "the text has no mask token");
}

}  // namespace

int cmd_fill(const std::vector<std::string>& arguments) {
  CLI::App app("Prints the most probable tokens for every mask token of a text: input, position, probability, token.",
               "quern fill");
  FillOptions options;
  add_model_options(app, options.model);
  add_input_options(app, options.input, Pairs::no);
  app.add_option("--top-k", options.top_k, "fillings of each mask, most probable first (5)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  app.add_option_function<std::int32_t>("--mask-id", [&](const std::int32_t& id) { options.mask = id; },
                                        "id of the mask token (the model's)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{INT32_MAX}));
  app.add_option("--output", options.output, "text or json (text)")->check(CLI::IsMember({"text", "json"}));
  app.footer("example:\n  quern fill -m MODEL -p \"Paris is the [MASK] of France.\"");
  if (parse_arguments(app, arguments)) return 0;
  const LoadedModel loaded = load_model(options.model);
  const contract::Contract& contract = loaded.model->contract;
  if (contract.kind != contract::ModelKind::encoder || contract.head.kind != contract::HeadKind::lm)
    base::reject(loaded.model->weights.where(), "the model has no masked-token head");
  if (!options.mask) options.mask = contract.tokens.mask;
  if (!options.mask)
    base::reject(loaded.model->weights.where(), "the model does not name its mask token: give --mask-id");
  if (static_cast<std::size_t>(*options.mask) >= contract.vocab_size)
    base::usage_error("--mask-id", base::cat("not one of the ", contract.vocab_size, " token ids of the model"));
  const std::vector<InputItem> items =
      read_inputs(loaded, options.input, context_length(loaded, options.model));
  check_masks(items, *options.mask);
  std::vector<engine::PackedSequence> sequences;
  for (const InputItem& item : items) sequences.push_back({item.ids, item.types});
  catch_signals();
  engine::run_packed(*loaded.model, *loaded.pool, sequences, {options.model.prefill_chunk, true, interrupted},
                     [&](const engine::PackedResult& result) { print(loaded, options, items[result.index], result); });
  return 0;
}

}  // namespace quern::tool
