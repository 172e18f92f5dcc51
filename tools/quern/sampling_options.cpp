#include "sampling_options.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "escapes.hpp"
#include "quantity.hpp"
#include "sampling/dry_breakers.hpp"
#include "text/token_text.hpp"
#include "token_bias.hpp"

namespace quern::tool {

namespace {

constexpr const char* kGroup = "Sampling";

// Options that keep their order and take one value each time they are given.
CLI::Option* add_list(CLI::App& app, const char* name, std::vector<std::string>& target, const char* help) {
  return app.add_option(name, target, help)->allow_extra_args(false)->group(kGroup);
}

class Adder {
 public:
  explicit Adder(CLI::App& app) : app_(app) {}

  void number(const char* name, double& target, double low, double high, const char* help) {
    app_.add_option(name, target, help)->check(finite_range(low, high))->type_name("X")->group(kGroup);
  }
  void number(const char* name, std::optional<double>& target, double low, double high, const char* help) {
    app_.add_option_function<double>(name, [&target](const double& value) { target = value; }, help)
        ->check(finite_range(low, high))->type_name("X")->group(kGroup);
  }
  template <class Count>
  void count(const char* name, Count& target, std::int64_t low, std::int64_t high, const char* help) {
    app_.add_option(name, target, help)->transform(count_range(low, high))->type_name("N")->group(kGroup);
  }

 private:
  CLI::App& app_;
};

constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;

void add_truncation(CLI::App& app, SamplingOptions& o) {
  Adder add(app);
  add.number("--temp,--temperature", o.temperature, -100, 100,
             "temperature; 0 or less is greedy (the model's, else 0.8)");
  add.number("--dynatemp-range", o.values.dynatemp_range, 0, 100,
             "the temperature moves so far up and down with the entropy (0: off)");
  add.number("--dynatemp-exp", o.values.dynatemp_exponent, 0, 100, "exponent of the entropy (1)");
  app.add_option_function<std::size_t>("--top-k", [&o](const std::size_t& k) { o.top_k = k; },
                                       "keep the k best tokens (the model's, else 40); 0 is off")
      ->check(CLI::Range(std::int64_t{0}, kMostTokens))->type_name("N")->group(kGroup);
  add.number("--top-p", o.top_p, 0, 1, "keep the best with this probability (the model's, else 0.95); 1 is off");
  add.number("--min-p", o.min_p, 0, 1,
             "least probability beside the best token's (the model's, else 0.05); 0 is off");
  add.number("--typical,--typical-p", o.values.typical_p, 0, 1, "locally typical sampling (1: off)");
  add.number("--top-nsigma,--top-n-sigma", o.values.top_n_sigma, -1, 1e6,
             "keep logits within n standard deviations of the best (-1: off)");
  add.number("--xtc-probability", o.values.xtc_probability, 0, 1, "how often xtc takes likely tokens away (0: off)");
  add.number("--xtc-threshold", o.values.xtc_threshold, 0, 1, "what likely is (0.1); above 0.5 is off");
  add.count("--mirostat", o.values.mirostat, 0, 2,
            "1 or 2: mirostat in place of all samplers but temperature (0: off)");
  add.number("--mirostat-lr", o.values.mirostat_lr, 0, 1000, "its learning rate, eta (0.1)");
  add.number("--mirostat-ent", o.values.mirostat_ent, 0, 1000, "the surprise it aims at, tau, in bits (5)");
  add.number("--adaptive-target", o.values.adaptive_target, -1, 1,
             "adaptive-p: prefer tokens with a probability near this (-1: off)");
  add.number("--adaptive-decay", o.values.adaptive_decay, 0, 0.99, "how slowly its target moves (0.9)");
  add.count("--min-keep", o.values.min_keep, 0, kMostTokens, "tokens that top-p, typical, min-p and xtc leave (0)");
}

void add_penalties(CLI::App& app, SamplingOptions& o) {
  Adder add(app);
  add.number("--repeat-penalty", o.repeat_penalty, 0.01, 100,
             "penalty of the last tokens (1: off), in place of --repetition-penalty");
  add.count("--repeat-last-n", o.values.repeat_last_n, -1, kMostTokens,
            "how many those are, for all three penalties (64; 0: none, -1: all)");
  add.number("--presence-penalty", o.values.presence_penalty, -100, 100, "off each that is there (0)");
  add.number("--frequency-penalty", o.values.frequency_penalty, -100, 100, "off each, for every time (0)");
  add.number("--dry-multiplier", o.values.dry_multiplier, 0, 1000, "DRY: penalty of going on with a repetition (0: off)");
  add.number("--dry-base", o.values.dry_base, 0, 1000, "it grows with its length by this factor (1.75)");
  add.count("--dry-allowed-length", o.values.dry_allowed_length, 0, kMostTokens,
            "length of a repetition that costs nothing (2)");
  add.count("--dry-penalty-last-n", o.values.dry_penalty_last_n, -1, kMostTokens,
            "tokens it looks back over (64; 0: off, -1: all)");
  add_list(app, "--dry-sequence-breaker", o.dry_breakers,
           "a text no repetition reaches across, instead of \\n : \" * (none: nothing is); repeatable")
      ->type_name("TEXT");
}

void add_order_and_tokens(CLI::App& app, SamplingOptions& o) {
  CLI::Option* names = app.add_option_function<std::string>(
      "--samplers", [&o](const std::string& value) { o.samplers = value; },
      "their order (penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature)");
  CLI::Option* letters = app.add_option_function<std::string>(
      "--sampler-seq,--sampling-seq", [&o](const std::string& value) { o.sampler_seq = value; },
      "the same in letters (edskypmxt)");
  names->excludes(letters)->type_name("NAMES")->group(kGroup);
  letters->type_name("LETTERS")->group(kGroup);
  app.add_option("-s,--seed", o.seed, "seed; the same seed gives the same answer (-1 = a new one, printed)")
      ->check(CLI::Range(std::int64_t{-1}, INT64_MAX))->type_name("N")->group(kGroup);
  add_list(app, "-l,--logit-bias", o.logit_bias,
           "added to a token's logit: ID+B, ID-B, \"TEXT\"+B (one token); -inf: never; repeatable")
      ->type_name("TOKEN+B");
  add_list(app, "--ban", o.banned, "a text that the answer never comes to hold; repeatable")->type_name("TEXT");
  app.add_option("--ban-file", o.ban_file, "such texts, one a line")->type_name("FILE")->group(kGroup);
  app.add_option("--ban-id", o.banned_ids, "a token id that is never chosen; repeatable")
      ->allow_extra_args(false)->check(CLI::Range(std::int64_t{0}, std::int64_t{INT32_MAX}))->type_name("ID")
      ->group(kGroup);
}

std::vector<std::string> banned_texts(const SamplingOptions& options) {
  std::vector<std::string> texts;
  for (const std::string& text : options.banned) texts.push_back(unescaped(text));
  if (!options.ban_file.empty())
    for (std::string& line : read_text_lines(options.ban_file)) texts.push_back(std::move(line));
  return texts;
}

// What the checkpoint has a word about.
void settle_defaults(sampling::SamplerOptions& sampler, const contract::Contract& contract,
                     const SamplingOptions& user) {
  const contract::Generation& defaults = contract.generation;
  const bool samples = defaults.sample.value_or(contract.kind == contract::ModelKind::decoder);
  const bool steers = user.values.mirostat != 0 || user.values.dynatemp_range > 0 || user.values.adaptive_target >= 0;
  const bool greedy = !samples && !user.temperature && !steers;
  sampler.temperature = greedy ? 0.0 : user.temperature.value_or(defaults.temperature.value_or(sampler.temperature));
  sampler.top_p = user.top_p.value_or(defaults.top_p.value_or(sampler.top_p));
  sampler.min_p = user.min_p.value_or(defaults.min_p.value_or(sampler.min_p));
  sampler.repeat_penalty = user.repeat_penalty.value_or(sampler.repeat_penalty);
  const auto default_top_k = defaults.top_k ? static_cast<std::size_t>(*defaults.top_k) : sampler.top_k;
  sampler.top_k = user.top_k.value_or(default_top_k);
}

void settle_order(sampling::SamplerOptions& sampler, const SamplingOptions& user) {
  if (user.samplers) sampler.samplers = sampling::samplers_by_name(*user.samplers);
  if (user.sampler_seq) sampler.samplers = sampling::samplers_by_letter(*user.sampler_seq);
  const auto& used = sampler.samplers;
  const bool has_temperature =
      std::find(used.begin(), used.end(), sampling::SamplerKind::temperature) != used.end();
  if (!has_temperature && sampler.mirostat == 0 && user.temperature)
    base::usage_error("--temp", "has no effect: the order of samplers leaves temperature out");
  if (sampler.mirostat != 0 && sampler.adaptive_target >= 0)
    base::usage_error("--adaptive-target", "is another way to choose than --mirostat: leave one out");
}

}  // namespace

void add_sampling_options(CLI::App& app, SamplingOptions& options) {
  add_truncation(app, options);
  add_penalties(app, options);
  add_order_and_tokens(app, options);
}

SamplerMaker::SamplerMaker(const LoadedModel& loaded, const SamplingOptions& user, bool special)
    : vocab_size_(loaded.model->contract.vocab_size), options_(user.values) {
  settle_defaults(options_, loaded.model->contract, user);
  settle_order(options_, user);
  options_.seed = user.seed >= 0 ? static_cast<std::uint64_t>(user.seed) : std::random_device{}();
  for (const std::string& word : user.logit_bias) options_.logit_bias.push_back(token_bias(loaded, word));
  for (const std::int32_t id : user.banned_ids) {
    if (static_cast<std::size_t>(id) >= vocab_size_)
      base::usage_error("--ban-id", base::cat("token id ", id, " is not in 0 to ", vocab_size_ - 1));
    options_.logit_bias.push_back({id, -std::numeric_limits<float>::infinity()});
  }
  greedy_ = sampling::Sampler(options_, vocab_size_).greedy();
  const std::vector<std::string> banned = banned_texts(user);
  const bool dry = options_.dry_multiplier > 0 && options_.dry_penalty_last_n != 0;
  if (banned.empty() && (!dry || loaded.tokenizer == nullptr)) return;
  const text::Tokenizer& tokenizer = need_tokenizer(loaded);
  const std::vector<std::string> texts = text::TokenText(tokenizer).all(!special);
  if (!banned.empty()) banned_.emplace(banned, texts);
  if (!dry) return;
  std::vector<std::string> breakers;
  for (const std::string& breaker : user.dry_breakers)
    if (breaker != "none") breakers.push_back(unescaped(breaker));
  if (user.dry_breakers.empty()) breakers = sampling::default_dry_breakers();
  options_.dry_breakers = sampling::dry_breakers(breakers, texts, [&](std::string_view text) {
    return tokenizer.encode(text, {.add_special = false, .parse_special = false});
  });
}

std::unique_ptr<sampling::Sampler> SamplerMaker::make(const sampling::SamplerOptions& options,
                                                      sampling::TokenRules rules, std::size_t allowed) const {
  auto sampler = std::make_unique<sampling::Sampler>(options, vocab_size_);
  if (allowed != 0) sampler->set_allowed(allowed);
  if (rules.active()) sampler->set_rules(std::move(rules));
  if (banned_) sampler->set_banned(*banned_);
  return sampler;
}

}  // namespace quern::tool
