#include "text/word_piece.hpp"

#include "text/unicode.hpp"

namespace quern::text {

namespace {

// Whether text has more characters than `most`.
bool longer_than(std::string_view text, std::size_t most) {
  if (text.size() <= most) return false;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += decode_char(text, at).bytes)
    if (++count > most) return true;
  return false;
}

}  // namespace

WordPiece::WordPiece(const TokenizerTables& tables, Options options)
    : tables_(tables), options_(std::move(options)) {
  for (const char c : options_.subword_prefix) {
    if (inner_node_ < 0) break;
    inner_node_ =
        tables.child(static_cast<std::uint32_t>(inner_node_), static_cast<unsigned char>(c));
  }
}

WordPiece::Match WordPiece::longest(std::int64_t node, std::string_view text,
                                    const IdSet* banned) const {
  Match best{-1, 0};
  for (std::size_t at = 0; at < text.size() && node >= 0;) {
    node = tables_.child(static_cast<std::uint32_t>(node), static_cast<unsigned char>(text[at++]));
    if (node < 0) break;
    const std::int32_t token = tables_.token_at(static_cast<std::uint32_t>(node));
    if (token < 0 || (banned != nullptr && banned->contains(token))) continue;
    best = {token, at};
  }
  return best;
}

void WordPiece::encode_word(std::string_view word, const IdSet* banned,
                            std::vector<std::int32_t>& out) const {
  const std::size_t before = out.size();
  bool known = !longer_than(word, options_.max_word_chars);
  for (std::size_t at = 0; known && at < word.size();) {
    const Match match = longest(at == 0 ? 0 : inner_node_, word.substr(at), banned);
    known = match.token >= 0;
    if (known) out.push_back(match.token);
    at += match.bytes;
  }
  if (known) return;
  out.resize(before);
  if (options_.unk_id) out.push_back(*options_.unk_id);
}

void WordLevel::encode_word(std::string_view word, const IdSet* banned,
                            std::vector<std::int32_t>& out) const {
  const std::int32_t id = tables_.find(word);
  if (id >= 0 && tables_.is_id(id) && (banned == nullptr || !banned->contains(id))) {
    out.push_back(id);
  } else if (unk_id_) {
    out.push_back(*unk_id_);
  }
}

}  // namespace quern::text
