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
  // subword_prefix: it is left out where the right part joins.
  void add_merge(std::string_view left, std::string_view right,
                 std::string_view subword_prefix = {});
  // The same, but a merge of tokens that do not exist is left out (false), as llama.cpp never meets it.
  bool add_known_merge(std::string_view left, std::string_view right);
  void hide(std::int32_t id) { entries_[static_cast<std::size_t>(id)].decode_only = true; }
  std::int32_t id_of(std::string_view spelling) const;       // the lowest; -1 when absent
  std::int32_t last_id_of(std::string_view spelling) const;  // the last added; -1 when absent
  const std::string* spelling_of(std::int64_t id) const;     // nullptr when the id is free

  // The finished vocabulary; notices about bytes without a token and tokens with equal text.
  // byte_level: the byte alphabet is undone.
  text::Vocabulary finish(bool byte_level, std::vector<std::string>& notices);

 private:
  struct Entry {
    std::string spelling;
    bool used = false, decode_only = false;
  };
  std::string where_;
  std::size_t vocab_size_;
  std::vector<Entry> entries_;  // by id
  struct Ids {
    std::int32_t first, last;
  };
  std::unordered_map<std::string, Ids> ids_;
  std::vector<text::Vocabulary::Merge> merges_;
};

// What becomes the tables of a tokenizer, with the description it fills on the way.
struct ModelImport {
  ModelImport(contract::TokenizerDescription& into, std::string_view where, std::size_t vocab_size)
      : description(into), vocabulary(where, vocab_size) {}

  void set_unknown_score();  // from the scores of the pieces
  std::vector<std::byte> build(std::vector<std::string>& notices);

  contract::TokenizerDescription& description;
  VocabularyBuilder vocabulary;
  std::vector<double> scores;  // by id, or none
  double unk_score = 0;
  bool trie = false;
  std::string charsmap;
  std::vector<bool> whole_only;              // as in text::Vocabulary
  std::size_t n_ids = 0, first_decoded = 0;  // likewise
};

// The model object of tokenizer.json (tokenizer_import_models.cpp).
std::optional<UnsupportedTokenizer> import_model(const base::Json& model, std::string_view where,
                                                 ModelImport& out);

// Splits "a b" at its single space; an input error naming the merge otherwise.
std::pair<std::string_view, std::string_view> split_merge(std::string_view merge, std::size_t rank,
                                                          std::string_view where);

// ---- steps of tokenizer.json (tokenizer_import_steps.cpp)
// ---------------------------------------------

// Each adds to the description; an unknown type is an input error that quotes it. spelled: the
// model sees words in the byte alphabet, not bytes.
void import_normalizer(const base::Json& value, std::string_view where,
                       contract::TokenizerDescription& out, std::string& charsmap);
void import_pre_tokenizer(const base::Json& value, std::string_view where, bool spelled,
                          contract::TokenizerDescription& out);
void import_post_processor(const base::Json& value, std::string_view where,
                           contract::TokenizerDescription& out);
void import_decoder(const base::Json& value, std::string_view where,
                    contract::TokenizerDescription& out);

// The steps of a Sequence, flat; anything else is one step. Null has none.
std::vector<const base::Json*> flat_steps(const base::Json& value, std::string_view list_key,
                                          std::string_view where);

// {"String": s} or {"Regex": r}.
struct Pattern {
  std::string text;
  bool literal;
};
Pattern pattern_of(const base::Json& step, std::string_view where);

// "replace/.../.../" or "replace_regex/.../.../" for a Replace step.
std::string replace_step_of(const base::Json& step, std::string_view where);

// "always", "first" or "never", by either of the keys that say it.
std::string prepend_scheme_of(const base::Json& step, std::string_view where);

// One token in front, another at the ends of the texts: two between them and no token types where
// `doubled`.
void set_classic_templates(std::int32_t front, std::int32_t end, bool doubled,
                           contract::TokenizerDescription& out);

std::string decode_base64(std::string_view text, std::string_view where);

// Loose access to JSON of others: a wrong kind is an input error naming the key.
const base::Json* member(const base::Json& object,
                         std::string_view key);  // nullptr when absent or null
std::string text_member(const base::Json& object, std::string_view key, std::string_view where);
bool flag_member(const base::Json& object, std::string_view key, bool fallback,
                 std::string_view where);
std::int64_t id_member(const base::Json& object, std::string_view key, std::string_view where);

// ---- whole sources
// ------------------------------------------------------------------------------------

// What a directory has, "" where absent. Contents, not names.
struct SideFiles {
  std::string tokenizer_json, tokenizer_config, special_tokens_map, chat_jinja, chat_json;
  std::map<std::string, std::string> more_templates;  // additional_chat_templates/NAME.jinja
  std::string sentencepiece_model;              // tokenizer.model or spiece.model
  std::string source_model, target_vocab_json;  // source.spm
  std::string vocab_json, merges_txt, vocab_txt, added_tokens;
  bool single = false;                    // one file given by name, with what lies beside it
  bool add_bos = false, add_eos = false;  // what holds unless tokenizer_config.json says otherwise
};

// Of tokenizer_config.json and special_tokens_map.json.
std::string named_token(const SideFiles& files, std::string_view key);  // "" when none is named
bool config_flag(const SideFiles& files, std::string_view key, bool fallback);
std::int64_t config_integer(const SideFiles& files, std::string_view key, std::int64_t fallback,
                            std::int64_t most);

// The source that a directory has, best first; false when it has none.
bool import_from_files(const SideFiles& files, std::string_view where, std::size_t vocab_size,
                       ImportedTokenizer& out, std::optional<UnsupportedTokenizer>& reason);

std::optional<UnsupportedTokenizer> import_sentencepiece(const SideFiles& files,
                                                         std::string_view where,
                                                         std::size_t vocab_size,
                                                         ImportedTokenizer& out);
std::optional<UnsupportedTokenizer> import_translation_pair(const SideFiles& files,
                                                            std::string_view where,
                                                            std::size_t vocab_size,
                                                            ImportedTokenizer& out);
std::optional<UnsupportedTokenizer> import_word_list(const SideFiles& files, std::string_view where,
                                                     std::size_t vocab_size,
                                                     ImportedTokenizer& out);
std::optional<UnsupportedTokenizer> import_vocabulary_and_merges(const SideFiles& files,
                                                                 std::string_view where,
                                                                 std::size_t vocab_size,
                                                                 ImportedTokenizer& out);
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

// The chat templates of a directory, and the special tokens that they print.
void import_chat(const SideFiles& files, const base::Json& config, ImportedTokenizer& out);

// Recognises a template's plain form: builtin and default_system.
void describe_chat(std::string jinja, contract::ChatDescription& chat);

// Adds or checks one added token: ids and contents are unique.
class AddedTokens {
 public:
  // Goes on with what the description has already.
  AddedTokens(contract::TokenizerDescription& description, std::string_view where);
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
