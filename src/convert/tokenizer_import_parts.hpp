// Shared between the readers of tokenizer.json and of GGUF vocabularies; not for other folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_reader.hpp"
#include "checkpoint/gguf.hpp"
#include "convert/tokenizer_import.hpp"
#include "text/tokenizer_tables.hpp"

namespace quern::convert {

// A tokenizer that is well formed but of a kind that quern does not have yet: the conversion goes
// on without one. Input that is damaged is an Error instead.
struct UnsupportedTokenizer {
  std::string reason;  // "tokenizer model Unigram"
};

// ---- vocabulary (tokenizer_import_vocabulary.cpp)
// -----------------------------------------------------

// Spelled tokens on their way to the tables: checks ids, undoes the byte alphabet, resolves merges.
class VocabularyBuilder {
 public:
  // vocab_size: rows of the embedding, 0 when unknown; ids beyond it are input errors.
  VocabularyBuilder(std::string_view where, std::size_t vocab_size)
      : where_(where), vocab_size_(vocab_size) {}

  // decode_only: gives text, but the model never produces it (unused ids, control tokens).
  void add_token(std::string spelling, std::int64_t id, bool decode_only = false);
  void add_merge(std::string_view left, std::string_view right);
  std::int32_t id_of(std::string_view spelling) const;    // -1 when absent
  const std::string* spelling_of(std::int64_t id) const;  // nullptr when the id is free

  // The finished vocabulary; notices about bytes without a token and tokens with equal text.
  text::Vocabulary finish(std::vector<std::string>& notices);

 private:
  struct Entry {
    std::string spelling;
    bool used = false, decode_only = false;
  };
  std::string where_;
  std::size_t vocab_size_;
  std::vector<Entry> entries_;  // by id
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<text::Vocabulary::Merge> merges_;
};

// Splits "a b" at its single space; an input error naming the merge otherwise.
std::pair<std::string_view, std::string_view> split_merge(std::string_view merge, std::size_t rank,
                                                          std::string_view where);

// ---- steps of tokenizer.json (tokenizer_import_steps.cpp)
// ---------------------------------------------

// Each adds to the description; an unknown type is an input error that quotes it.
void import_normalizer(const base::Json& value, std::string_view where,
                       contract::TokenizerDescription& out);
void import_pre_tokenizer(const base::Json& value, std::string_view where,
                          contract::TokenizerDescription& out);
void import_post_processor(const base::Json& value, std::string_view where,
                           contract::TokenizerDescription& out);
bool has_byte_level_decoder(const base::Json& value);

// Loose access to JSON of others: a wrong kind is an input error naming the key.
const base::Json* member(const base::Json& object,
                         std::string_view key);  // nullptr when absent or null
std::string text_member(const base::Json& object, std::string_view key, std::string_view where);
bool flag_member(const base::Json& object, std::string_view key, bool fallback,
                 std::string_view where);
std::int64_t id_member(const base::Json& object, std::string_view key, std::string_view where);

// ---- whole sources
// ------------------------------------------------------------------------------------

// tokenizer.json and its side files ("" where absent).
struct SideFiles {
  std::string tokenizer_json, tokenizer_config, special_tokens_map, chat_jinja, chat_json;
};

std::optional<UnsupportedTokenizer> import_tokenizer_json(const SideFiles& files,
                                                          std::string_view where,
                                                          std::size_t vocab_size,
                                                          ImportedTokenizer& out);
std::optional<UnsupportedTokenizer> import_tokenizer_gguf(const checkpoint::GgufFile& file,
                                                          std::string_view where,
                                                          std::size_t vocab_size,
                                                          ImportedTokenizer& out);

// Special tokens and the chat template from tokenizer_config.json and its neighbours.
void import_side_files(const SideFiles& files, ImportedTokenizer& out);

// Adds bos and eos around plain text where the post-processor does not, as add_bos and add_eos say;
// sets tokens.add_bos and add_eos to what the prefix and suffix now do.
void complete_affixes(bool add_bos, bool add_eos, ImportedTokenizer& out);

// Recognises a template's plain form: builtin and default_system.
void describe_chat(std::string jinja, contract::ChatDescription& chat);

// Adds or checks one added token: ids and contents are unique.
class AddedTokens {
 public:
  AddedTokens(contract::TokenizerDescription& description, std::string_view where)
      : added_(description.added), where_(where) {}
  void add(contract::AddedToken token);
  bool has_id(std::int32_t id) const { return ids_.contains(id); }
  std::int32_t id_of(std::string_view content) const;  // -1 when absent

 private:
  std::vector<contract::AddedToken>& added_;
  std::string where_;
  std::unordered_map<std::int32_t, std::size_t> ids_;
  std::unordered_map<std::string, std::int32_t> contents_;
};

}  // namespace quern::convert
