#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "text/tokenizer.hpp"

namespace quern::convert {

using base::cat;
using base::Json;

namespace {

constexpr std::string_view kConfig = "tokenizer_config.json", kMap = "special_tokens_map.json";

// "bos_token": "<s>", {"content": "<s>", ...} or null.
std::string token_text(const Json& config, std::string_view key) {
  const Json* value = member(config, key);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  const Json* content = member(*value, "content");
  return content != nullptr && content->is_string() ? content->get<std::string>() : std::string();
}

Json parse(const std::string& text, std::string_view name) {
  return text.empty() ? Json::object() : base::parse_json(text, name);
}

// The id that the files name; what the source itself says where they name none.
std::optional<std::int32_t> special_id(const text::Tokenizer& tokenizer, const Json& config,
                                       const Json& map, std::string_view key,
                                       std::optional<std::int32_t> fallback) {
  std::string content = token_text(config, key);
  if (content.empty()) content = token_text(map, key);
  const std::int32_t id = content.empty() ? -1 : tokenizer.id_of(content);
  return id < 0 ? fallback : std::optional<std::int32_t>(id);
}

}  // namespace

std::string named_token(const SideFiles& files, std::string_view key) {
  std::string text = token_text(parse(files.tokenizer_config, kConfig), key);
  return text.empty() ? token_text(parse(files.special_tokens_map, kMap), key) : text;
}

bool config_flag(const SideFiles& files, std::string_view key, bool fallback) {
  return flag_member(parse(files.tokenizer_config, kConfig), key, fallback, kConfig);
}

std::int64_t config_integer(const SideFiles& files, std::string_view key, std::int64_t fallback,
                            std::int64_t most) {
  const Json config = parse(files.tokenizer_config, kConfig);
  if (member(config, key) == nullptr) return fallback;
  return std::min(id_member(config, key, kConfig), most);
}

void import_side_files(const SideFiles& files, ImportedTokenizer& out) {
  const Json config = parse(files.tokenizer_config, kConfig);
  const Json map = parse(files.special_tokens_map, kMap);
  if (out.description.model != "none") {
    const text::Tokenizer tokenizer(out.description, out.tables, "tokenizer.json");
    const auto id = [&](std::string_view key, std::optional<std::int32_t> fallback) {
      return special_id(tokenizer, config, map, key, fallback);
    };
    out.tokens.bos = id("bos_token", out.tokens.bos);
    out.tokens.pad = id("pad_token", out.tokens.pad);
    out.tokens.unk = id("unk_token", out.tokens.unk);
    out.tokens.mask = id("mask_token", out.tokens.mask);
    if (const auto eos = id("eos_token", std::nullopt)) out.tokens.eos = {*eos};
    complete_affixes(flag_member(config, "add_bos_token", files.add_bos, kConfig),
                     flag_member(config, "add_eos_token", files.add_eos, kConfig), out);
  }
  import_chat(files, config, out);
}

namespace {

void add_affix(std::int32_t id, bool front, std::vector<std::int32_t>& ids,
               std::vector<std::int32_t>& types) {
  ids.insert(front ? ids.begin() : ids.end(), id);
  types.insert(front ? types.begin() : types.end(), 0);
}

}  // namespace

void complete_affixes(bool add_bos, bool add_eos, ImportedTokenizer& out) {
  contract::TokenizerDescription& d = out.description;
  std::vector<std::int32_t>& prefix = d.prefix_ids;
  std::vector<std::int32_t>& suffix = d.suffix_ids;
  const auto contains = [](const std::vector<std::int32_t>& ids, std::int32_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  const auto any_eos = [&] {
    return std::any_of(out.tokens.eos.begin(), out.tokens.eos.end(),
                       [&](auto id) { return contains(suffix, id); });
  };
  if (add_bos && out.tokens.bos && !contains(prefix, *out.tokens.bos)) {
    add_affix(*out.tokens.bos, true, prefix, d.prefix_types);
    if (d.pair) add_affix(*out.tokens.bos, true, d.pair->prefix_ids, d.pair->prefix_types);
  }
  if (add_eos && !out.tokens.eos.empty() && !any_eos()) {
    const std::int32_t eos = out.tokens.eos.front();
    add_affix(eos, false, suffix, d.suffix_types);
    if (d.pair) add_affix(eos, false, d.pair->suffix_ids, d.pair->suffix_types);
  }
  out.tokens.add_bos = out.tokens.bos && contains(prefix, *out.tokens.bos);
  out.tokens.add_eos = any_eos();
}

}  // namespace quern::convert
