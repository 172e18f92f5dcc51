// Directories without tokenizer.json: sentencepiece models, word lists, vocabulary and merges.
#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_pieces.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::printable;
using base::reject;

namespace {

using Reason = std::optional<UnsupportedTokenizer>;

// The lines of a text file, without their ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void add_special(std::string_view text, ModelImport& made, AddedTokens& added) {
  const std::int32_t id = made.vocabulary.id_of(text);
  if (id >= 0 && added.id_of(text) < 0)
    added.add({std::string(text), id, true, false, false, false, false});
}

// Tokens that tokenizer_config.json and its kin name for a purpose.
void add_named_specials(const SideFiles& files, ModelImport& made, AddedTokens& added) {
  for (const char* key :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (const std::string text = named_token(files, key); !text.empty())
      add_special(text, made, added);
}

// added_tokens.json: {"<text>": id}.
void read_added_tokens(const SideFiles& files, std::size_t vocab_size, const ModelImport& made,
                       AddedTokens& added) {
  if (files.added_tokens.empty()) return;
  constexpr std::string_view kName = "added_tokens.json";
  const Json table = base::parse_json(files.added_tokens, kName);
  if (!table.is_object()) reject(kName, "wrong kind of value", table.type_name(), "an object");
  for (const auto& [text, id] : table.items()) {
    const std::int64_t number = id_member(table, text, kName);
    const bool beyond = vocab_size > 0 && static_cast<std::size_t>(number) >= vocab_size;
    const std::string* other = made.vocabulary.spelling_of(number);
    if (text.empty() || beyond || (other != nullptr && *other != text) || added.id_of(text) >= 0 ||
        made.vocabulary.id_of(text) >= 0)
      continue;
    added.add({text, static_cast<std::int32_t>(number), true, false, false, false, false});
  }
}

// "extra_ids" of tokenizer_config.json: sentinels behind the pieces, the last one first.
void add_sentinels(const SideFiles& files, std::size_t vocab_size, std::size_t first,
                   AddedTokens& added) {
  constexpr std::int64_t kMost = 100000;
  const std::int64_t count = config_integer(files, "extra_ids", 0, kMost);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::int64_t>(first) + count - 1 - i;
    const std::string text = cat("<extra_id_", i, ">");
    const bool beyond = vocab_size > 0 && static_cast<std::size_t>(id) >= vocab_size;
    if (!beyond && added.id_of(text) < 0 && !added.has_id(static_cast<std::int32_t>(id)))
      added.add({text, static_cast<std::int32_t>(id), true, false, false, false, false});
  }
}

std::optional<std::int32_t> piece_id(std::int64_t id, const SentencepieceModel& model) {
  if (id < 0 || static_cast<std::size_t>(id) >= model.pieces.size()) return std::nullopt;
  return static_cast<std::int32_t>(id);
}

void finish(const SideFiles& files, ModelImport& made, ImportedTokenizer& out) {
  out.tables = made.build(out.notices);
  import_side_files(files, out);
}

}  // namespace

Reason import_sentencepiece(const SideFiles& files, std::string_view where, std::size_t vocab_size,
                            ImportedTokenizer& out) {
  const SentencepieceModel model =
      parse_sentencepiece(base::as_bytes(files.sentencepiece_model), where);
  ModelImport made(out.description, where, vocab_size);
  if (Reason reason = import_pieces(model, where, made)) return reason;
  AddedTokens added(out.description, where);
  read_added_tokens(files, vocab_size, made, added);
  add_sentinels(files, vocab_size, model.pieces.size(), added);
  out.tokens.bos = piece_id(model.bos, model);
  out.tokens.pad = piece_id(model.pad, model);
  out.tokens.unk = piece_id(model.unk, model);
  if (const auto eos = piece_id(model.eos, model)) out.tokens.eos = {*eos};
  // What people's code does unless the configuration says otherwise.
  SideFiles with_defaults = files;
  const std::int32_t cls = added.id_of("[CLS]"), sep = added.id_of("[SEP]");
  const bool classic = cls >= 0 && sep >= 0;
  if (classic) set_classic_templates(cls, sep, false, out.description);
  with_defaults.add_bos = !classic && model.kind == SentencepieceModel::Kind::bpe;
  with_defaults.add_eos = !classic && model.kind == SentencepieceModel::Kind::unigram;
  finish(with_defaults, made, out);
  return std::nullopt;
}

Reason import_word_list(const SideFiles& files, std::string_view where, std::size_t vocab_size,
                        ImportedTokenizer& out) {
  contract::TokenizerDescription& d = out.description;
  ModelImport made(d, where, vocab_size);
  d.model = "wordpiece";
  d.subword_prefix = "##";
  d.max_word_chars = 100;
  made.trie = true;
  std::int64_t line = 0;
  for (const std::string_view text : lines_of(files.vocab_txt)) {
    const bool repeated = made.vocabulary.id_of(text) >= 0;
    made.vocabulary.add_token(std::string(text), line++, repeated);
  }
  AddedTokens added(d, where);
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    add_special(text, made, added);
  add_named_specials(files, made, added);
  std::string unknown = named_token(files, "unk_token");
  if (unknown.empty()) unknown = "[UNK]";
  if (const std::int32_t id = made.vocabulary.id_of(unknown); id >= 0) d.unk_id = id;
  const bool lower = config_flag(files, "do_lower_case", true);
  d.normalizers = {"clean_text"};
  if (config_flag(files, "tokenize_chinese_chars", true))
    d.normalizers.push_back("space_ideographs");
  if (config_flag(files, "strip_accents", lower)) d.normalizers.push_back("strip_marks");
  if (lower) d.normalizers.push_back("lowercase");
  d.pre_tokenizers = {"white_space-removed", "punctuation-isolated"};
  d.decoders = {"word_pieces-cleanup/##/"};
  const std::int32_t cls = made.vocabulary.id_of("[CLS]"), sep = made.vocabulary.id_of("[SEP]");
  if (cls >= 0 && sep >= 0) set_classic_templates(cls, sep, false, d);
  finish(files, made, out);
  return std::nullopt;
}

Reason import_vocabulary_and_merges(const SideFiles& files, std::string_view where,
                                    std::size_t vocab_size, ImportedTokenizer& out) {
  contract::TokenizerDescription& d = out.description;
  ModelImport made(d, where, vocab_size);
  d.model = "bpe";
  d.byte_level = true;
  d.decoders = {"byte_level"};
  d.pair.emplace().second_type = 1;
  const Json table = base::parse_json(files.vocab_json, where);
  if (!table.is_object()) reject(where, "wrong kind of value", table.type_name(), "an object");
  for (const auto& [text, id] : table.items())
    made.vocabulary.add_token(text, id_member(table, text, where));
  std::size_t rank = 0;
  for (const std::string_view line : lines_of(files.merges_txt)) {
    if (line.empty() || (rank == 0 && line.starts_with("#version"))) continue;
    const auto [left, right] = split_merge(line, rank++, "merges.txt");
    made.vocabulary.add_merge(left, right);
  }
  if (config_flag(files, "add_prefix_space", false)) {
    d.add_prefix_space = true;
    d.pre_tokenizers.push_back("prefix_space");
  }
  d.pre_tokenizers.push_back("gpt2");
  AddedTokens added(d, where);
  for (const char* text : {"<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"})
    add_special(text, made, added);
  add_named_specials(files, made, added);
  read_added_tokens(files, vocab_size, made, added);
  const std::int32_t front = made.vocabulary.id_of("<s>"), end = made.vocabulary.id_of("</s>");
  if (front >= 0 && end >= 0 && made.vocabulary.id_of("<mask>") >= 0)
    set_classic_templates(front, end, true, d);
  finish(files, made, out);
  return std::nullopt;
}

bool import_from_files(const SideFiles& files, std::string_view where, std::size_t vocab_size,
                       ImportedTokenizer& out, Reason& reason) {
  const auto place = [&](std::string_view name) {
    return files.single ? std::string(where) : cat(where, "/", name);
  };
  if (!files.tokenizer_json.empty()) {
    reason = import_tokenizer_json(files, place("tokenizer.json"), vocab_size, out);
  } else if (!files.source_model.empty() && !files.vocab_json.empty()) {
    reason = import_translation_pair(files, where, vocab_size, out);
  } else if (!files.sentencepiece_model.empty()) {
    reason = import_sentencepiece(files, place("tokenizer.model"), vocab_size, out);
  } else if (!files.vocab_json.empty() && !files.merges_txt.empty()) {
    reason = import_vocabulary_and_merges(files, place("vocab.json"), vocab_size, out);
  } else if (!files.vocab_txt.empty()) {
    reason = import_word_list(files, place("vocab.txt"), vocab_size, out);
  } else {
    return false;
  }
  return true;
}

}  // namespace quern::convert
