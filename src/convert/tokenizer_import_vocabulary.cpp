#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "text/added_tokens.hpp"
#include "text/byte_alphabet.hpp"

namespace quern::convert {

using base::cat;
using base::printable;
using base::reject;

namespace {

constexpr std::int64_t kMostId = (1 << 24) - 1;

}  // namespace

void VocabularyBuilder::add_token(std::string spelling, std::int64_t id, bool decode_only) {
  if (id < 0 || id > kMostId) reject(where_, "token id out of range", cat(id));
  if (vocab_size_ > 0 && static_cast<std::size_t>(id) >= vocab_size_)
    reject(where_, cat("token \"", printable(spelling, 60), "\" has an id beyond the embedding"),
           cat(id), cat("below ", vocab_size_));
  const auto index = static_cast<std::size_t>(id);
  if (index >= entries_.size()) entries_.resize(index + 1);
  if (entries_[index].used)
    reject(where_, cat("two tokens have the id ", id),
           cat("\"", printable(entries_[index].spelling, 60), "\" and \"", printable(spelling, 60),
               "\""));
  const auto narrow = static_cast<std::int32_t>(id);
  ids_.emplace(spelling, Ids{narrow, narrow}).first->second.last = narrow;
  entries_[index] = {std::move(spelling), true, decode_only};
}

void VocabularyBuilder::add_merge(std::string_view left, std::string_view right,
                                  std::string_view subword_prefix) {
  const std::string_view inner =
      right.starts_with(subword_prefix) ? right.substr(subword_prefix.size()) : right;
  const std::string joined = cat(left, inner);
  const std::int32_t l = id_of(left), r = id_of(right), result = id_of(joined);
  if (l < 0 || r < 0 || result < 0) {
    const std::string_view missing = l < 0 ? left : r < 0 ? right : std::string_view(joined);
    reject(where_, cat("merge ", merges_.size(), " names a token that is not in the vocabulary"),
           cat("\"", printable(missing, 80), "\""));
  }
  merges_.push_back({l, r, result});
}

bool VocabularyBuilder::add_known_merge(std::string_view left, std::string_view right) {
  if (id_of(left) < 0 || id_of(right) < 0 || id_of(cat(left, right)) < 0) return false;
  add_merge(left, right);
  return true;
}

std::int32_t VocabularyBuilder::id_of(std::string_view spelling) const {
  const auto found = ids_.find(std::string(spelling));
  return found == ids_.end() ? -1 : found->second.first;
}

std::int32_t VocabularyBuilder::last_id_of(std::string_view spelling) const {
  const auto found = ids_.find(std::string(spelling));
  return found == ids_.end() ? -1 : found->second.last;
}

const std::string* VocabularyBuilder::spelling_of(std::int64_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= entries_.size()) return nullptr;
  const Entry& entry = entries_[static_cast<std::size_t>(id)];
  return entry.used ? &entry.spelling : nullptr;
}

text::Vocabulary VocabularyBuilder::finish(bool byte_level, std::vector<std::string>& notices) {
  text::Vocabulary out;
  out.byte_level = byte_level;
  out.merges = std::move(merges_);
  out.tokens.resize(entries_.size());
  out.decode_only.resize(entries_.size());
  std::size_t repeated = 0, bytes_found = 0;
  for (std::size_t id = 0; id < entries_.size(); ++id) {
    Entry& entry = entries_[id];
    if (!entry.used) continue;
    std::optional<std::string> bytes =
        byte_level ? text::alphabet_to_bytes(entry.spelling) : entry.spelling;
    out.decode_only[id] = entry.decode_only || !bytes;
    repeated +=
        !entry.decode_only && ids_.at(entry.spelling).first != static_cast<std::int32_t>(id);
    bytes_found += bytes && bytes->size() == 1 && !entry.decode_only;
    out.tokens[id] = bytes ? std::move(*bytes) : std::move(entry.spelling);
  }
  if (repeated > 0)
    notices.push_back(
        cat(where_, ": ", repeated, " tokens repeat the text of another; the lowest id is used"));
  if (byte_level && bytes_found < 256)
    notices.push_back(
        cat(where_, ": ", 256 - bytes_found,
            " of the 256 bytes have no token; text drops them, as the reference does"));
  return out;
}

std::pair<std::string_view, std::string_view> split_merge(std::string_view merge, std::size_t rank,
                                                          std::string_view where) {
  const std::size_t space = merge.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
      merge.find(' ', space + 1) != std::string_view::npos)
    reject(where, cat("merge ", rank, " is not a pair"), cat("\"", printable(merge, 80), "\""));
  return {merge.substr(0, space), merge.substr(space + 1)};
}

AddedTokens::AddedTokens(contract::TokenizerDescription& description, std::string_view where)
    : added_(description.added), where_(where) {
  for (std::size_t i = 0; i < added_.size(); ++i) {
    ids_.emplace(added_[i].id, i);
    contents_.emplace(added_[i].content, added_[i].id);
  }
}

void AddedTokens::add(contract::AddedToken token) {
  if (token.content.size() > text::kMostAddedBytes)
    reject(where_, cat("added token ", token.id, " is too long"),
           cat(token.content.size(), " bytes"), cat("at most ", text::kMostAddedBytes));
  const auto known = ids_.find(token.id);
  if (known != ids_.end()) {
    if (added_[known->second].content == token.content) return;
    reject(where_, cat("two added tokens have the id ", token.id),
           cat("\"", printable(added_[known->second].content, 60), "\" and \"",
               printable(token.content, 60), "\""));
  }
  if (!contents_.emplace(token.content, token.id).second)
    reject(where_, cat("added token \"", printable(token.content, 60), "\" has two ids"));
  ids_.emplace(token.id, added_.size());
  added_.push_back(std::move(token));
}

std::int32_t AddedTokens::id_of(std::string_view content) const {
  const auto found = contents_.find(std::string(content));
  return found == contents_.end() ? -1 : found->second;
}

const base::Json* member(const base::Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_member(const base::Json& object, std::string_view key, std::string_view where) {
  const base::Json* value = member(object, key);
  if (value == nullptr) reject(cat(where, ": ", key), "key is missing");
  if (!value->is_string())
    reject(cat(where, ": ", key), "wrong kind of value", value->type_name(), "string");
  return value->get<std::string>();
}

bool flag_member(const base::Json& object, std::string_view key, bool fallback,
                 std::string_view where) {
  const base::Json* value = member(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean())
    reject(cat(where, ": ", key), "wrong kind of value", value->type_name(), "true or false");
  return value->get<bool>();
}

std::int64_t id_member(const base::Json& object, std::string_view key, std::string_view where) {
  const base::Json* value = member(object, key);
  const auto place = [&] { return cat(where, ": ", printable(key, 60)); };  // maybe a token's text
  if (value == nullptr) reject(place(), "key is missing");
  const bool whole = value->is_number_unsigned() || value->is_number_integer();
  if (!whole) reject(place(), "wrong kind of value", value->type_name(), "an integer");
  const std::int64_t id = value->get<std::int64_t>();
  if (id < 0 || id > kMostId) reject(place(), "token id out of range", value->dump());
  return id;
}

}  // namespace quern::convert
