#include "engine/generation_plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "contract/limits.hpp"

namespace quern::engine {

namespace {

std::size_t size_or(const std::optional<std::int64_t>& value, std::size_t otherwise) {
  return value ? static_cast<std::size_t>(*value) : otherwise;
}

// Length of the whole sequence. A number of new tokens decides over a number of all tokens, as in
// the reference library; without either the context does.
std::size_t max_length(const contract::Generation& defaults, const GenerationRequest& request,
                       std::size_t prompt_length, std::size_t context) {
  const std::size_t most = context + 1;
  if (request.max_new_tokens) {
    const std::size_t room = most > prompt_length ? most - prompt_length : 0;
    return prompt_length + std::min(room, *request.max_new_tokens);
  }
  if (defaults.max_new_tokens)
    return std::min(most, prompt_length + size_or(defaults.max_new_tokens, 0));
  const std::size_t stated = size_or(defaults.max_length, 0);
  return stated > prompt_length ? std::min(most, stated) : most;
}

sampling::TokenRuleOptions rules_of(const contract::Contract& contract, const GenerationRequest& request) {
  const contract::Generation& g = contract.generation;
  sampling::TokenRuleOptions rules;
  rules.repetition_penalty = request.repetition_penalty.value_or(g.repetition_penalty.value_or(1));
  rules.no_repeat_ngram = request.no_repeat_ngram.value_or(size_or(g.no_repeat_ngram, 0));
  rules.bad_words = g.bad_words;
  rules.forced_bos = g.forced_bos;
  rules.suppress = g.suppress;
  rules.begin_suppress = g.begin_suppress;
  rules.renormalize = g.renormalize;
  if (request.ignore_ends) return rules;
  rules.ends = contract.tokens.eos;
  rules.forced_eos = g.forced_eos;
  if (request.min_new_tokens || g.min_new_tokens)
    rules.min_new_tokens = request.min_new_tokens.value_or(size_or(g.min_new_tokens, 0));
  else
    rules.min_length = size_or(g.min_length, 0);
  return rules;
}

BeamOptions beams_of(const contract::Generation& defaults, const GenerationRequest& request) {
  BeamOptions beams;
  const std::size_t usual = request.sample ? 1 : size_or(defaults.n_beams, 1);
  beams.n_beams = request.n_beams.value_or(usual);
  beams.n_return = request.n_return;
  if (beams.n_beams < 1 || beams.n_beams > static_cast<std::size_t>(contract::kMaxBeams))
    base::usage_error("--num-beams", base::cat("must be 1 to ", contract::kMaxBeams));
  // Without a search the answers are samples, as many as one likes.
  if (beams.n_return < 1 || (beams.n_beams > 1 && beams.n_return > beams.n_beams))
    base::usage_error("--num-return-sequences",
                      base::cat("must be 1 to the number of beams, ", beams.n_beams));
  if (request.sample && beams.n_beams > 1)
    base::usage_error("--num-beams", "a search with beams does not sample: leave --temp out");
  beams.length_penalty = request.length_penalty.value_or(defaults.length_penalty.value_or(1));
  beams.early_stopping = request.early_stopping.value_or(
      early_stopping_of(defaults.early_stopping.value_or("false")).value_or(EarlyStopping::no));
  return beams;
}

}  // namespace

GenerationPlan plan_generation(const contract::Contract& contract, const GenerationRequest& request,
                               std::size_t prompt_length, std::size_t context) {
  GenerationPlan plan;
  const std::size_t length = max_length(contract.generation, request, prompt_length, context);
  plan.max_new_tokens = length > prompt_length ? length - prompt_length : 0;
  plan.rules = rules_of(contract, request);
  plan.rules.prompt_length = prompt_length;
  plan.rules.max_length = length;
  plan.beams = beams_of(contract.generation, request);
  plan.beams.max_length = length;
  if (!request.ignore_ends) plan.stop_ids = plan.beams.ends = contract.tokens.eos;
  return plan;
}

std::optional<EarlyStopping> early_stopping_of(const std::string& word) {
  if (word == "true") return EarlyStopping::yes;
  if (word == "false") return EarlyStopping::no;
  if (word == "never") return EarlyStopping::never;
  return std::nullopt;
}

std::vector<std::int32_t> decoder_prompt(const contract::Contract& contract) {
  const contract::Tokens& tokens = contract.tokens;
  const std::optional<std::int32_t> start =
      tokens.decoder_start ? tokens.decoder_start : tokens.bos;
  if (!start)
    base::reject("tokens.decoder_start", "the model does not say what the decoder begins with");
  return {*start};
}

std::string search_description(const GenerationPlan& plan, bool greedy) {
  if (plan.beams.n_beams == 1) return greedy ? "greedy" : "sampling";
  const char* const words[] = {"false", "true", "never"};
  return base::cat("beam search, ", plan.beams.n_beams, " beams, length penalty ",
                   plan.beams.length_penalty, ", early stopping ",
                   words[static_cast<std::size_t>(plan.beams.early_stopping)]);
}

}  // namespace quern::engine
