// Pieces with scores, from sentencepiece models and from GGUF, become a tokenizer that cuts text as
// sentencepiece does.
#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_pieces.hpp"
#include "text/step_spelling.hpp"

namespace quern::convert {

using base::cat;

namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";
constexpr float kUnknownPenalty = 10.0f;  // how far below the worst piece an unknown character lies

// Bounds of the scores of normal pieces as sentencepiece takes them: the upper one is above 0.
struct ScoreRange {
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::min();
};

ScoreRange score_range(const std::vector<Piece>& pieces) {
  ScoreRange range;
  for (const Piece& piece : pieces) {
    if (piece.type != PieceType::normal) continue;
    range.least = std::min(range.least, piece.score);
    range.most = std::max(range.most, piece.score);
  }
  return range;
}

}  // namespace

std::vector<double> piece_scores(const SentencepieceModel& model) {
  const ScoreRange range = score_range(model.pieces);
  const bool bpe = model.kind == SentencepieceModel::Kind::bpe;
  std::vector<double> scores;
  for (const Piece& piece : model.pieces) {
    const auto bytes = static_cast<float>(piece.text.size());
    // User-defined pieces lie close to 0, so that they always win.
    const bool bonus = piece.type == PieceType::user_defined && !bpe;
    scores.push_back(bonus ? static_cast<double>(bytes * range.most) - 0.1 : piece.score);
  }
  return scores;
}

bool is_hidden(PieceType type) {
  return type != PieceType::normal && type != PieceType::user_defined;
}

namespace {

// Pieces that text must be able to say as tokens: matched before the model.
void add_control(const Piece& piece, std::int32_t id, AddedTokens& added) {
  const bool control = piece.type == PieceType::control || piece.type == PieceType::unknown;
  if (!control || piece.text.empty() || added.id_of(piece.text) >= 0) return;
  added.add({piece.text, id, true, false, false, false, false});
}

// "<0x00>" to "<0xFF>".
void check_byte(const Piece& piece, std::int32_t id, std::string_view where) {
  const bool byte = piece.text.size() == 6 && piece.text.starts_with("<0x") &&
                    piece.text[5] == '>' &&
                    piece.text.find_first_not_of("0123456789ABCDEF", 3) == 5;
  if (!byte)
    base::reject(where, cat("piece ", id, " is of the type byte but not spelled as one"),
                 base::printable(piece.text, 60), "<0x00> to <0xFF>");
}

std::vector<std::string> decoder_steps(const SentencepieceModel& model) {
  std::vector<std::string> steps;
  for (const Piece& piece : model.pieces)
    if (piece.type == PieceType::unknown && piece.text != model.unknown_text)
      if (std::string step = text::spell_step("whole", {piece.text, model.unknown_text});
          !step.empty() && steps.empty())
        steps.push_back(std::move(step));
  const bool bytes = std::any_of(model.pieces.begin(), model.pieces.end(),
                                 [](const Piece& p) { return p.type == PieceType::byte; });
  if (bytes) steps.push_back("byte_runs");
  if (model.trim) {
    steps.push_back(cat("first_space-all:", kSpaceSymbol));
  } else if (model.add_prefix) {
    steps.push_back(cat("first_space-one:", kSpaceSymbol));
  } else {
    steps.push_back(cat("replace/", kSpaceSymbol, "/ /"));
  }
  return steps;
}

void check_kind(const SentencepieceModel& model, std::string_view where,
                std::optional<UnsupportedTokenizer>& reason) {
  using Kind = SentencepieceModel::Kind;
  if (model.kind < Kind::unigram || model.kind > Kind::character)
    base::reject(where, "sentencepiece model of an unknown type",
                 cat(static_cast<std::int64_t>(model.kind)));
  if (model.kind == Kind::word || model.kind == Kind::character)
    reason = UnsupportedTokenizer{"a sentencepiece model of words or characters"};
  if (model.space_as_suffix)
    reason = UnsupportedTokenizer{"a sentencepiece model with spaces behind words"};
  if (!model.escape_spaces)
    reason = UnsupportedTokenizer{"a sentencepiece model that leaves spaces as they are"};
}

}  // namespace

std::optional<UnsupportedTokenizer> describe_pieces(const SentencepieceModel& model,
                                                    std::string_view where, ModelImport& out) {
  std::optional<UnsupportedTokenizer> reason;
  check_kind(model, where, reason);
  if (reason) return reason;
  contract::TokenizerDescription& d = out.description;
  const bool bpe = model.kind == SentencepieceModel::Kind::bpe;
  d.model = bpe ? "score_bpe" : "unigram";
  d.score_sum = bpe ? "f64" : "f32";
  d.byte_fallback = model.byte_fallback;
  d.fuse_unk = true;
  d.normalizers = {
      cat("sentencepiece", model.add_prefix ? "-prefix" : "", model.trim ? "-trim" : "")};
  d.decoders = decoder_steps(model);
  d.pair.emplace().second_type = 1;
  out.charsmap = model.charsmap;
  out.trie = !bpe;
  const ScoreRange range = score_range(model.pieces);
  out.unk_score = range.least == std::numeric_limits<float>::max() ? -kUnknownPenalty
                                                                   : range.least - kUnknownPenalty;
  return std::nullopt;
}

std::optional<UnsupportedTokenizer> import_pieces(const SentencepieceModel& model,
                                                  std::string_view where, ModelImport& out) {
  if (auto reason = describe_pieces(model, where, out)) return reason;
  contract::TokenizerDescription& d = out.description;
  AddedTokens added(d, where);
  out.scores = piece_scores(model);
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const auto id = static_cast<std::int32_t>(i);
    const bool repeated = out.vocabulary.id_of(piece.text) >= 0;
    out.vocabulary.add_token(piece.text, id, is_hidden(piece.type) || repeated);
    if (piece.type == PieceType::user_defined && !piece.text.empty()) d.user_defined.push_back(id);
    if (piece.type == PieceType::unknown && !d.unk_id) d.unk_id = id;
    if (piece.type == PieceType::byte) check_byte(piece, id, where);
    add_control(piece, id, added);
  }
  return std::nullopt;
}

}  // namespace quern::convert
