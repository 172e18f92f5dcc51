#include "text/tokenizer.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/added_tokens.hpp"
#include "text/byte_alphabet.hpp"
#include "text/decoder.hpp"
#include "text/markup.hpp"
#include "text/normalizer.hpp"
#include "text/pretokenizer.hpp"
#include "text/tokenizer_tables.hpp"
#include "text/word_model.hpp"

namespace quern::text {

namespace {

constexpr std::int32_t kMostId = (1 << 26) - 1;

bool added_control(const contract::AddedToken& token) {
  return token.special || looks_like_markup(token.content);
}

void check_description(const contract::TokenizerDescription& description, std::string_view where) {
  const auto& steps = description.pre_tokenizers;
  const bool prefixed = std::find(steps.begin(), steps.end(), "prefix_space") != steps.end();
  if (prefixed != description.add_prefix_space)
    base::reject(where, "add_prefix_space and the step prefix_space disagree");
  for (const contract::AddedToken& token : description.added)
    if (token.content.empty() || token.content.size() > kMostAddedBytes)
      base::reject(where, base::cat("added token ", token.id, " has an impossible length"),
                   base::cat(token.content.size(), " bytes"), base::cat("1 to ", kMostAddedBytes));
}

// The pieces that a sentencepiece normalizer leaves alone.
std::vector<AddedEntry> user_defined(const contract::TokenizerDescription& description,
                                     const TokenizerTables& tables) {
  std::vector<AddedEntry> entries;
  for (const std::int32_t id : description.user_defined)
    if (!tables.token(id).empty())
      entries.push_back({std::string(tables.token(id)), id, false, false, false, false});
  return entries;
}

std::vector<AddedEntry> entries_of(const contract::TokenizerDescription& description,
                                   bool normalized, const Normalizer* normalizer) {
  std::vector<AddedEntry> entries;
  for (const contract::AddedToken& token : description.added) {
    if (token.normalized != normalized) continue;
    std::string content = normalizer != nullptr ? normalizer->apply(token.content) : token.content;
    if (content.empty()) continue;
    entries.push_back({std::move(content), token.id, added_control(token), token.single_word,
                       token.lstrip, token.rstrip});
  }
  return entries;
}

}  // namespace

namespace {

struct TextPart {
  std::string_view text;
  bool at_start;  // it begins where the whole text does
};

using MarkedRanges = std::vector<base::MarkedText::Range>;

// The parts of ascending ranges that lie in [begin, begin + size), counted from begin.
MarkedRanges ranges_in(const MarkedRanges& ranges, std::size_t begin, std::size_t size) {
  const std::size_t end = begin + size;
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [&](const auto& r) { return r.end <= begin; });
  MarkedRanges out;
  for (; range != ranges.end() && range->begin < end; ++range)
    out.push_back({std::max(range->begin, begin) - begin, std::min(range->end, end) - begin});
  return out;
}

}  // namespace

struct Tokenizer::State {
  State(const contract::TokenizerDescription& d, base::Bytes section, std::string_view where)
      : tables(section, where),
        normalizer(d.normalizers, where, tables.charsmap(), user_defined(d, tables)),
        pre_tokenizer(d.pre_tokenizers, where, d.byte_level),
        raw(entries_of(d, false, nullptr)),
        normalized(entries_of(d, true, &normalizer)),
        unnormalized(entries_of(d, true, nullptr)),
        model(make_word_model(d, tables, where)),
        decoder(d.decoders, d.byte_level, where),
        bytes_level(d.byte_level),
        added(d.added),
        single{d.prefix_ids, d.prefix_types, d.text_type, {}, {}, 0, d.suffix_ids, d.suffix_types},
        pair(d.pair) {
    size = std::max(tables.size(), decoded_size());
    for (std::size_t i = 0; i < added.size(); ++i) add(i, where);
    for (const std::int32_t id : d.user_defined)
      if (looks_like_markup(tables.token(id))) control_ids.insert(id);
    check_template(single, where);
    if (pair) check_template(*pair, where);
    if (d.unk_id) check_id(*d.unk_id, where);
  }

  std::size_t decoded_size() const {
    return tables.has_second_vocabulary() ? tables.decoded_size() : 0;
  }

  void add(std::size_t index, std::string_view where) {
    contract::AddedToken& token = added[index];
    if (token.id < 0 || token.id > kMostId)
      base::reject(where, "added token with an impossible id", base::cat(token.id));
    added_of_id.emplace(token.id, index);
    id_of_content.emplace(token.content, token.id);
    if (added_control(token)) control_ids.insert(token.id);
    size = std::max(size, static_cast<std::size_t>(token.id) + 1);
    // A token of normalized text reads back as what it was found as, like the reference's.
    if (token.normalized && !normalizer.empty()) token.content = normalizer.apply(token.content);
    if (bytes_level)
      if (auto bytes = alphabet_to_bytes(token.content)) token.content = std::move(*bytes);
  }

  void check_template(const contract::PairTemplate& t, std::string_view where) const {
    if (t.prefix_ids.size() != t.prefix_types.size() ||
        t.middle_ids.size() != t.middle_types.size() ||
        t.suffix_ids.size() != t.suffix_types.size())
      base::reject(where, "not one token type for each id around the text");
    for (const auto* ids : {&t.prefix_ids, &t.middle_ids, &t.suffix_ids})
      for (const std::int32_t id : *ids) check_id(id, where);
  }

  void check_id(std::int32_t id, std::string_view where) const {
    if (id < 0 || static_cast<std::size_t>(id) >= size)
      base::reject(where, "special id outside the vocabulary", base::cat(id),
                   base::cat("below ", size));
  }

  // Pre-tokens of text that holds no added token any more.
  void encode_plain(const TextPart& part, const IdSet* banned,
                    std::vector<std::int32_t>& out) const {
    pre_tokenizer.run(
        part.text, [&](std::string_view word) { model->encode_word(word, banned, out); },
        part.at_start);
  }

  // A piece between raw added tokens: normalized, then searched for the tokens of normalized text.
  void encode_piece(TextPart part, const IdSet* banned, const ControlRule& rule,
                    std::vector<std::int32_t>& out) const {
    Normalizer::Result result;
    if (!normalizer.empty()) {
      result = normalizer.run(part.text);
      part = {result.text, part.at_start && result.start_kept};
    }
    if (normalized.empty()) return encode_plain(part, banned, out);
    std::vector<AddedPiece> pieces;
    normalized.split(part.text, rule, pieces);
    for (const AddedPiece& piece : pieces) {
      if (piece.id >= 0) {
        out.push_back(piece.id);
      } else {
        const bool first = piece.text.data() == part.text.data();
        encode_plain({piece.text, part.at_start && first}, banned, out);
      }
    }
  }

  std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const {
    std::vector<std::int32_t> ids;
    const IdSet* banned = parse_special ? nullptr : &control_ids;
    const ControlRule rule{parse_special ? ControlRule::Kind::all : ControlRule::Kind::none};
    std::vector<AddedPiece> pieces;
    raw.split(text, rule, pieces);
    for (const AddedPiece& piece : pieces) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
      } else {
        encode_piece({piece.text, piece.text.data() == text.data()}, banned, rule, ids);
      }
    }
    return ids;
  }

  std::vector<std::int32_t> encode_marked(const base::MarkedText& marked) const {
    std::vector<std::int32_t> ids;
    const std::string_view text = marked.text;
    std::vector<AddedPiece> pieces;
    raw.split(text, {ControlRule::Kind::trusted, &marked.untrusted, nullptr}, pieces);
    for (const AddedPiece& piece : pieces) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        continue;
      }
      const auto begin = static_cast<std::size_t>(piece.text.data() - text.data());
      encode_marked_piece({piece.text, begin == 0},
                          ranges_in(marked.untrusted, begin, piece.text.size()), ids);
    }
    return ids;
  }

  // The normalizer moves bytes about, so marks are carried over by the order of the control tokens:
  // where the piece has as many of them after as before, the n-th is the n-th.
  void encode_marked_piece(TextPart part, const MarkedRanges& untrusted,
                           std::vector<std::int32_t>& out) const {
    if (normalizer.empty() || untrusted.empty() || !normalized.has_control())
      return encode_piece(part, &control_ids, {ControlRule::Kind::trusted, &untrusted, nullptr},
                          out);
    const MarkedRanges before = unnormalized.control_places(part.text);
    std::vector<bool> allowed;
    for (const auto& place : before)
      allowed.push_back(ranges_in(untrusted, place.begin, place.end - place.begin).empty());
    const std::size_t n_after = normalized.control_places(normalizer.apply(part.text)).size();
    if (n_after == before.size())
      return encode_piece(part, &control_ids, {ControlRule::Kind::listed, nullptr, &allowed}, out);
    // They differ: the trusted ones are cut out first, and what is left has none.
    std::vector<AddedPiece> pieces;
    unnormalized.split(part.text, {ControlRule::Kind::trusted, &untrusted, nullptr}, pieces);
    for (const AddedPiece& piece : pieces) {
      const bool first = piece.text.data() == part.text.data();
      if (piece.id >= 0)
        out.push_back(piece.id);
      else
        encode_piece({piece.text, part.at_start && first}, &control_ids, {ControlRule::Kind::none},
                     out);
    }
  }

  TokenizerTables tables;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedMatcher raw, normalized,
      unnormalized;  // the last: contents of `normalized` as they are written
  std::unique_ptr<WordModel> model;
  Decoder decoder;
  bool bytes_level;
  std::vector<contract::AddedToken> added;
  contract::PairTemplate single;  // its middle is empty
  std::optional<contract::PairTemplate> pair;
  std::unordered_map<std::int32_t, std::size_t> added_of_id;
  std::unordered_map<std::string, std::int32_t> id_of_content;
  IdSet control_ids;
  std::size_t size = 0;
};

Tokenizer::Tokenizer(const contract::TokenizerDescription& description, base::Bytes tables,
                     std::string_view where) {
  check_description(description, where);
  state_ = std::make_unique<State>(description, tables, where);
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

namespace {

void append(Encoding& out, const std::vector<std::int32_t>& ids,
            const std::vector<std::int32_t>& types) {
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.types.insert(out.types.end(), types.begin(), types.end());
}

void append(Encoding& out, const std::vector<std::int32_t>& ids, std::int32_t type) {
  append(out, ids, std::vector<std::int32_t>(ids.size(), type));
}

}  // namespace

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            const EncodeOptions& options) const {
  return encode_typed(text, options).ids;
}

std::vector<std::int32_t> Tokenizer::encode(const base::MarkedText& text) const {
  return state_->encode_marked(text);
}

Encoding Tokenizer::encode_typed(std::string_view text, const EncodeOptions& options) const {
  const contract::PairTemplate& around = state_->single;
  Encoding out;
  if (options.add_special) append(out, around.prefix_ids, around.prefix_types);
  append(out, state_->encode(text, options.parse_special), around.first_type);
  if (options.add_special) append(out, around.suffix_ids, around.suffix_types);
  return out;
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                const EncodeOptions& options) const {
  if (!state_->pair) base::reject("tokenizer", "it does not join two texts");
  const contract::PairTemplate& around = *state_->pair;
  Encoding out;
  if (options.add_special) append(out, around.prefix_ids, around.prefix_types);
  append(out, state_->encode(first, options.parse_special), around.first_type);
  if (options.add_special) append(out, around.middle_ids, around.middle_types);
  append(out, state_->encode(second, options.parse_special), around.second_type);
  if (options.add_special) append(out, around.suffix_ids, around.suffix_types);
  return out;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids, bool skip_special) const {
  Decoder::Stream stream(state_->decoder);
  std::string text;
  for (const std::int32_t id : ids)
    if (has_text(id) && !(skip_special && is_special(id))) text += stream.push(token_bytes(id));
  return text += stream.finish();
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  const auto found = state_->added_of_id.find(id);
  return found != state_->added_of_id.end() ? std::string_view(state_->added[found->second].content)
                                            : state_->tables.decoded(id);
}

bool Tokenizer::has_text(std::int32_t id) const {
  return state_->added_of_id.contains(id) || !state_->tables.decoded(id).empty();
}

const Decoder& Tokenizer::decoder() const {
  return state_->decoder;
}

bool Tokenizer::is_special(std::int32_t id) const {
  const auto found = state_->added_of_id.find(id);
  return found != state_->added_of_id.end() && state_->added[found->second].special;
}

bool Tokenizer::is_control(std::int32_t id) const {
  return state_->control_ids.contains(id);
}

std::int32_t Tokenizer::id_of(std::string_view token_content) const {
  const auto found = state_->id_of_content.find(std::string(token_content));
  return found != state_->id_of_content.end() ? found->second : state_->tables.find(token_content);
}

std::size_t Tokenizer::size() const {
  return state_->size;
}

}  // namespace quern::text
