// Pieces of the contract's reader, and the small helpers they share. Internal to contract/.
// Only kinds and words are checked here; ranges and cross-field rules are in validate*.cpp, so that
// a contract made by the converter passes exactly the same checks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "contract/contract.hpp"

namespace quern::contract {

inline constexpr std::size_t kMaxJsonInteger = std::size_t{1} << 53;

inline std::size_t read_count(base::JsonObject& object, std::string_view key) {
  return object.get_size(key, 0, kMaxJsonInteger);
}

// The value of `read()`, or nothing when the key holds null. A missing key is an error of read().
template <class Read>
auto read_nullable(base::JsonObject& object, std::string_view key, Read read)
    -> std::optional<decltype(read())> {
  if (!object.is_null(key)) return read();
  object.get(key);
  return std::nullopt;
}

inline std::optional<std::string> read_optional_name(base::JsonObject& object,
                                                     std::string_view key) {
  return read_nullable(object, key, [&] { return object.get_string(key); });
}
inline std::optional<double> read_optional_number(base::JsonObject& object, std::string_view key) {
  return read_nullable(object, key, [&] { return object.get_double(key); });
}
inline std::optional<std::size_t> read_optional_count(base::JsonObject& object,
                                                      std::string_view key) {
  return read_nullable(object, key, [&] { return read_count(object, key); });
}

// Arrays; every item's path is "key[i]".
const base::Json& read_array(base::JsonObject& object, std::string_view key, std::size_t max_items);
std::vector<std::string> read_strings(base::JsonObject& object, std::string_view key,
                                      std::size_t max_items);
std::vector<std::int32_t> read_ids(base::JsonObject& object, std::string_view key,
                                   std::size_t max_items);
std::vector<std::vector<std::int32_t>> read_id_lists(base::JsonObject& object, std::string_view key,
                                                     std::size_t max_items);
std::vector<float> read_floats(base::JsonObject& object, std::string_view key,
                               std::size_t max_items);

// An object whose keys are names of the model's own: read_one(JsonObject&) for each.
template <class T, class ReadOne>
std::map<std::string, T> read_named(base::JsonObject& parent, std::string_view key,
                                    std::size_t max_items, ReadOne read_one) {
  const base::JsonObject object = parent.get_object(key);
  const base::Json& items = parent.get(key);
  if (items.size() > max_items)
    base::reject(parent.path_of(key), "too many entries", base::cat(items.size()),
                 base::cat("at most ", max_items));
  std::map<std::string, T> out;
  for (const auto& [name, value] : items.items()) {
    base::JsonObject item(value, object.path_of(name));
    out.emplace(name, read_one(item));
    item.finish();
  }
  return out;
}

// read_ops.cpp
Norm read_norm(base::JsonObject& object);
Rope read_rope(base::JsonObject& object);
Op read_op(base::JsonObject& object);

// read_attention.cpp
Attention read_attention(base::JsonObject& object);
Mla read_mla(base::JsonObject& object);
Nsa read_nsa(base::JsonObject& object);

// read_ends.cpp
Embedding read_embedding(base::JsonObject& object);
EncoderEmbedding read_encoder_embedding(base::JsonObject object);
Head read_head(base::JsonObject object);
std::optional<Pooling> read_pooling(base::JsonObject& root);

// read_text.cpp
Tokens read_tokens(base::JsonObject object);
Generation read_generation(base::JsonObject object);
TokenizerDescription read_tokenizer(base::JsonObject object);
ChatDescription read_chat(base::JsonObject object);

}  // namespace quern::contract
