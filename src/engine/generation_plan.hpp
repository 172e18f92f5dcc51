// How one answer is generated: what the user says, else what the checkpoint says, else quern's
// defaults, as finished numbers. Not here: sampling options of the command line, the generation
// itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.hpp"
#include "engine/beam_search.hpp"
#include "sampling/token_rules.hpp"

namespace quern::engine {

// What a user asks for; absent: the checkpoint decides.
struct GenerationRequest {
  std::optional<std::size_t> n_beams, max_new_tokens, min_new_tokens, no_repeat_ngram;
  std::optional<double> length_penalty, repetition_penalty;
  std::optional<EarlyStopping> early_stopping;
  std::size_t n_return = 1;
  bool sample = false;       // the user asks for sampling, so a checkpoint's beams are not used
  bool ignore_ends = false;  // no end token ends the answer or is forced
};

struct GenerationPlan {
  sampling::TokenRuleOptions rules;
  BeamOptions beams;  // n_beams 1: no search
  std::size_t max_new_tokens = 0;
  std::vector<std::int32_t> stop_ids;
};

// For a sequence that begins with `prompt_length` ids (of an encoder_decoder: of the decoder's
// input) and may have `context` positions. The id of the last token needs no position, so
// max_length is at most context + 1. Usage errors for numbers that contradict each other.
GenerationPlan plan_generation(const contract::Contract& contract, const GenerationRequest& request,
                               std::size_t prompt_length, std::size_t context);

// "true", "false", "never", as in generation_config.json.
std::optional<EarlyStopping> early_stopping_of(const std::string& word);

// What the decoder's input of an encoder_decoder begins with. Input error when the contract has
// nothing.
std::vector<std::int32_t> decoder_prompt(const contract::Contract& contract);

// One line for people: "beam search, 4 beams, length penalty 1" or "greedy".
std::string search_description(const GenerationPlan& plan, bool greedy);

}  // namespace quern::engine
