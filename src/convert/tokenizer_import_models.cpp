// The "model" object of tokenizer.json: vocabulary, merges, scores and the flags beside them.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::printable;
using base::reject;

namespace {

constexpr double kUnknownPenalty = 10;  // how far below the worst piece an unknown character lies

std::string optional_text(const Json& model, std::string_view key, std::string_view fallback,
                          std::string_view where) {
  return member(model, key) == nullptr ? std::string(fallback) : text_member(model, key, where);
}

void read_vocabulary(const Json& model, std::string_view where, VocabularyBuilder& vocabulary) {
  const Json* tokens = member(model, "vocab");
  if (tokens == nullptr || !tokens->is_object())
    reject(cat(where, ": model.vocab"), "an object is missing");
  for (const auto& [spelling, id] : tokens->items()) {
    if (!id.is_number_integer())
      reject(cat(where, ": model.vocab"),
             cat("token \"", printable(spelling, 60), "\" has no integer id"));
    vocabulary.add_token(spelling, id.get<std::int64_t>());
  }
}

void read_merges(const Json& model, std::string_view where, const std::string& prefix,
                 VocabularyBuilder& vocabulary) {
  const Json* merges = member(model, "merges");
  if (merges == nullptr || !merges->is_array())
    reject(cat(where, ": model.merges"), "a list is missing");
  std::size_t rank = 0;
  for (const Json& merge : *merges) {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const auto [left, right] = split_merge(text, rank, where);
      vocabulary.add_merge(left, right, prefix);
    } else {
      const bool pair =
          merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
      if (!pair) reject(where, cat("merge ", rank, " is not a pair"), printable(merge.dump(), 80));
      vocabulary.add_merge(merge[0].get_ref<const std::string&>(),
                           merge[1].get_ref<const std::string&>(), prefix);
    }
    ++rank;
  }
}

// "unk_token": a text that may be missing from the vocabulary.
void read_unknown(const Json& model, std::string_view where, const VocabularyBuilder& vocabulary,
                  contract::TokenizerDescription& out) {
  const std::string text = optional_text(model, "unk_token", "", where);
  const std::int32_t id = text.empty() ? -1 : vocabulary.id_of(text);
  if (id >= 0) out.unk_id = id;
}

void read_bpe(const Json& model, std::string_view where, ModelImport& out) {
  contract::TokenizerDescription& d = out.description;
  d.model = "bpe";
  d.subword_prefix = optional_text(model, "continuing_subword_prefix", "", where);
  d.word_suffix = optional_text(model, "end_of_word_suffix", "", where);
  read_vocabulary(model, where, out.vocabulary);
  read_merges(model, where, d.subword_prefix, out.vocabulary);
  d.ignore_merges = flag_member(model, "ignore_merges", false, where);
  d.byte_fallback = flag_member(model, "byte_fallback", false, where);
  d.fuse_unk = flag_member(model, "fuse_unk", false, where);
  read_unknown(model, where, out.vocabulary, d);
}

void read_word_piece(const Json& model, std::string_view where, ModelImport& out) {
  contract::TokenizerDescription& d = out.description;
  d.model = "wordpiece";
  out.trie = true;
  d.subword_prefix = optional_text(model, "continuing_subword_prefix", "##", where);
  d.max_word_chars = 100;
  if (const Json* most = member(model, "max_input_chars_per_word")) {
    if (!most->is_number_unsigned())
      reject(cat(where, ": model.max_input_chars_per_word"), "wrong kind of value",
             most->type_name(), "a number");
    d.max_word_chars = std::min<std::uint64_t>(most->get<std::uint64_t>(), 4096);
  }
  read_vocabulary(model, where, out.vocabulary);
  read_unknown(model, where, out.vocabulary, d);
}

void read_word_level(const Json& model, std::string_view where, ModelImport& out) {
  out.description.model = "wordlevel";
  read_vocabulary(model, where, out.vocabulary);
  read_unknown(model, where, out.vocabulary, out.description);
}

void read_pieces(const Json& list, std::string_view where, ModelImport& out) {
  for (const Json& piece : list) {
    const auto id = static_cast<std::int64_t>(out.scores.size());
    const bool pair =
        piece.is_array() && piece.size() == 2 && piece[0].is_string() && piece[1].is_number();
    if (!pair)
      reject(cat(where, ": model.vocab"), cat("piece ", id, " is not a text and a score"),
             printable(piece.dump(), 80));
    const auto& text = piece[0].get_ref<const std::string&>();
    const double score = piece[1].get<double>();
    if (!std::isfinite(score))
      reject(cat(where, ": model.vocab"), cat("piece ", id, " has a score that is no number"));
    // Of two pieces with equal text the later one counts.
    if (const std::int32_t before = out.vocabulary.last_id_of(text); before >= 0)
      out.vocabulary.hide(before);
    out.vocabulary.add_token(text, id);
    out.scores.push_back(score);
  }
}

void read_unigram(const Json& model, std::string_view where, ModelImport& out) {
  const Json* list = member(model, "vocab");
  if (list == nullptr || !list->is_array())
    reject(cat(where, ": model.vocab"), "a list is missing");
  contract::TokenizerDescription& d = out.description;
  d.model = "unigram";
  d.fuse_unk = true;
  d.byte_fallback = flag_member(model, "byte_fallback", false, where);
  out.trie = true;
  read_pieces(*list, where, out);
  out.set_unknown_score();
  if (member(model, "unk_id") == nullptr) return;
  const std::int64_t unknown = id_member(model, "unk_id", cat(where, ": model"));
  if (static_cast<std::size_t>(unknown) >= out.scores.size())
    reject(cat(where, ": model.unk_id"), "names no piece", cat(unknown));
  d.unk_id = static_cast<std::int32_t>(unknown);
}

struct Reader {
  std::string_view type;
  void (*read)(const Json& model, std::string_view where, ModelImport& out);
};
constexpr Reader kReaders[] = {{"BPE", read_bpe},
                               {"Unigram", read_unigram},
                               {"WordPiece", read_word_piece},
                               {"WordLevel", read_word_level}};

// Files of 2019 leave the type out.
std::string model_type(const Json& model) {
  const Json* type = member(model, "type");
  if (type != nullptr && type->is_string()) return type->get<std::string>();
  if (member(model, "merges") != nullptr) return "BPE";
  const Json* vocabulary = member(model, "vocab");
  if (vocabulary != nullptr && vocabulary->is_array()) return "Unigram";
  return member(model, "max_input_chars_per_word") != nullptr ? "WordPiece" : "WordLevel";
}

}  // namespace

void ModelImport::set_unknown_score() {
  const auto least = std::min_element(scores.begin(), scores.end());
  unk_score = (least == scores.end() ? 0 : *least) - kUnknownPenalty;
}

std::vector<std::byte> ModelImport::build(std::vector<std::string>& notices) {
  text::Vocabulary finished = vocabulary.finish(description.byte_level, notices);
  finished.scores = std::move(scores);
  finished.scores.resize(finished.scores.empty() ? 0 : finished.tokens.size());
  finished.unk_score = unk_score;
  finished.trie = trie;
  finished.charsmap = std::move(charsmap);
  finished.whole_only = std::move(whole_only);
  finished.n_ids = n_ids;
  finished.first_decoded = first_decoded;
  return text::build_tokenizer_tables(finished);
}

std::optional<UnsupportedTokenizer> import_model(const Json& model, std::string_view where,
                                                 ModelImport& out) {
  const std::string type = model_type(model);
  const auto* reader = std::find_if(std::begin(kReaders), std::end(kReaders),
                                    [&](const Reader& entry) { return entry.type == type; });
  if (reader == std::end(kReaders))
    return UnsupportedTokenizer{cat("tokenizer model ", printable(type, 60))};
  reader->read(model, where, out);
  return std::nullopt;
}

}  // namespace quern::convert
