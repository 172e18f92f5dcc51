// The options about sampling, the same in every command that generates, and what they mean beside a
// checkpoint's defaults. Not here: search with beams and lengths (run_options.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model_options.hpp"
#include "sampling/sampler.hpp"

namespace quern::tool {

struct SamplingOptions {
  sampling::SamplerOptions values;  // of the options that no checkpoint has a word about
  std::optional<double> temperature, top_p, min_p, repeat_penalty;
  std::optional<std::size_t> top_k;
  std::int64_t seed = -1;  // -1: a new one
  std::optional<std::string> samplers, sampler_seq;
  std::vector<std::string> dry_breakers;  // none given: the usual ones
  std::vector<std::string> logit_bias;    // ID+B, ID-B, TEXT+B, "TEXT"-B
  std::vector<std::string> banned;
  std::string ban_file;
  std::vector<std::int32_t> banned_ids;
};
void add_sampling_options(CLI::App& app, SamplingOptions& options);

// Samplers of one request after another, each as if it were the only one.
class SamplerMaker {
 public:
  // What the user says, else what the checkpoint says, else quern's defaults: a decoder samples, an
  // encoder-decoder does not. Usage errors for what contradicts itself or is no token; special:
  // control tokens count as text of the answer.
  SamplerMaker(const LoadedModel& loaded, const SamplingOptions& options, bool special);

  const sampling::SamplerOptions& options() const { return options_; }
  bool greedy() const { return greedy_; }
  // Anything but the choice of the best token that a search with beams could not follow.
  bool restricts() const { return !options_.logit_bias.empty() || banned_.has_value(); }
  std::unique_ptr<sampling::Sampler> make(sampling::TokenRules rules, std::size_t allowed) const {
    return make(options_, std::move(rules), allowed);
  }
  // With other numbers than options(), of a request that brings its own.
  std::unique_ptr<sampling::Sampler> make(const sampling::SamplerOptions& options, sampling::TokenRules rules,
                                          std::size_t allowed) const;

 private:
  std::size_t vocab_size_;
  sampling::SamplerOptions options_;
  std::optional<sampling::BannedTexts> banned_;
  bool greedy_ = false;
};

}  // namespace quern::tool
