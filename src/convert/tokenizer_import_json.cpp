#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::printable;
using base::reject;

namespace {

// Whether a step of this type occurs anywhere in the tree.
bool mentions(const Json& value, std::string_view list_key, std::string_view type, int depth = 0) {
  if (!value.is_object() || depth > 8) return false;
  const Json* name = member(value, "type");
  if (name != nullptr && name->is_string() && name->get<std::string>() == type) return true;
  const Json* list = member(value, list_key);
  if (list == nullptr || !list->is_array()) return false;
  for (const Json& step : *list)
    if (mentions(step, list_key, type, depth + 1)) return true;
  return false;
}

const Json& part(const Json& root, std::string_view key) {
  static const Json kNull;
  const Json* found = member(root, key);
  return found == nullptr ? kNull : *found;
}

std::string model_type(const Json& model) {
  const Json* type = member(model, "type");
  if (type != nullptr && type->is_string()) return type->get<std::string>();
  return member(model, "merges") != nullptr ? "BPE"
                                            : "without a type";  // files of 2019 leave it out
}

// What is well formed but not run by this version.
std::optional<UnsupportedTokenizer> unsupported(const Json& root, const Json& model) {
  if (const std::string type = model_type(model); type != "BPE")
    return UnsupportedTokenizer{cat("tokenizer model ", printable(type, 60))};
  if (!mentions(part(root, "pre_tokenizer"), "pretokenizers", "ByteLevel"))
    return UnsupportedTokenizer{"tokenizer model BPE without the byte alphabet"};
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const Json* affix = member(model, key); affix != nullptr && *affix != Json(""))
      return UnsupportedTokenizer{cat("tokenizer model BPE with ", key)};
  if (!has_byte_level_decoder(part(root, "decoder")))
    return UnsupportedTokenizer{
        cat("tokenizer decoder ", printable(part(root, "decoder").dump(), 120))};
  return std::nullopt;
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

void read_merges(const Json& model, std::string_view where, VocabularyBuilder& vocabulary) {
  const Json* merges = member(model, "merges");
  if (merges == nullptr || !merges->is_array())
    reject(cat(where, ": model.merges"), "a list is missing");
  std::size_t rank = 0;
  for (const Json& merge : *merges) {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const auto [left, right] = split_merge(text, rank, where);
      vocabulary.add_merge(left, right);
    } else {
      const bool pair =
          merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
      if (!pair) reject(where, cat("merge ", rank, " is not a pair"), printable(merge.dump(), 80));
      vocabulary.add_merge(merge[0].get_ref<const std::string&>(),
                           merge[1].get_ref<const std::string&>());
    }
    ++rank;
  }
}

contract::AddedToken read_added(const Json& value, std::int64_t id, std::string_view where) {
  contract::AddedToken token{};
  token.content = text_member(value, "content", where);
  token.id = static_cast<std::int32_t>(id);
  token.special = flag_member(value, "special", false, where);
  token.normalized = flag_member(value, "normalized", !token.special, where);
  token.single_word = flag_member(value, "single_word", false, where);
  token.lstrip = flag_member(value, "lstrip", false, where);
  token.rstrip = flag_member(value, "rstrip", false, where);
  return token;
}

// Takes a token of the list unless it lies beyond the embedding (nobody trained it: it stays text).
class AddedReader {
 public:
  AddedReader(std::string_view where, std::size_t vocab_size, const VocabularyBuilder& vocabulary,
              ImportedTokenizer& out)
      : where_(where),
        vocab_size_(vocab_size),
        vocabulary_(vocabulary),
        out_(out),
        added_(out.description, where) {}

  void read_list(const Json& list) {
    if (list.is_null()) return;
    if (!list.is_array())
      reject(cat(where_, ": added_tokens"), "wrong kind of value", list.type_name(), "a list");
    for (const Json& value : list) {
      contract::AddedToken token = read_added(value, id_member(value, "id", where_), where_);
      if (skip(token)) continue;
      const std::int32_t known = vocabulary_.id_of(token.content);
      if (known >= 0 && known != token.id)
        reject(where_,
               cat("added token \"", printable(token.content, 60),
                   "\" has another id than the vocabulary"),
               cat(token.id), cat(known));
      if (const std::string* other = vocabulary_.spelling_of(token.id);
          other != nullptr && known < 0)
        reject(where_, cat("two tokens have the id ", token.id),
               cat("\"", printable(*other, 60), "\" and \"", printable(token.content, 60), "\""));
      added_.add(std::move(token));
    }
  }

  // added_tokens_decoder of tokenizer_config.json: what tokenizer.json lacks; on conflict the
  // latter wins.
  void read_decoder(const Json& table, std::string_view where) {
    std::size_t joined = 0, conflicts = 0;
    for (const auto& [key, value] : table.items()) {
      const bool digits =
          !key.empty() && key.size() < 9 && key.find_first_not_of("0123456789") == key.npos;
      if (!digits)
        reject(cat(where, ": added_tokens_decoder"), "key is not an id", printable(key, 40));
      contract::AddedToken token = read_added(value, std::stol(key), where);
      const bool listed = added_.has_id(token.id) && added_.id_of(token.content) == token.id;
      if (listed || skip(token)) continue;
      const std::string* in_vocabulary = vocabulary_.spelling_of(token.id);
      const std::int32_t known =
          std::max(vocabulary_.id_of(token.content), added_.id_of(token.content));
      const bool conflict = added_.has_id(token.id) || (known >= 0 && known != token.id) ||
                            (in_vocabulary != nullptr && known < 0);
      conflict ? ++conflicts : ++joined;
      if (!conflict) added_.add(std::move(token));
    }
    if (joined > 0)
      out_.notices.push_back(
          cat(where, ": ", joined, " added tokens that tokenizer.json lacks are taken over"));
    if (conflicts > 0)
      out_.notices.push_back(
          cat(where, ": ", conflicts, " added tokens contradict tokenizer.json and are ignored"));
  }

 private:
  bool skip(const contract::AddedToken& token) {
    if (token.content.empty()) return true;
    if (vocab_size_ == 0 || static_cast<std::size_t>(token.id) < vocab_size_) return false;
    out_.notices.push_back(cat(where_, ": added token \"", printable(token.content, 60), "\" (",
                               token.id, ") lies beyond the embedding and is ignored"));
    return true;
  }

  std::string where_;
  std::size_t vocab_size_;
  const VocabularyBuilder& vocabulary_;
  ImportedTokenizer& out_;
  AddedTokens added_;
};

void read_flags(const Json& model, std::string_view where, const VocabularyBuilder& vocabulary,
                contract::TokenizerDescription& out) {
  out.ignore_merges = flag_member(model, "ignore_merges", false, where);
  out.byte_fallback = flag_member(model, "byte_fallback", false, where);
  out.fuse_unk = flag_member(model, "fuse_unk", false, where);
  const Json* unknown = member(model, "unk_token");
  if (unknown == nullptr || !unknown->is_string()) return;
  const std::int32_t id = vocabulary.id_of(unknown->get<std::string>());
  if (id >= 0) out.unk_id = id;
}

}  // namespace

std::optional<UnsupportedTokenizer> import_tokenizer_json(const SideFiles& files,
                                                          std::string_view where,
                                                          std::size_t vocab_size,
                                                          ImportedTokenizer& out) {
  const Json root = base::parse_json(files.tokenizer_json, where);
  const Json* model = member(root, "model");
  if (model == nullptr || !model->is_object())
    reject(cat(where, ": model"), "an object is missing");
  if (auto reason = unsupported(root, *model)) return reason;

  contract::TokenizerDescription& description = out.description;
  description.model = "bpe";
  description.decoder = "byte_level";
  VocabularyBuilder vocabulary(where, vocab_size);
  read_vocabulary(*model, where, vocabulary);
  read_merges(*model, where, vocabulary);
  read_flags(*model, where, vocabulary, description);
  import_normalizer(part(root, "normalizer"), cat(where, ": normalizer"), description);
  import_pre_tokenizer(part(root, "pre_tokenizer"), cat(where, ": pre_tokenizer"), description);
  import_post_processor(part(root, "post_processor"), cat(where, ": post_processor"), description);

  AddedReader added(where, vocab_size, vocabulary, out);
  added.read_list(part(root, "added_tokens"));
  if (!files.tokenizer_config.empty()) {
    constexpr std::string_view kConfig = "tokenizer_config.json";
    const Json config = base::parse_json(files.tokenizer_config, kConfig);
    const Json& table = part(config, "added_tokens_decoder");
    if (table.is_object()) added.read_decoder(table, kConfig);
  }
  out.tables = text::build_tokenizer_tables(vocabulary.finish(out.notices));
  import_side_files(files, out);
  return std::nullopt;
}

}  // namespace quern::convert
