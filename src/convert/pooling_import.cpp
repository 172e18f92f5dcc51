#include "convert/pooling_import.hpp"

#include "base/json_reader.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;
using contract::Pool;

constexpr const char* kModules = "modules.json";
constexpr const char* kLimits = "sentence_bert_config.json";

bool is_true(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The mode of 1_Pooling/config.json; nullopt: none, several, or one that quern does not have.
std::optional<Pool> mode_of(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  const std::string word = text_at(config, "pooling_mode");
  const bool first = word == "cls" || is_true(config, "pooling_mode_cls_token");
  const bool mean = word == "mean" || is_true(config, "pooling_mode_mean_tokens");
  const bool last = word == "lasttoken" || is_true(config, "pooling_mode_lasttoken");
  const bool other = is_true(config, "pooling_mode_max_tokens") ||
                     is_true(config, "pooling_mode_mean_sqrt_len_tokens") ||
                     is_true(config, "pooling_mode_weightedmean_tokens");
  if (int{first} + int{mean} + int{last} != 1 || other) return std::nullopt;
  return first ? Pool::first : mean ? Pool::mean : Pool::last;
}

// A module's kind is the last part of its class.
std::string kind_of(const Json& module) {
  const std::string type = text_at(module, "type");
  return type.substr(type.find_last_of('.') + 1);
}

// What the library cuts texts to: of the first module's own folder, else of the checkpoint's.
std::optional<std::size_t> max_tokens_of(const checkpoint::Checkpoint& checkpoint, const Json& modules) {
  std::string folder = modules.empty() ? "" : text_at(modules[0], "path");
  if (!folder.empty()) folder += "/";
  for (const std::string& file : {folder + kLimits, std::string(kLimits)}) {
    const std::string text = checkpoint.side_file(file);
    if (text.empty()) continue;
    const Json limits = base::parse_json(text, cat(checkpoint.where(), "/", file));
    const auto found = limits.is_object() ? limits.find("max_seq_length") : limits.end();
    if (found == limits.end() || !found->is_number_unsigned() || *found == 0) return std::nullopt;
    return found->get<std::size_t>();
  }
  return std::nullopt;
}

void import_modules(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract,
                    std::vector<std::string>& notices) {
  const std::string text = checkpoint.side_file(kModules);
  if (text.empty()) return;
  const std::string where = cat(checkpoint.where(), "/", kModules);
  const Json modules = base::parse_json(text, where);
  if (!modules.is_array()) base::reject(where, "not a list of modules");
  bool normalize = false;
  std::optional<Pool> mode;
  for (const Json& module : modules) {
    const std::string kind = kind_of(module);
    if (kind == "Normalize") normalize = true;
    if (kind == "Dense")
      notices.push_back(cat(where, ": a dense layer behind the pooling is not applied"));
    if (kind != "Pooling") continue;
    const std::string file = cat(text_at(module, "path"), "/config.json");
    const std::string config = checkpoint.side_file(file);
    if (!config.empty())
      mode = mode_of(base::parse_json(config, cat(checkpoint.where(), "/", file)));
    if (!mode)
      notices.push_back(cat(where, ": no single pooling of cls, mean or last token: left out"));
  }
  if (mode) contract.pooling = contract::Pooling{*mode, normalize, max_tokens_of(checkpoint, modules)};
}

// {arch}.pooling_type: 0 none, 1 mean, 2 first, 3 last; the result has length 1.
void import_pooling_type(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract) {
  const Json config = base::parse_json(checkpoint.config_json(), checkpoint.where());
  const std::string key = cat(text_at(config, "general.architecture"), ".pooling_type");
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number_integer()) return;
  const std::int64_t type = found->get<std::int64_t>();
  if (type < 1 || type > 3) return;
  contract.pooling = contract::Pooling{type == 1   ? Pool::mean
                                       : type == 2 ? Pool::first
                                                   : Pool::last,
                                       true};
}

}  // namespace

void import_pooling(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract,
                    std::vector<std::string>& notices) {
  if (checkpoint.kind() == checkpoint::SourceKind::gguf)
    import_pooling_type(checkpoint, contract);
  else
    import_modules(checkpoint, contract, notices);
}

}  // namespace quern::convert
