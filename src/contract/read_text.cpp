#include "contract/limits.hpp"
#include "contract/read_parts.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::Json;
using base::JsonObject;

namespace {

std::optional<std::int32_t> read_optional_id(JsonObject& object, std::string_view key) {
  return read_nullable(
      object, key, [&] { return static_cast<std::int32_t>(object.get_int(key, 0, INT32_MAX)); });
}

std::optional<std::int64_t> read_optional_integer(JsonObject& object, std::string_view key) {
  return read_nullable(object, key, [&] { return object.get_int(key, 0, kMaxJsonInteger); });
}

AddedToken read_added_token(const Json& value, const std::string& path) {
  JsonObject object(value, path);
  AddedToken token{};
  token.content = object.get_string("content");
  token.id = static_cast<std::int32_t>(object.get_int("id", 0, INT32_MAX));
  token.special = object.get_bool("special");
  token.normalized = object.get_bool("normalized");
  token.single_word = object.get_bool("single_word");
  token.lstrip = object.get_bool("lstrip");
  token.rstrip = object.get_bool("rstrip");
  object.finish();
  return token;
}

std::int32_t read_type(JsonObject& object, std::string_view key) {
  return static_cast<std::int32_t>(object.get_int(key, 0, INT32_MAX));
}

PairTemplate read_pair(JsonObject object) {
  PairTemplate out;
  out.prefix_ids = read_ids(object, "prefix_ids", kMaxIds);
  out.prefix_types = read_ids(object, "prefix_types", kMaxIds);
  out.first_type = read_type(object, "first_type");
  out.middle_ids = read_ids(object, "middle_ids", kMaxIds);
  out.middle_types = read_ids(object, "middle_types", kMaxIds);
  out.second_type = read_type(object, "second_type");
  out.suffix_ids = read_ids(object, "suffix_ids", kMaxIds);
  out.suffix_types = read_ids(object, "suffix_types", kMaxIds);
  object.finish();
  return out;
}

}  // namespace

Tokens read_tokens(JsonObject object) {
  Tokens out;
  out.bos = read_optional_id(object, "bos");
  out.pad = read_optional_id(object, "pad");
  out.unk = read_optional_id(object, "unk");
  out.mask = read_optional_id(object, "mask");
  out.decoder_start = read_optional_id(object, "decoder_start");
  out.eos = read_ids(object, "eos", kMaxIds);
  out.add_bos = object.get_bool("add_bos");
  out.add_eos = object.get_bool("add_eos");
  object.finish();
  return out;
}

Generation read_generation(JsonObject object) {
  Generation out;
  out.sample = read_nullable(object, "sample", [&] { return object.get_bool("sample"); });
  out.temperature = read_optional_number(object, "temperature");
  out.top_k = read_optional_integer(object, "top_k");
  out.top_p = read_optional_number(object, "top_p");
  out.min_p = read_optional_number(object, "min_p");
  out.repetition_penalty = read_optional_number(object, "repetition_penalty");
  out.max_new_tokens = read_optional_integer(object, "max_new_tokens");
  out.min_new_tokens = read_optional_integer(object, "min_new_tokens");
  out.max_length = read_optional_integer(object, "max_length");
  out.min_length = read_optional_integer(object, "min_length");
  out.n_beams = read_optional_integer(object, "n_beams");
  out.length_penalty = read_optional_number(object, "length_penalty");
  out.early_stopping = read_nullable(object, "early_stopping", [&] {
    return std::string(object.get_enum("early_stopping", kEarlyStopping));
  });
  out.no_repeat_ngram = read_optional_integer(object, "no_repeat_ngram");
  out.forced_bos = read_optional_id(object, "forced_bos");
  out.forced_eos = read_optional_id(object, "forced_eos");
  out.suppress = read_ids(object, "suppress", kMaxIds);
  out.begin_suppress = read_ids(object, "begin_suppress", kMaxIds);
  out.bad_words = read_id_lists(object, "bad_words", kMaxIds);
  out.renormalize = object.get_bool("renormalize");
  object.finish();
  return out;
}

TokenizerDescription read_tokenizer(JsonObject object) {
  TokenizerDescription out;
  out.model = std::string(object.get_enum("model", kTokenizerModels));
  out.normalizers = read_strings(object, "normalizers", kMaxSteps);
  out.pre_tokenizers = read_strings(object, "pre_tokenizers", kMaxSteps);
  out.byte_level = object.get_bool("byte_level");
  out.add_prefix_space = object.get_bool("add_prefix_space");
  out.ignore_merges = object.get_bool("ignore_merges");
  out.byte_fallback = object.get_bool("byte_fallback");
  out.fuse_unk = object.get_bool("fuse_unk");
  out.unk_id = read_optional_id(object, "unk_id");
  out.subword_prefix = object.get_string("subword_prefix");
  out.word_suffix = object.get_string("word_suffix");
  out.max_word_chars = read_count(object, "max_word_chars");
  out.score_sum = std::string(object.get_enum("score_sum", kScoreSums));
  out.user_defined = read_ids(object, "user_defined", kMaxAddedTokens);
  out.prefix_ids = read_ids(object, "prefix_ids", kMaxIds);
  out.prefix_types = read_ids(object, "prefix_types", kMaxIds);
  out.text_type = read_type(object, "text_type");
  out.suffix_ids = read_ids(object, "suffix_ids", kMaxIds);
  out.suffix_types = read_ids(object, "suffix_types", kMaxIds);
  out.pair = read_nullable(object, "pair", [&] { return read_pair(object.get_object("pair")); });
  out.decoders = read_strings(object, "decoders", kMaxSteps);
  const Json& added = read_array(object, "added", kMaxAddedTokens);
  out.added.reserve(added.size());
  for (const Json& value : added)
    out.added.push_back(
        read_added_token(value, base::cat(object.path_of("added"), "[", out.added.size(), "]")));
  object.finish();
  return out;
}

namespace {

// An object of texts. Files that were written before the key came lack it: none.
std::map<std::string, std::string> read_texts(JsonObject& object, std::string_view key) {
  std::map<std::string, std::string> out;
  if (!object.has(key)) return out;
  const Json& texts = object.get(key);
  if (!texts.is_object()) base::reject(object.path_of(key), "wrong kind of value", texts.type_name(), "an object");
  if (texts.size() > kMaxNames)
    base::reject(object.path_of(key), "too many members", base::cat(texts.size()), base::cat("at most ", kMaxNames));
  for (const auto& [name, text] : texts.items()) {
    if (!text.is_string())
      base::reject(base::cat(object.path_of(key), ".", base::printable(name, 60)), "wrong kind of value", text.type_name(), "a string");
    out.emplace(name, text.get<std::string>());
  }
  return out;
}

}  // namespace

ChatDescription read_chat(JsonObject object) {
  ChatDescription out;
  out.jinja = object.get_string("jinja");
  out.builtin = std::string(object.get_enum("builtin", kBuiltinTemplates));
  out.default_system = object.get_string("default_system");
  out.named = read_texts(object, "named");
  out.special = read_texts(object, "special");
  object.finish();
  return out;
}

}  // namespace quern::contract
