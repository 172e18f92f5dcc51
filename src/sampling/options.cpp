#include "sampling/options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::sampling {

namespace {

struct Name {
  SamplerKind kind;
  char letter;
  std::array<std::string_view, 4> words;  // the first is what we print
};

constexpr std::array<Name, 9> kNames = {{
    {SamplerKind::penalties, 'e', {"penalties"}},
    {SamplerKind::dry, 'd', {"dry"}},
    {SamplerKind::top_n_sigma, 's', {"top_n_sigma", "top_nsigma"}},
    {SamplerKind::top_k, 'k', {"top_k"}},
    {SamplerKind::typ_p, 'y', {"typ_p", "typical_p", "typical", "typ"}},
    {SamplerKind::top_p, 'p', {"top_p", "nucleus"}},
    {SamplerKind::min_p, 'm', {"min_p"}},
    {SamplerKind::xtc, 'x', {"xtc"}},
    {SamplerKind::temperature, 't', {"temperature", "temp"}},
}};

void add_once(std::vector<SamplerKind>& samplers, SamplerKind kind, std::string_view option) {
  if (std::find(samplers.begin(), samplers.end(), kind) != samplers.end())
    base::usage_error(option, base::cat("names \"", sampler_name(kind), "\" twice"));
  samplers.push_back(kind);
}

const Name* by_word(std::string_view word) {
  std::string plain(word);
  std::replace(plain.begin(), plain.end(), '-', '_');
  for (const Name& name : kNames)
    for (const std::string_view known : name.words)
      if (!known.empty() && known == plain) return &name;
  return nullptr;
}

[[noreturn]] void unknown_word(std::string_view word) {
  std::vector<std::string_view> known;
  for (const Name& name : kNames) known.push_back(name.words[0]);
  const std::string near = base::nearest(word, known);
  base::usage_error("--samplers",
                    base::cat("unknown sampler \"", base::printable(word, 40), "\"",
                              near.empty() ? "" : base::cat(", did you mean \"", near, "\"?"),
                              "; known: ", base::join(known)));
}

void check_range(std::string_view option, double value, double low, double high) {
  if (!(value >= low && value <= high))
    base::usage_error(option, base::cat("must lie between ", low, " and ", high));
}

constexpr double kMost = 1e6;  // of numbers without a natural bound

}  // namespace

std::vector<SamplerKind> default_samplers() {
  std::vector<SamplerKind> samplers;
  for (const Name& name : kNames) samplers.push_back(name.kind);
  return samplers;
}

std::vector<SamplerKind> samplers_by_name(std::string_view names) {
  std::vector<SamplerKind> samplers;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(';'), names.size());
    const std::string_view word = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    if (word.empty()) continue;
    const Name* const name = by_word(word);
    if (name == nullptr) unknown_word(word);
    add_once(samplers, name->kind, "--samplers");
  }
  return samplers;
}

std::vector<SamplerKind> samplers_by_letter(std::string_view letters) {
  std::vector<SamplerKind> samplers;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto found = std::find_if(kNames.begin(), kNames.end(),
                                    [&](const Name& name) { return name.letter == letters[i]; });
    if (found == kNames.end())
      base::usage_error("--sampler-seq",
                        base::cat("unknown letter \"", base::printable(letters.substr(i, 1)),
                                  "\"; known: e d s k y p m x t"));
    add_once(samplers, found->kind, "--sampler-seq");
  }
  return samplers;
}

std::string_view sampler_name(SamplerKind kind) {
  for (const Name& name : kNames)
    if (name.kind == kind) return name.words[0];
  QUERN_ASSERT(!"sampler without a name");
  return {};
}

void check_options(const SamplerOptions& o) {
  check_range("--temp", o.temperature, -kMost, kMost);
  check_range("--dynatemp-range", o.dynatemp_range, 0, kMost);
  check_range("--dynatemp-exp", o.dynatemp_exponent, -kMost, kMost);
  check_range("--top-p", o.top_p, 0, 1);
  check_range("--min-p", o.min_p, 0, 1);
  check_range("--typical", o.typical_p, 0, 1);
  check_range("--top-nsigma", o.top_n_sigma, -kMost, kMost);
  check_range("--xtc-probability", o.xtc_probability, 0, 1);
  check_range("--xtc-threshold", o.xtc_threshold, 0, 1);
  if (!(o.repeat_penalty > 0)) base::usage_error("--repeat-penalty", "must be larger than 0");
  check_range("--repeat-penalty", o.repeat_penalty, 0, kMost);
  check_range("--presence-penalty", o.presence_penalty, -kMost, kMost);
  check_range("--frequency-penalty", o.frequency_penalty, -kMost, kMost);
  check_range("--dry-multiplier", o.dry_multiplier, 0, kMost);
  check_range("--dry-base", o.dry_base, 0, kMost);
  check_range("--mirostat", o.mirostat, 0, 2);
  check_range("--mirostat-ent", o.mirostat_ent, 0, kMost);
  check_range("--mirostat-lr", o.mirostat_lr, 0, kMost);
  check_range("--adaptive-target", o.adaptive_target, -kMost, 1);
  check_range("--adaptive-decay", o.adaptive_decay, 0, 0.99);
  if (o.repeat_last_n < kWholeSequence) base::usage_error("--repeat-last-n", "must be -1 or more");
  if (o.dry_penalty_last_n < kWholeSequence)
    base::usage_error("--dry-penalty-last-n", "must be -1 or more");
  for (const auto& [id, bias] : o.logit_bias)
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      base::usage_error("--logit-bias", "must be a finite number or -inf");
}

}  // namespace quern::sampling
