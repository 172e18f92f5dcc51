#include "text/unigram.hpp"

#include <algorithm>

#include "text/unicode.hpp"

namespace quern::text {

namespace {

constexpr std::int32_t kUnknownPiece = -1, kUnreached = -2;

bool is_banned(const IdSet* banned, std::int32_t id) {
  return banned != nullptr && banned->contains(id);
}

}  // namespace

template <class Real>
struct Unigram<Real>::End {
  Real score = 0;
  std::int32_t token = kUnreached;
  std::uint32_t length = 0;  // of the last piece
};

template <class Real>
Unigram<Real>::Unigram(const TokenizerTables& tables, const Unknown& unknown)
    : tables_(tables), unknown_(unknown), unk_score_(static_cast<Real>(tables.unk_score())) {}

// All pieces that start at `at`, and the character there as unknown when it is no piece itself. Of
// equal sums the first found stays.
template <class Real>
void Unigram<Real>::extend(std::string_view word, std::size_t at, const IdSet* banned,
                           std::vector<End>& ends) const {
  const Real here = ends[at].score;
  const std::uint32_t char_bytes = decode_char(word, at).bytes;
  bool single = false;
  const auto reach = [&](std::uint32_t length, std::int32_t token, Real score) {
    End& end = ends[at + length];
    if (end.token != kUnreached && !(here + score > end.score)) return;
    end = {here + score, token, length};
  };
  std::uint32_t node = 0;
  for (std::size_t to = at; to < word.size();) {
    const std::int64_t next = tables_.child(node, static_cast<unsigned char>(word[to++]));
    if (next < 0) break;
    node = static_cast<std::uint32_t>(next);
    const std::int32_t token = tables_.token_at(node);
    if (token < 0 || is_banned(banned, token)) continue;
    const auto length = static_cast<std::uint32_t>(to - at);
    reach(length, token, static_cast<Real>(tables_.score(token)));
    single = single || length == char_bytes;
  }
  if (!single) reach(char_bytes, kUnknownPiece, unk_score_);
}

template <class Real>
void Unigram<Real>::append(std::string_view piece, std::int32_t token, const IdSet* banned,
                           std::vector<std::int32_t>& out) const {
  if (token == kUnknownPiece) {  // joined unknown characters may spell a piece after all
    token = tables_.find(piece);
    if (is_banned(banned, token)) token = kUnknownPiece;
  }
  if (token >= 0 && tables_.is_id(token)) {
    out.push_back(token);
  } else {
    append_unknown(tables_, unknown_, piece, out);
  }
}

template <class Real>
void Unigram<Real>::encode_word(std::string_view word, const IdSet* banned,
                                std::vector<std::int32_t>& out) const {
  std::vector<End> ends(word.size() + 1);
  for (std::size_t at = 0; at < word.size(); at += decode_char(word, at).bytes)
    extend(word, at, banned, ends);
  struct Piece {
    std::size_t begin, end;
    std::int32_t token;
  };
  std::vector<Piece> pieces;  // from the end
  for (std::size_t end = word.size(); end > 0;) {
    const std::size_t begin = end - ends[end].length;
    const std::int32_t token = ends[end].token;
    const bool unknown = token == kUnknownPiece || (unknown_.id && token == *unknown_.id);
    if (unknown && !pieces.empty() && pieces.back().token == kUnknownPiece) {
      pieces.back().begin = begin;
    } else {
      pieces.push_back({begin, end, unknown ? kUnknownPiece : token});
    }
    end = begin;
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    append(word.substr(piece->begin, piece->end - piece->begin), piece->token, banned, out);
}

template class Unigram<float>;
template class Unigram<double>;

}  // namespace quern::text
