#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "convert/tokenizer_import_pre.hpp"

namespace quern::convert {

using base::cat;
using base::reject;
using checkpoint::GgufFile;
using checkpoint::GgufType;
using checkpoint::GgufValue;

namespace {

enum class TokenType : std::int64_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

std::string text_value(const GgufFile& file, std::string_view key, std::string_view where) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return {};
  if (value->type != GgufType::string)
    reject(cat(where, ": ", key), "wrong kind of value", {}, "string");
  return std::string(std::get<std::string_view>(value->scalar));
}

std::optional<bool> flag_value(const GgufFile& file, std::string_view key, std::string_view where) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean)
    reject(cat(where, ": ", key), "wrong kind of value", {}, "bool");
  return std::get<std::uint64_t>(value->scalar) != 0;
}

// A special id: absent, or inside the vocabulary (readers of GGUF ignore others: 2^32 - 1 means
// none).
std::optional<std::int32_t> id_value(const GgufFile& file, std::string_view key,
                                     std::size_t n_tokens, std::string_view where,
                                     std::vector<std::string>& notices) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  std::uint64_t id = ~std::uint64_t{0};
  if (const auto* plain = std::get_if<std::uint64_t>(&value->scalar)) id = *plain;
  if (const auto* with_sign = std::get_if<std::int64_t>(&value->scalar))
    id = *with_sign < 0 ? id : static_cast<std::uint64_t>(*with_sign);
  if (id < n_tokens) return static_cast<std::int32_t>(id);
  notices.push_back(cat(where, ": ", key, " names no token and is ignored"));
  return std::nullopt;
}

void read_tokens(const GgufFile& file, std::string_view where, VocabularyBuilder& vocabulary,
                 contract::TokenizerDescription& description) {
  const std::vector<std::string_view> tokens = file.strings("tokenizer.ggml.tokens", where);
  std::vector<std::int64_t> types;
  if (file.find("tokenizer.ggml.token_type") != nullptr)
    types = file.integers("tokenizer.ggml.token_type", where);
  if (!types.empty() && types.size() != tokens.size())
    reject(cat(where, ": tokenizer.ggml.token_type"), "wrong length", cat(types.size()),
           cat(tokens.size()));
  AddedTokens added(description, where);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto type = types.empty() ? TokenType::normal : static_cast<TokenType>(types[id]);
    if (type < TokenType::normal || type > TokenType::byte)
      reject(cat(where, ": tokenizer.ggml.token_type"), cat("token ", id, " has an unknown type"),
             cat(types[id]));
    const bool special = type == TokenType::control || type == TokenType::unknown;
    const bool is_added = (special || type == TokenType::user_defined) && !tokens[id].empty();
    vocabulary.add_token(std::string(tokens[id]), static_cast<std::int64_t>(id),
                         is_added || type == TokenType::unused);
    if (is_added && added.id_of(tokens[id]) < 0)
      added.add({std::string(tokens[id]), static_cast<std::int32_t>(id), special, false, false,
                 false, false});
  }
}

void read_special_ids(const GgufFile& file, std::string_view where, std::size_t n_tokens,
                      ImportedTokenizer& out) {
  const auto id = [&](const char* key) {
    return id_value(file, key, n_tokens, where, out.notices);
  };
  out.tokens.bos = id("tokenizer.ggml.bos_token_id");
  out.tokens.pad = id("tokenizer.ggml.padding_token_id");
  out.tokens.unk = id("tokenizer.ggml.unknown_token_id");
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    const std::optional<std::int32_t> end = id(key);
    if (end &&
        std::find(out.tokens.eos.begin(), out.tokens.eos.end(), *end) == out.tokens.eos.end())
      out.tokens.eos.push_back(*end);
  }
}

}  // namespace

std::optional<UnsupportedTokenizer> import_tokenizer_gguf(const GgufFile& file,
                                                          std::string_view where,
                                                          std::size_t vocab_size,
                                                          ImportedTokenizer& out) {
  describe_chat(text_value(file, "tokenizer.chat_template", where), out.chat);
  const std::string model = text_value(file, "tokenizer.ggml.model", where);
  if (model == "none" || model == "no_vocab") return std::nullopt;
  if (model != "gpt2")
    return UnsupportedTokenizer{cat("tokenizer model \"", base::printable(model, 60), "\"")};

  contract::TokenizerDescription& description = out.description;
  description.model = "bpe";
  description.byte_level = true;
  description.decoder = "byte_level";
  std::string pre = text_value(file, "tokenizer.ggml.pre", where);
  if (pre.empty()) {
    pre = "default";
    out.notices.push_back(
        cat(where, ": tokenizer.ggml.pre is missing; the pre-tokenizer gpt2 is assumed"));
  }
  const PreTokenizerSet set = find_pre_tokenizer_set(pre, where);
  description.normalizers = set.normalizers;
  description.pre_tokenizers = set.steps;
  description.ignore_merges = set.ignore_merges;

  VocabularyBuilder vocabulary(where, vocab_size);
  read_tokens(file, where, vocabulary, description);
  std::size_t rank = 0;
  for (const std::string_view merge : file.strings("tokenizer.ggml.merges", where)) {
    const auto [left, right] = split_merge(merge, rank++, where);
    vocabulary.add_merge(left, right);
  }
  const text::Vocabulary finished = vocabulary.finish(out.notices);
  read_special_ids(file, where, finished.tokens.size(), out);
  complete_affixes(flag_value(file, "tokenizer.ggml.add_bos_token", where).value_or(set.add_bos),
                   flag_value(file, "tokenizer.ggml.add_eos_token", where).value_or(false), out);
  out.tables = text::build_tokenizer_tables(finished);
  return std::nullopt;
}

}  // namespace quern::convert
