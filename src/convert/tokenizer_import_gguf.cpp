#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_pieces.hpp"
#include "convert/tokenizer_import_pre.hpp"

namespace quern::convert {

using base::cat;
using base::reject;
using checkpoint::GgufFile;
using checkpoint::GgufType;
using checkpoint::GgufValue;

namespace {

std::string text_value(const GgufFile& file, std::string_view key, std::string_view where) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return {};
  if (value->type != GgufType::string)
    reject(cat(where, ": ", key), "wrong kind of value", {}, "string");
  return std::string(std::get<std::string_view>(value->scalar));
}

std::optional<bool> flag_value(const GgufFile& file, std::string_view key, std::string_view where) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean)
    reject(cat(where, ": ", key), "wrong kind of value", {}, "bool");
  return std::get<std::uint64_t>(value->scalar) != 0;
}

// A special id: absent, or inside the vocabulary (readers of GGUF ignore others: 2^32 - 1 means
// none).
std::optional<std::int32_t> id_value(const GgufFile& file, std::string_view key,
                                     std::size_t n_tokens, std::string_view where,
                                     std::vector<std::string>& notices) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  std::uint64_t id = ~std::uint64_t{0};
  if (const auto* plain = std::get_if<std::uint64_t>(&value->scalar)) id = *plain;
  if (const auto* with_sign = std::get_if<std::int64_t>(&value->scalar))
    id = *with_sign < 0 ? id : static_cast<std::uint64_t>(*with_sign);
  if (id < n_tokens) return static_cast<std::int32_t>(id);
  notices.push_back(cat(where, ": ", key, " names no token and is ignored"));
  return std::nullopt;
}

// Tokens with their types, and scores where the file has them, in the form of a sentencepiece
// model.
std::vector<Piece> read_pieces(const GgufFile& file, std::string_view where) {
  constexpr std::string_view kTypes = "tokenizer.ggml.token_type",
                             kScores = "tokenizer.ggml.scores";
  const std::vector<std::string_view> tokens = file.strings("tokenizer.ggml.tokens", where);
  std::vector<std::int64_t> types;
  std::vector<float> scores;
  if (file.find(kTypes) != nullptr) types = file.integers(kTypes, where);
  if (file.find(kScores) != nullptr) scores = file.floats(kScores, where);
  const auto check = [&](std::string_view key, std::size_t size) {
    if (size != 0 && size != tokens.size())
      reject(cat(where, ": ", key), "wrong length", cat(size), cat(tokens.size()));
  };
  check(kTypes, types.size());
  check(kScores, scores.size());
  std::vector<Piece> pieces;
  pieces.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto type = types.empty() ? PieceType::normal : static_cast<PieceType>(types[id]);
    if (type < PieceType::normal || type > PieceType::byte)
      reject(cat(where, ": ", kTypes), cat("token ", id, " has an unknown type"), cat(types[id]));
    const float score = scores.empty() ? 0 : scores[id];
    if (!std::isfinite(score))
      reject(cat(where, ": ", kScores), cat("token ", id, " has a score that is no number"));
    pieces.push_back({std::string(tokens[id]), score, type});
  }
  return pieces;
}

void add_pieces(const std::vector<Piece>& pieces, std::string_view where,
                VocabularyBuilder& vocabulary, contract::TokenizerDescription& description) {
  AddedTokens added(description, where);
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const Piece& piece = pieces[id];
    const bool special = piece.type == PieceType::control || piece.type == PieceType::unknown;
    const bool is_added = (special || piece.type == PieceType::user_defined) && !piece.text.empty();
    vocabulary.add_token(piece.text, static_cast<std::int64_t>(id),
                         is_added || piece.type == PieceType::unused);
    if (is_added && added.id_of(piece.text) < 0)
      added.add({piece.text, static_cast<std::int32_t>(id), special, false, false, false, false});
  }
}

std::optional<std::int32_t> special_id(const GgufFile& file, std::string_view key,
                                       std::string_view where, ImportedTokenizer& out) {
  const std::size_t n_tokens = file.strings("tokenizer.ggml.tokens", where).size();
  return id_value(file, key, n_tokens, where, out.notices);
}

void read_special_ids(const GgufFile& file, std::string_view where, ImportedTokenizer& out) {
  const auto id = [&](const char* key) { return special_id(file, key, where, out); };
  out.tokens.bos = id("tokenizer.ggml.bos_token_id");
  out.tokens.pad = id("tokenizer.ggml.padding_token_id");
  out.tokens.unk = id("tokenizer.ggml.unknown_token_id");
  out.tokens.mask = id("tokenizer.ggml.mask_token_id");
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    const std::optional<std::int32_t> end = id(key);
    if (end &&
        std::find(out.tokens.eos.begin(), out.tokens.eos.end(), *end) == out.tokens.eos.end())
      out.tokens.eos.push_back(*end);
  }
}

using Reason = std::optional<UnsupportedTokenizer>;

// Bytes, merges, and a name for how text is cut.
Reason import_merges(const GgufFile& file, std::string_view where, std::size_t vocab_size,
                     ImportedTokenizer& out) {
  contract::TokenizerDescription& description = out.description;
  description.model = "bpe";
  description.byte_level = true;
  description.decoders = {"byte_level"};
  description.pair.emplace().second_type = 1;
  std::string pre = text_value(file, "tokenizer.ggml.pre", where);
  if (pre.empty()) {
    pre = "default";
    out.notices.push_back(
        cat(where, ": tokenizer.ggml.pre is missing; the pre-tokenizer gpt2 is assumed"));
  }
  const PreTokenizerSet set = find_pre_tokenizer_set(pre, where);
  description.normalizers = set.normalizers;
  description.pre_tokenizers = set.steps;
  description.ignore_merges = set.ignore_merges;

  ModelImport made(description, where, vocab_size);
  add_pieces(read_pieces(file, where), where, made.vocabulary, description);
  std::size_t rank = 0, unknown = 0;
  for (const std::string_view merge : file.strings("tokenizer.ggml.merges", where)) {
    const auto [left, right] = split_merge(merge, rank++, where);
    if (!made.vocabulary.add_known_merge(left, right)) ++unknown;
  }
  if (unknown > 0)
    out.notices.push_back(cat(where, ": ", unknown, " of ", rank, " merges name tokens that do not exist; left out"));
  out.tables = made.build(out.notices);
  read_special_ids(file, where, out);
  complete_affixes(flag_value(file, "tokenizer.ggml.add_bos_token", where).value_or(set.add_bos),
                   flag_value(file, "tokenizer.ggml.add_eos_token", where).value_or(set.add_eos), out);
  return std::nullopt;
}

std::string precompiled_charsmap(const GgufFile& file, std::string_view where) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  const GgufValue* value = file.find(kKey);
  if (value == nullptr) return {};
  const bool bytes = value->type == GgufType::array &&
                     (value->element == GgufType::u8 || value->element == GgufType::i8);
  if (!bytes) reject(cat(where, ": ", kKey), "wrong kind of value", {}, "bytes");
  return std::string(base::as_text(value->array));
}

// User-defined pieces may be spelled with spaces where the model sees their symbol.
void respell_spaces(std::vector<Piece>& pieces) {
  constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";
  for (Piece& piece : pieces) {
    if (piece.type != PieceType::user_defined) continue;
    std::string spelled;
    for (const char c : piece.text) {
      if (c == ' ') {
        spelled += kSpaceSymbol;
      } else {
        spelled += c;
      }
    }
    piece.text = std::move(spelled);
  }
}

Reason import_scored(const GgufFile& file, std::string_view where, std::size_t vocab_size,
                     SentencepieceModel::Kind kind, ImportedTokenizer& out) {
  const bool bpe = kind == SentencepieceModel::Kind::bpe;
  const auto flag = [&](const char* key, bool fallback) {
    return flag_value(file, key, where).value_or(fallback);
  };
  if (file.find("tokenizer.ggml.scores") == nullptr)
    reject(where, "tokenizer.ggml.scores is missing");
  SentencepieceModel model;
  model.kind = kind;
  model.pieces = read_pieces(file, where);
  respell_spaces(model.pieces);
  model.byte_fallback =
      std::any_of(model.pieces.begin(), model.pieces.end(),
                  [](const Piece& piece) { return piece.type == PieceType::byte; });
  model.add_prefix = flag("tokenizer.ggml.add_space_prefix", true);
  model.trim = flag("tokenizer.ggml.remove_extra_whitespaces", !bpe);
  model.charsmap = precompiled_charsmap(file, where);
  ModelImport made(out.description, where, vocab_size);
  if (Reason reason = import_pieces(model, where, made)) return reason;
  out.tables = made.build(out.notices);
  read_special_ids(file, where, out);
  if (!out.description.unk_id) out.description.unk_id = out.tokens.unk;
  complete_affixes(flag("tokenizer.ggml.add_bos_token", bpe),
                   flag("tokenizer.ggml.add_eos_token", !bpe), out);
  return std::nullopt;
}

// Pieces that start a word carry the space symbol, those inside have no mark: the other way round
// than where they come from.
std::string respelled(const Piece& piece) {
  constexpr std::string_view kWordStart = "\xE2\x96\x81";
  if (piece.type == PieceType::control || piece.type == PieceType::unknown) return piece.text;
  if (piece.text.starts_with(kWordStart)) return piece.text.substr(kWordStart.size());
  return "##" + piece.text;
}

Reason import_word_pieces(const GgufFile& file, std::string_view where, std::size_t vocab_size,
                          ImportedTokenizer& out) {
  contract::TokenizerDescription& d = out.description;
  ModelImport made(d, where, vocab_size);
  d.model = "wordpiece";
  d.subword_prefix = "##";
  d.max_word_chars = 100;
  d.normalizers = {"clean_text", "space_ideographs", "strip_marks", "lowercase"};
  d.pre_tokenizers = {"white_space-removed", "punctuation-isolated"};
  d.decoders = {"word_pieces-cleanup/##/"};
  d.pair.emplace().second_type = 1;
  made.trie = true;
  std::vector<Piece> pieces = read_pieces(file, where);
  for (Piece& piece : pieces) piece.text = respelled(piece);
  add_pieces(pieces, where, made.vocabulary, d);
  out.tables = made.build(out.notices);
  read_special_ids(file, where, out);
  d.unk_id = out.tokens.unk;
  const auto cls = special_id(file, "tokenizer.ggml.cls_token_id", where, out);
  const auto sep = special_id(file, "tokenizer.ggml.seperator_token_id", where, out);
  const auto front = cls ? cls : out.tokens.bos;
  const auto end = sep || out.tokens.eos.empty() ? sep : std::optional(out.tokens.eos.front());
  if (front && end) set_classic_templates(*front, *end, false, d);
  return std::nullopt;
}

}  // namespace

std::optional<UnsupportedTokenizer> import_tokenizer_gguf(const GgufFile& file,
                                                          std::string_view where,
                                                          std::size_t vocab_size,
                                                          ImportedTokenizer& out) {
  describe_chat(text_value(file, "tokenizer.chat_template", where), out.chat);
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (const auto& [key, value] : file.metadata)
    if (key.starts_with(kNamed) && value.type == GgufType::string)
      out.chat.named[key.substr(kNamed.size())] = text_value(file, key, where);
  if (const auto only = out.chat.named.find("default"); only != out.chat.named.end() && out.chat.jinja.empty()) {
    auto named = std::move(out.chat.named);
    describe_chat(named["default"], out.chat);
    named.erase("default");
    out.chat.named = std::move(named);
  }
  const std::string model = text_value(file, "tokenizer.ggml.model", where);
  if (model == "none" || model == "no_vocab") return std::nullopt;
  using Kind = SentencepieceModel::Kind;
  if (model == "gpt2") return import_merges(file, where, vocab_size, out);
  if (model == "llama") return import_scored(file, where, vocab_size, Kind::bpe, out);
  if (model == "t5") return import_scored(file, where, vocab_size, Kind::unigram, out);
  if (model == "bert") return import_word_pieces(file, where, vocab_size, out);
  return UnsupportedTokenizer{cat("tokenizer model \"", base::printable(model, 60), "\"")};
}

}  // namespace quern::convert
