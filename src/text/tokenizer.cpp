#include "text/tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/added_tokens.hpp"
#include "text/bpe.hpp"
#include "text/normalizer.hpp"
#include "text/pretokenizer.hpp"
#include "text/tokenizer_tables.hpp"

namespace quern::text {

namespace {

constexpr std::int32_t kMostId = (1 << 26) - 1;

// Markup by its look: added tokens that are not flagged special but steer the model all the same
// ("<think>", "<|User|>", "[INST]").
bool looks_like_markup(std::string_view content) {
  if (content.size() < 3) return false;
  return (content.front() == '<' && content.back() == '>') ||
         (content.front() == '[' && content.back() == ']');
}

bool is_control(const contract::AddedToken& token) {
  return token.special || looks_like_markup(token.content);
}

void check_model(const contract::TokenizerDescription& description, std::string_view where) {
  if (description.model != "bpe")
    base::reject(where, "tokenizer model not supported", base::printable(description.model), "bpe");
  if (!description.byte_level)
    base::reject(where, "BPE without the byte alphabet is not supported yet");
  if (description.decoder != "byte_level")
    base::reject(where, "decoder not supported", base::printable(description.decoder),
                 "byte_level");
  const auto& steps = description.pre_tokenizers;
  const bool prefixed = std::find(steps.begin(), steps.end(), "prefix_space") != steps.end();
  if (prefixed != description.add_prefix_space)
    base::reject(where, "add_prefix_space and the step prefix_space disagree");
  for (const contract::AddedToken& token : description.added)
    if (token.content.empty() || token.content.size() > kMostAddedBytes)
      base::reject(where, base::cat("added token ", token.id, " has an impossible length"),
                   base::cat(token.content.size(), " bytes"), base::cat("1 to ", kMostAddedBytes));
}

std::vector<AddedEntry> entries_of(const contract::TokenizerDescription& description,
                                   bool normalized, const Normalizer& normalizer) {
  std::vector<AddedEntry> entries;
  for (const contract::AddedToken& token : description.added) {
    if (token.normalized != normalized) continue;
    std::string content = normalized ? normalizer.apply(token.content) : token.content;
    if (content.empty()) continue;
    entries.push_back({std::move(content), token.id, is_control(token), token.single_word,
                       token.lstrip, token.rstrip});
  }
  return entries;
}

}  // namespace

struct Tokenizer::State {
  State(const contract::TokenizerDescription& d, base::Bytes section, std::string_view where)
      : tables(section, where),
        normalizer(d.normalizers, where),
        pre_tokenizer(d.pre_tokenizers, where),
        raw(entries_of(d, false, normalizer)),
        normalized(entries_of(d, true, normalizer)),
        bpe(tables, {d.ignore_merges, d.fuse_unk, d.unk_id}),
        added(d.added),
        prefix(d.prefix_ids),
        suffix(d.suffix_ids) {
    size = tables.size();
    for (std::size_t i = 0; i < added.size(); ++i) add(i, where);
    for (const auto* ids : {&prefix, &suffix})
      for (const std::int32_t id : *ids) check_id(id, where);
    if (d.unk_id) check_id(*d.unk_id, where);
  }

  void add(std::size_t index, std::string_view where) {
    contract::AddedToken& token = added[index];
    if (token.id < 0 || token.id > kMostId)
      base::reject(where, "added token with an impossible id", base::cat(token.id));
    added_of_id.emplace(token.id, index);
    id_of_content.emplace(token.content, token.id);
    if (is_control(token)) control_ids.insert(token.id);
    size = std::max(size, static_cast<std::size_t>(token.id) + 1);
    // A token of normalized text reads back as what it was found as, like the reference's.
    if (token.normalized && !normalizer.empty()) token.content = normalizer.apply(token.content);
  }

  void check_id(std::int32_t id, std::string_view where) const {
    if (id < 0 || static_cast<std::size_t>(id) >= size)
      base::reject(where, "special id outside the vocabulary", base::cat(id),
                   base::cat("below ", size));
  }

  // Pre-tokens of text that holds no added token any more.
  void encode_plain(std::string_view text, const Bpe::IdSet* banned,
                    std::vector<std::int32_t>& out) const {
    pre_tokenizer.run(text, [&](std::string_view word) { bpe.encode_word(word, banned, out); });
  }

  // A piece between raw added tokens: normalized, then searched for the tokens of normalized text.
  void encode_piece(std::string_view text, const Bpe::IdSet* banned,
                    std::vector<std::int32_t>& out) const {
    std::string buffer;
    if (!normalizer.empty()) {
      buffer = normalizer.apply(text);
      text = buffer;
    }
    if (normalized.empty()) return encode_plain(text, banned, out);
    std::vector<AddedPiece> pieces;
    normalized.split(text, banned != nullptr, pieces);
    for (const AddedPiece& piece : pieces) {
      if (piece.id >= 0) {
        out.push_back(piece.id);
      } else {
        encode_plain(piece.text, banned, out);
      }
    }
  }

  TokenizerTables tables;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedMatcher raw, normalized;
  Bpe bpe;
  std::vector<contract::AddedToken> added;
  std::vector<std::int32_t> prefix, suffix;
  std::unordered_map<std::int32_t, std::size_t> added_of_id;
  std::unordered_map<std::string, std::int32_t> id_of_content;
  Bpe::IdSet control_ids;
  std::size_t size = 0;
};

Tokenizer::Tokenizer(const contract::TokenizerDescription& description, base::Bytes tables,
                     std::string_view where) {
  check_model(description, where);
  state_ = std::make_unique<State>(description, tables, where);
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            const EncodeOptions& options) const {
  std::vector<std::int32_t> ids;
  if (options.add_special) ids = state_->prefix;
  const Bpe::IdSet* banned = options.parse_special ? nullptr : &state_->control_ids;
  std::vector<AddedPiece> pieces;
  state_->raw.split(text, banned != nullptr, pieces);
  for (const AddedPiece& piece : pieces) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
    } else {
      state_->encode_piece(piece.text, banned, ids);
    }
  }
  if (options.add_special) ids.insert(ids.end(), state_->suffix.begin(), state_->suffix.end());
  return ids;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids, bool skip_special) const {
  std::string text;
  for (const std::int32_t id : ids)
    if (!skip_special || !is_special(id)) text += token_bytes(id);
  return text;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  const auto found = state_->added_of_id.find(id);
  return found != state_->added_of_id.end() ? std::string_view(state_->added[found->second].content)
                                            : state_->tables.token(id);
}

bool Tokenizer::is_special(std::int32_t id) const {
  const auto found = state_->added_of_id.find(id);
  return found != state_->added_of_id.end() && state_->added[found->second].special;
}

std::int32_t Tokenizer::id_of(std::string_view token_content) const {
  const auto found = state_->id_of_content.find(std::string(token_content));
  return found != state_->id_of_content.end() ? found->second : state_->tables.find(token_content);
}

std::size_t Tokenizer::size() const {
  return state_->size;
}

}  // namespace quern::text
