#include <algorithm>

#include "contract/rules.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;

void check_tokens(const Rules& rules) {
  const Tokens& tokens = rules.contract.tokens;
  if (tokens.bos) rules.token_id("tokens.bos", *tokens.bos);
  if (tokens.pad) rules.token_id("tokens.pad", *tokens.pad);
  if (tokens.unk) rules.token_id("tokens.unk", *tokens.unk);
  if (tokens.mask) rules.token_id("tokens.mask", *tokens.mask);
  if (tokens.decoder_start) rules.token_id("tokens.decoder_start", *tokens.decoder_start);
  rules.range("tokens.eos", tokens.eos.size(), 0, kMaxIds);
  for (std::size_t i = 0; i < tokens.eos.size(); ++i)
    rules.token_id(cat("tokens.eos[", i, "]"), tokens.eos[i]);
  rules.require(!tokens.add_bos || tokens.bos, "tokens.add_bos", "there is no bos token to add");
  rules.require(!tokens.add_eos || !tokens.eos.empty(), "tokens.add_eos",
                "there is no eos token to add");
}

namespace {

template <class Names>
void check_word(const Rules& rules, std::string_view path, std::string_view word,
                const Names& names) {
  std::vector<std::string_view> known;
  for (const auto& entry : names) known.push_back(entry.name);
  if (std::find(known.begin(), known.end(), word) == known.end())
    rules.fail(
        path, cat("unknown value \"", base::printable(word, 60), "\"; known: ", base::join(known)));
}

void check_id_list(const Rules& rules, const std::string& path,
                   const std::vector<std::int32_t>& ids) {
  rules.range(path, ids.size(), 0, kMaxIds);
  for (std::size_t i = 0; i < ids.size(); ++i) rules.token_id(cat(path, "[", i, "]"), ids[i]);
}

// What beam search and the rules about single tokens need.
void check_search(const Rules& rules, const Generation& generation) {
  const auto at_least = [&](const std::optional<std::int64_t>& value, std::int64_t low,
                            std::string_view path) {
    rules.require(!value || *value >= low, path, cat("must be at least ", low));
  };
  at_least(generation.min_new_tokens, 0, "generation.min_new_tokens");
  at_least(generation.max_length, 1, "generation.max_length");
  at_least(generation.min_length, 0, "generation.min_length");
  at_least(generation.n_beams, 1, "generation.n_beams");
  at_least(generation.no_repeat_ngram, 0, "generation.no_repeat_ngram");
  rules.require(!generation.n_beams || *generation.n_beams <= kMaxBeams, "generation.n_beams",
                cat("is at most ", kMaxBeams));
  if (generation.early_stopping)
    check_word(rules, "generation.early_stopping", *generation.early_stopping, kEarlyStopping);
  if (generation.length_penalty)
    rules.between("generation.length_penalty", *generation.length_penalty, -100, 100);
  if (generation.forced_bos) rules.token_id("generation.forced_bos", *generation.forced_bos);
  if (generation.forced_eos) rules.token_id("generation.forced_eos", *generation.forced_eos);
  check_id_list(rules, "generation.suppress", generation.suppress);
  check_id_list(rules, "generation.begin_suppress", generation.begin_suppress);
  rules.range("generation.bad_words", generation.bad_words.size(), 0, kMaxIds);
  for (std::size_t i = 0; i < generation.bad_words.size(); ++i) {
    rules.require(!generation.bad_words[i].empty(), cat("generation.bad_words[", i, "]"),
                  "a banned sequence has a token");
    check_id_list(rules, cat("generation.bad_words[", i, "]"), generation.bad_words[i]);
  }
}

}  // namespace

void check_generation(const Rules& rules) {
  check_search(rules, rules.contract.generation);
  const Generation& generation = rules.contract.generation;
  if (generation.temperature)
    rules.between("generation.temperature", *generation.temperature, 0, 1e6);
  if (generation.top_k)
    rules.require(*generation.top_k >= 0, "generation.top_k", "must not be negative");
  if (generation.top_p) rules.between("generation.top_p", *generation.top_p, 0, 1);
  if (generation.min_p) rules.between("generation.min_p", *generation.min_p, 0, 1);
  if (generation.repetition_penalty)
    rules.positive("generation.repetition_penalty", *generation.repetition_penalty);
  if (generation.max_new_tokens)
    rules.require(*generation.max_new_tokens > 0, "generation.max_new_tokens", "must be above 0");
}

namespace {

void check_steps(const Rules& rules, const std::string& path,
                 const std::vector<std::string>& steps) {
  rules.range(path, steps.size(), 0, kMaxSteps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    rules.require(!steps[i].empty(), cat(path, "[", i, "]"), "a step has a name");
    rules.label(cat(path, "[", i, "]"), steps[i]);
  }
}

// Ids around a text and the token types beside them.
void check_affix(const Rules& rules, const std::string& path, const std::vector<std::int32_t>& ids,
                 const std::vector<std::int32_t>& types) {
  check_id_list(rules, cat(path, "_ids"), ids);
  rules.require(types.size() == ids.size(), cat(path, "_types"), "one type for each id");
  for (const std::int32_t type : types)
    rules.range(cat(path, "_types"), static_cast<std::size_t>(type), 0, kMaxTokenTypes - 1);
}

void check_type(const Rules& rules, const std::string& path, std::int32_t type) {
  rules.range(path, static_cast<std::size_t>(type), 0, kMaxTokenTypes - 1);
}

void check_pair(const Rules& rules, const PairTemplate& pair) {
  check_affix(rules, "tokenizer.pair.prefix", pair.prefix_ids, pair.prefix_types);
  check_affix(rules, "tokenizer.pair.middle", pair.middle_ids, pair.middle_types);
  check_affix(rules, "tokenizer.pair.suffix", pair.suffix_ids, pair.suffix_types);
  check_type(rules, "tokenizer.pair.first_type", pair.first_type);
  check_type(rules, "tokenizer.pair.second_type", pair.second_type);
}

void check_words(const Rules& rules, const TokenizerDescription& tokenizer) {
  check_word(rules, "tokenizer.model", tokenizer.model, kTokenizerModels);
  check_word(rules, "tokenizer.score_sum", tokenizer.score_sum, kScoreSums);
  check_steps(rules, "tokenizer.normalizers", tokenizer.normalizers);
  check_steps(rules, "tokenizer.pre_tokenizers", tokenizer.pre_tokenizers);
  check_steps(rules, "tokenizer.decoders", tokenizer.decoders);
  rules.label("tokenizer.subword_prefix", tokenizer.subword_prefix);
  rules.label("tokenizer.word_suffix", tokenizer.word_suffix);
  rules.range("tokenizer.max_word_chars", tokenizer.max_word_chars, 0, kMaxLabelBytes);
}

}  // namespace

// The names of normalizers, pre-tokenizers and decoders are text/'s; it refuses what it does not
// know.
void check_tokenizer(const Rules& rules) {
  const TokenizerDescription& tokenizer = rules.contract.tokenizer;
  check_words(rules, tokenizer);
  if (tokenizer.unk_id) rules.token_id("tokenizer.unk_id", *tokenizer.unk_id);
  rules.range("tokenizer.user_defined", tokenizer.user_defined.size(), 0, kMaxAddedTokens);
  for (const std::int32_t id : tokenizer.user_defined) rules.token_id("tokenizer.user_defined", id);
  check_affix(rules, "tokenizer.prefix", tokenizer.prefix_ids, tokenizer.prefix_types);
  check_affix(rules, "tokenizer.suffix", tokenizer.suffix_ids, tokenizer.suffix_types);
  check_type(rules, "tokenizer.text_type", tokenizer.text_type);
  if (tokenizer.pair) check_pair(rules, *tokenizer.pair);
  rules.range("tokenizer.added", tokenizer.added.size(), 0, kMaxAddedTokens);
  for (std::size_t i = 0; i < tokenizer.added.size(); ++i) {
    const AddedToken& token = tokenizer.added[i];
    // Ids beyond the embedding exist in real checkpoints (added tokens nobody trained), so only the
    // bound.
    rules.require(token.id >= 0 && static_cast<std::size_t>(token.id) < kMaxVocab,
                  cat("tokenizer.added[", i, "].id"), cat("an id in [0, ", kMaxVocab, ")"));
    rules.require(!token.content.empty(), cat("tokenizer.added[", i, "].content"),
                  "an added token has text");
    rules.label(cat("tokenizer.added[", i, "].content"), token.content);
  }
  check_word(rules, "chat.builtin", rules.contract.chat.builtin, kBuiltinTemplates);
}

}  // namespace quern::contract
