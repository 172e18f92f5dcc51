// A pair of sentencepiece models with a vocabulary of its own (source.spm, target.spm, vocab.json,
// maybe target_vocab.json): pieces of the source model become ids by their text.
#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_pieces.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::reject;

namespace {

struct Entry {
  std::string text;
  std::int64_t id;
};

std::vector<Entry> read_vocabulary(std::string_view text, std::string_view where) {
  const Json table = base::parse_json(text, where);
  if (!table.is_object()) reject(where, "wrong kind of value", table.type_name(), "an object");
  std::vector<Entry> entries;
  for (const auto& item : table.items())
    entries.push_back({item.key(), id_member(table, item.key(), where)});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return entries;
}

// ">>fra<<": the language wanted, one token in front of the text.
bool is_language(std::string_view text) {
  return text.size() > 4 && text.starts_with(">>") && text.ends_with("<<");
}

void add_tokens(const std::vector<Entry>& entries, std::size_t vocab_size, std::string_view where,
                ImportedTokenizer& out) {
  AddedTokens added(out.description, where);
  for (const Entry& entry : entries) {
    if (vocab_size > 0 && static_cast<std::size_t>(entry.id) >= vocab_size)
      reject(where, cat("token ", entry.id, " lies beyond the embedding"));
    const bool special = entry.text == "</s>" || entry.text == "<unk>" || entry.text == "<pad>";
    if (!special && !is_language(entry.text)) continue;
    const auto id = static_cast<std::int32_t>(entry.id);
    added.add({entry.text, id, special, false, false, false, false});
    if (entry.text == "<unk>") out.description.unk_id = out.tokens.unk = id;
    if (entry.text == "<pad>") out.tokens.pad = id;
    if (entry.text == "</s>") out.tokens.eos = {id};
  }
}

}  // namespace

std::optional<UnsupportedTokenizer> import_translation_pair(const SideFiles& files,
                                                            std::string_view where,
                                                            std::size_t vocab_size,
                                                            ImportedTokenizer& out) {
  const SentencepieceModel source =
      parse_sentencepiece(base::as_bytes(files.source_model), cat(where, "/source.spm"));
  const std::string vocabulary_where = cat(where, "/vocab.json");
  const std::vector<Entry> entries = read_vocabulary(files.vocab_json, vocabulary_where);
  if (entries.empty()) reject(vocabulary_where, "it has no tokens");
  ModelImport made(out.description, where, 0);
  if (auto reason = describe_pieces(source, where, made)) return reason;
  out.description.decoders = {"replace/\xE2\x96\x81/ /", "fuse", "strip/ /65536/65536/"};
  add_tokens(entries, vocab_size, vocabulary_where, out);

  made.n_ids = static_cast<std::size_t>(entries.back().id) + 1;
  std::vector<double> scores = piece_scores(source), by_token(made.n_ids, 0.0);
  made.whole_only.resize(made.n_ids);
  std::unordered_map<std::string, std::size_t> piece_of;
  for (std::size_t i = 0; i < source.pieces.size(); ++i)
    if (!is_hidden(source.pieces[i].type)) piece_of.emplace(source.pieces[i].text, i);
  for (const Entry& entry : entries) {
    const auto piece = piece_of.find(entry.text);
    // Text that is unknown to the source model may still be a token.
    made.vocabulary.add_token(entry.text, entry.id);
    const auto id = static_cast<std::size_t>(entry.id);
    made.whole_only[id] = piece == piece_of.end();
    if (piece != piece_of.end()) by_token[id] = scores[piece->second];
  }
  // Pieces without an id compete all the same, and are unknown where they win.
  for (std::size_t i = 0; i < source.pieces.size(); ++i) {
    const Piece& piece = source.pieces[i];
    if (is_hidden(piece.type) || made.vocabulary.id_of(piece.text) >= 0) continue;
    made.vocabulary.add_token(piece.text, static_cast<std::int64_t>(by_token.size()));
    by_token.push_back(scores[i]);
  }
  if (!files.target_vocab_json.empty()) {
    made.first_decoded = by_token.size();
    for (const Entry& entry :
         read_vocabulary(files.target_vocab_json, cat(where, "/target_vocab.json")))
      made.vocabulary.add_token(entry.text,
                                static_cast<std::int64_t>(made.first_decoded) + entry.id, true);
  }
  made.scores = std::move(by_token);
  out.tables = made.build(out.notices);
  SideFiles with_defaults = files;
  with_defaults.add_eos = true;
  import_side_files(with_defaults, out);
  return std::nullopt;
}

}  // namespace quern::convert
