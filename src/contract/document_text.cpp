#include "contract/document.hpp"

namespace quern::contract {

using base::Json;

Json tokens_document(const Tokens& tokens) {
  return {{"bos", optional_document(tokens.bos)},
          {"eos", Json(tokens.eos)},
          {"pad", optional_document(tokens.pad)},
          {"unk", optional_document(tokens.unk)},
          {"mask", optional_document(tokens.mask)},
          {"decoder_start", optional_document(tokens.decoder_start)},
          {"add_bos", tokens.add_bos},
          {"add_eos", tokens.add_eos}};
}

Json generation_document(const Generation& generation) {
  return {{"sample", optional_document(generation.sample)},
          {"temperature", optional_document(generation.temperature)},
          {"top_k", optional_document(generation.top_k)},
          {"top_p", optional_document(generation.top_p)},
          {"min_p", optional_document(generation.min_p)},
          {"repetition_penalty", optional_document(generation.repetition_penalty)},
          {"max_new_tokens", optional_document(generation.max_new_tokens)},
          {"min_new_tokens", optional_document(generation.min_new_tokens)},
          {"max_length", optional_document(generation.max_length)},
          {"min_length", optional_document(generation.min_length)},
          {"n_beams", optional_document(generation.n_beams)},
          {"length_penalty", optional_document(generation.length_penalty)},
          {"early_stopping", optional_document(generation.early_stopping)},
          {"no_repeat_ngram", optional_document(generation.no_repeat_ngram)},
          {"forced_bos", optional_document(generation.forced_bos)},
          {"forced_eos", optional_document(generation.forced_eos)},
          {"suppress", Json(generation.suppress)},
          {"begin_suppress", Json(generation.begin_suppress)},
          {"bad_words", Json(generation.bad_words)},
          {"renormalize", generation.renormalize}};
}

namespace {

Json pair_document(const PairTemplate& pair) {
  return {{"prefix_ids", Json(pair.prefix_ids)},     {"prefix_types", Json(pair.prefix_types)},
          {"first_type", pair.first_type},           {"middle_ids", Json(pair.middle_ids)},
          {"middle_types", Json(pair.middle_types)}, {"second_type", pair.second_type},
          {"suffix_ids", Json(pair.suffix_ids)},     {"suffix_types", Json(pair.suffix_types)}};
}

}  // namespace

Json tokenizer_document(const TokenizerDescription& tokenizer) {
  Json added = Json::array();
  for (const AddedToken& token : tokenizer.added)
    added.push_back({{"content", token.content},
                     {"id", token.id},
                     {"special", token.special},
                     {"normalized", token.normalized},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip}});
  return {{"model", tokenizer.model},
          {"normalizers", Json(tokenizer.normalizers)},
          {"pre_tokenizers", Json(tokenizer.pre_tokenizers)},
          {"byte_level", tokenizer.byte_level},
          {"add_prefix_space", tokenizer.add_prefix_space},
          {"ignore_merges", tokenizer.ignore_merges},
          {"byte_fallback", tokenizer.byte_fallback},
          {"fuse_unk", tokenizer.fuse_unk},
          {"unk_id", optional_document(tokenizer.unk_id)},
          {"subword_prefix", tokenizer.subword_prefix},
          {"word_suffix", tokenizer.word_suffix},
          {"max_word_chars", tokenizer.max_word_chars},
          {"score_sum", tokenizer.score_sum},
          {"user_defined", Json(tokenizer.user_defined)},
          {"prefix_ids", Json(tokenizer.prefix_ids)},
          {"prefix_types", Json(tokenizer.prefix_types)},
          {"text_type", tokenizer.text_type},
          {"suffix_ids", Json(tokenizer.suffix_ids)},
          {"suffix_types", Json(tokenizer.suffix_types)},
          {"pair", tokenizer.pair ? pair_document(*tokenizer.pair) : Json(nullptr)},
          {"decoders", Json(tokenizer.decoders)},
          {"added", std::move(added)}};
}

Json chat_document(const ChatDescription& chat) {
  Json named = Json::object(), special = Json::object();
  for (const auto& [name, text] : chat.named) named[name] = text;
  for (const auto& [name, text] : chat.special) special[name] = text;
  return {{"jinja", chat.jinja},
          {"builtin", chat.builtin},
          {"default_system", chat.default_system},
          {"named", std::move(named)},
          {"special", std::move(special)}};
}

}  // namespace quern::contract
