#include "checkpoint/lora_files.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "checkpoint/safetensors.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::Json;
using base::printable;
using base::reject;

constexpr std::string_view kConfig = "adapter_config.json";
constexpr std::string_view kWeights = "adapter_model.safetensors";
constexpr std::size_t kMaxConfigBytes = std::size_t{4} << 20;
constexpr std::uint64_t kMaxRank = 1u << 16;
constexpr double kMaxScale = 1e6;

// Values of single modules, in the file's order: the first name that fits decides, as in PEFT.
using Patterns = std::vector<std::pair<std::string, double>>;

struct LoraConfig {
  std::uint64_t rank = 0;
  double alpha = 0;
  bool root = false;  // scale by alpha / sqrt(rank)
  bool fan_in_fan_out = false;
  Patterns ranks, alphas;
  std::vector<std::string> saved;  // names of modules, or their ends
};

bool says(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return !found->is_structured() || !found->empty();
}

double number(const Json& config, const char* key, const std::string& where) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number())
    reject(cat(where, ": ", key), "not a number",
           found == config.end() ? "nothing" : printable(found->dump(), 40));
  return found->get<double>();
}

void refuse_other_kinds(const Json& config, const std::string& where) {
  const std::string kind = config.value("peft_type", Json("")).dump();
  if (kind != "\"LORA\"") reject(cat(where, ": peft_type"), "unsupported adapter", printable(kind, 60), "LORA");
  constexpr std::array<std::pair<const char*, const char*>, 7> kUnsupported = {
      {{"use_dora", "DoRA"},
       {"lora_bias", "biases of the factors"},
       {"target_parameters", "adapters of single parameters"},
       {"layer_replication", "replicated layers"},
       {"trainable_token_indices", "trained tokens"},
       {"use_qalora", "QALoRA"},
       {"alora_invocation_tokens", "activated LoRA"}}};
  for (const auto& [key, what] : kUnsupported)
    if (says(config, key))
      reject(cat(where, ": ", key), cat("adapters with ", what, " are not merged"),
             printable(config[key].dump(), 60));
  if (const auto bias = config.find("bias");
      bias != config.end() && bias->is_string() && *bias != "none")
    reject(cat(where, ": bias"), "adapters with trained biases are not merged",
           printable(bias->dump(), 40), "none");
  // These change the base weights as well when they begin.
  if (const auto init = config.find("init_lora_weights");
      init != config.end() && init->is_string() && *init != "gaussian" && *init != "eva" &&
      *init != "orthogonal")
    reject(cat(where, ": init_lora_weights"), "the adapter belongs to changed base weights",
           printable(init->dump(), 40));
}

Patterns pattern_of(const Json& config, const char* key, const std::string& where) {
  Patterns patterns;
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return patterns;
  if (!found->is_object()) reject(cat(where, ": ", key), "not an object");
  for (const auto& [name, value] : found->items()) {
    const std::string plain = name.starts_with("^") ? name.substr(1) : name;
    if (plain.find_first_of("^$*+?()[]{}|\\") != std::string::npos)
      reject(cat(where, ": ", key), "only names of modules, no patterns", printable(name, 80));
    if (!value.is_number()) reject(cat(where, ": ", key, ".", printable(name, 80)), "not a number");
    patterns.emplace_back(name, value.get<double>());
  }
  return patterns;
}

std::vector<std::string> names_of(const Json& config, const char* key, const std::string& where) {
  std::vector<std::string> names;
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return names;
  if (!found->is_array()) reject(cat(where, ": ", key), "not a list of names", found->type_name());
  for (const Json& name : *found) {
    if (!name.is_string()) reject(cat(where, ": ", key), "not a name", printable(name.dump(), 40));
    names.push_back(name.get<std::string>());
  }
  return names;
}

LoraConfig read_config(base::Bytes text, const std::string& where) {
  if (text.size() > kMaxConfigBytes)
    reject(where, "file is too large", cat(text.size(), " bytes"), cat("at most ", kMaxConfigBytes));
  const Json json = base::parse_json(base::as_text(text), where);
  if (!json.is_object()) reject(where, "wrong kind of value", json.type_name(), "an object");
  refuse_other_kinds(json, where);
  LoraConfig config;
  const double rank = number(json, "r", where);
  if (!(rank >= 1 && rank <= kMaxRank && rank == std::floor(rank)))
    reject(cat(where, ": r"), "rank", cat(rank), cat("a whole number from 1 to ", kMaxRank));
  config.rank = static_cast<std::uint64_t>(rank);
  config.alpha = number(json, "lora_alpha", where);
  config.root = says(json, "use_rslora");
  config.fan_in_fan_out = says(json, "fan_in_fan_out");
  config.ranks = pattern_of(json, "rank_pattern", where);
  config.alphas = pattern_of(json, "alpha_pattern", where);
  config.saved = names_of(json, "modules_to_save", where);
  return config;
}

// The value of the first pattern that is the module's name or its end.
const double* find_pattern(const Patterns& patterns, const std::string& module) {
  for (const auto& [name, value] : patterns) {
    if (name.starts_with("^")) {
      if (module == name.substr(1)) return &value;
    } else if (module == name || module.ends_with("." + name)) {
      return &value;
    }
  }
  return nullptr;
}

std::string_view without_base(std::string_view text) {
  for (const std::string_view prefix : {"base_model.model.", "base_model."})
    if (text.starts_with(prefix)) return text.substr(prefix.size());
  return text;
}

// "base_model.model.M.lora_A.weight" -> module M, kind "lora_A". The adapter's own name may stand
// behind the kind.
struct FactorName {
  std::string module, kind;
};
FactorName factor_name(const std::string& name, const std::string& place) {
  const std::string_view text = without_base(name);
  for (const std::string_view kind :
       {"lora_embedding_A", "lora_embedding_B", "lora_A", "lora_B"}) {
    const std::size_t at = text.rfind(cat(".", kind));
    if (at == std::string_view::npos || at == 0) continue;
    const std::string_view rest = text.substr(at + 1 + kind.size());
    if (rest.empty() || rest == ".weight" || rest == ".default" || rest == ".default.weight")
      return {std::string(text.substr(0, at)), std::string(kind)};
  }
  reject(place, "no factor of a LoRA adapter",
         text.find("magnitude") != std::string_view::npos ? "DoRA's magnitudes" : "",
         "M.lora_A.weight, M.lora_B.weight, M.lora_embedding_A, M.lora_embedding_B");
}

// The checkpoint's name of a tensor of a module saved whole, "" for others: "base_model.model.M.weight", or
// "base_model.model.M.modules_to_save.default.weight" as older versions write it.
std::string saved_name(const std::string& name, const std::vector<std::string>& modules) {
  std::string text(without_base(name));
  for (const std::string_view mark : {".modules_to_save.default", ".modules_to_save"})
    if (const std::size_t at = text.find(mark); at != std::string::npos) text.erase(at, mark.size());
  const auto is_part = [&](const std::string& module) { return is_of_module(text, module); };
  return text.find(".lora_") == std::string::npos && std::any_of(modules.begin(), modules.end(), is_part) ? text : "";
}

void check_floats(const SourceTensor& tensor, const std::string& place) {
  const bool floats = tensor.type == DType::f32 || tensor.type == DType::f16 || tensor.type == DType::bf16;
  if (!floats) reject(place, "type of an adapter's tensor", std::string(dtype_name(tensor.type)), "F32, F16 or BF16");
}

void check_factor(const SourceTensor& tensor, const std::string& place) {
  check_floats(tensor, place);
  if (tensor.shape.size() != 2 || tensor.values == 0)
    reject(place, "dimensions of a factor", cat(tensor.shape.size()), "2 (linear layers and embeddings)");
}

double scale_of(const LoraConfig& config, const LoraPair& pair, const std::string& place) {
  const std::uint64_t rank = pair.a.shape[0];
  const double* own_rank = find_pattern(config.ranks, pair.module);
  const double expected = own_rank != nullptr ? *own_rank : static_cast<double>(config.rank);
  if (static_cast<double>(rank) != expected || pair.b.shape[1] != rank)
    reject(place, "ranks of the two factors", cat(rank, " and ", pair.b.shape[1]), cat(expected));
  const double* own_alpha = find_pattern(config.alphas, pair.module);
  const double alpha = own_alpha != nullptr ? *own_alpha : config.alpha;
  const double divisor = config.root ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank);
  const double scale = alpha / divisor;
  if (!(std::fabs(scale) <= kMaxScale)) reject(place, "scale of the change", cat(scale), cat("at most ", kMaxScale));
  return scale;
}

}  // namespace

bool is_of_module(std::string_view tensor, std::string_view module) {
  return cat(".", tensor).find(cat(".", module, ".")) != std::string::npos;
}

LoraFiles read_lora(const std::filesystem::path& path) {
  const SourceDirectory directory(path);
  LoraFiles lora;
  lora.where = printable(path.string());
  for (const std::string_view name : {kConfig, kWeights})
    if (!directory.has(name)) {
      const bool pickle = name == kWeights && directory.has("adapter_model.bin");
      reject(lora.where, cat(name, " is missing", pickle ? " (a pickle is not read)" : ""));
    }
  for (const std::string_view name : {kConfig, kWeights}) lora.files.emplace_back(directory.resolve(name));
  const LoraConfig config = read_config(lora.files[0].bytes(), directory.where(kConfig));
  lora.fan_in_fan_out = config.fan_in_fan_out;
  std::map<std::string, std::size_t> by_module;
  for (SourceTensor& tensor : parse_safetensors(lora.files[1].bytes(), directory.where(kWeights))) {
    const std::string place = cat(directory.where(kWeights), ": tensor \"", printable(tensor.name, 120), "\"");
    if (std::string name = saved_name(tensor.name, config.saved); !name.empty()) {
      check_floats(tensor, place);
      tensor.name = std::move(name);
      lora.saved.push_back(std::move(tensor));
      continue;
    }
    const FactorName name = factor_name(tensor.name, place);
    check_factor(tensor, place);
    const auto [entry, fresh] = by_module.emplace(name.module, lora.pairs.size());
    if (fresh) lora.pairs.push_back({.module = name.module});
    LoraPair& pair = lora.pairs[entry->second];
    pair.embedding = name.kind.starts_with("lora_embedding");
    SourceTensor& factor = name.kind.ends_with("A") ? pair.a : pair.b;
    if (factor.values != 0) reject(place, "the module has this factor already");
    factor = std::move(tensor);
  }
  if (lora.pairs.empty() && lora.saved.empty()) reject(directory.where(kWeights), "no tensors");
  for (const std::string& module : config.saved)
    if (std::none_of(lora.saved.begin(), lora.saved.end(),
                     [&](const SourceTensor& tensor) { return is_of_module(tensor.name, module); }))
      lora.not_saved.push_back(module);
  for (LoraPair& pair : lora.pairs) {
    const std::string place = cat(directory.where(kWeights), ": module ", printable(pair.module, 120));
    if (pair.a.values == 0 || pair.b.values == 0) reject(place, "only one of the two factors");
    pair.scale = scale_of(config, pair, place);
  }
  return lora;
}

}  // namespace quern::checkpoint
