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

// Whether the model can work on bytes: it is fed the byte alphabet, and nothing else looks at words
// in it. Otherwise words stay spelled in the alphabet.
bool works_on_bytes(const Json& root, const Json& model) {
  const auto empty = [&](std::string_view key) {
    const Json* affix = member(model, key);
    return affix == nullptr || *affix == Json("");
  };
  const Json& decoder = part(root, "decoder");
  const bool read_back =
      decoder.is_null() || (mentions(decoder, "decoders", "ByteLevel") &&
                            flat_steps(decoder, "decoders", "decoder").size() == 1);
  return member(model, "merges") != nullptr && read_back &&
         mentions(part(root, "pre_tokenizer"), "pretokenizers", "ByteLevel") &&
         !mentions(part(root, "normalizer"), "normalizers", "ByteLevel") &&
         empty("continuing_subword_prefix") && empty("end_of_word_suffix");
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

}  // namespace

std::optional<UnsupportedTokenizer> import_tokenizer_json(const SideFiles& files,
                                                          std::string_view where,
                                                          std::size_t vocab_size,
                                                          ImportedTokenizer& out) {
  const Json root = base::parse_json(files.tokenizer_json, where);
  const Json* model = member(root, "model");
  if (model == nullptr || !model->is_object())
    reject(cat(where, ": model"), "an object is missing");
  contract::TokenizerDescription& description = out.description;
  ModelImport made(description, where, vocab_size);
  if (auto reason = import_model(*model, where, made)) return reason;
  description.byte_level = works_on_bytes(root, *model);
  import_normalizer(part(root, "normalizer"), cat(where, ": normalizer"), description,
                    made.charsmap);
  import_pre_tokenizer(part(root, "pre_tokenizer"), cat(where, ": pre_tokenizer"),
                       !description.byte_level, description);
  import_post_processor(part(root, "post_processor"), cat(where, ": post_processor"), description);
  import_decoder(part(root, "decoder"), cat(where, ": decoder"), description);

  AddedReader added(where, vocab_size, made.vocabulary, out);
  added.read_list(part(root, "added_tokens"));
  if (!files.tokenizer_config.empty()) {
    constexpr std::string_view kConfig = "tokenizer_config.json";
    const Json config = base::parse_json(files.tokenizer_config, kConfig);
    const Json& table = part(config, "added_tokens_decoder");
    if (table.is_object()) added.read_decoder(table, kConfig);
  }
  out.tables = made.build(out.notices);
  import_side_files(files, out);
  return std::nullopt;
}

}  // namespace quern::convert
