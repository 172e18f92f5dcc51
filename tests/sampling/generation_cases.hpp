// The stored answers of the reference library (scripts/make_generation_goldens.py) and what they
// are about.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "sampling/token_rules.hpp"

namespace quern::tests {

inline base::Json generation_cases(const std::string& name) {
  const auto path = std::filesystem::path(QUERN_SOURCE_DIR) / "tests/data/generation" / name;
  return base::parse_json(base::read_text_file(path, std::size_t{1} << 22), path.string());
}

inline std::vector<std::int32_t> ids_of(const base::Json& list) {
  return list.get<std::vector<std::int32_t>>();
}

// Options in the reference library's names.
inline sampling::TokenRuleOptions rule_options(const base::Json& o, std::size_t prompt_length) {
  sampling::TokenRuleOptions rules;
  rules.prompt_length = prompt_length;
  rules.max_length = o.value("max_length", std::size_t{0});
  if (o.contains("eos_token_id")) rules.ends = ids_of(o["eos_token_id"]);
  rules.repetition_penalty = o.value("repetition_penalty", 1.0);
  rules.no_repeat_ngram = o.value("no_repeat_ngram_size", std::size_t{0});
  for (const base::Json& word : o.value("bad_words_ids", base::Json::array()))
    rules.bad_words.push_back(ids_of(word));
  rules.min_length = o.value("min_length", std::size_t{0});
  rules.min_new_tokens = o.value("min_new_tokens", std::size_t{0});
  if (o.contains("forced_bos_token_id")) rules.forced_bos = o["forced_bos_token_id"].get<int>();
  if (o.contains("forced_eos_token_id")) rules.forced_eos = o["forced_eos_token_id"].get<int>();
  if (o.contains("suppress_tokens")) rules.suppress = ids_of(o["suppress_tokens"]);
  if (o.contains("begin_suppress_tokens"))
    rules.begin_suppress = ids_of(o["begin_suppress_tokens"]);
  rules.renormalize = o.value("renormalize_logits", false);
  return rules;
}

// null stands for -infinity.
inline std::vector<float> scores_of(const base::Json& list) {
  std::vector<float> scores;
  for (const base::Json& value : list)
    scores.push_back(value.is_null() ? -std::numeric_limits<float>::infinity()
                                     : value.get<float>());
  return scores;
}

// Equal within the rounding of the stored decimals and of float32 sums.
inline bool near(float a, float b) {
  return a == b || std::fabs(a - b) <= 2e-5F * std::max(1.0F, std::fabs(b));
}

}  // namespace quern::tests
