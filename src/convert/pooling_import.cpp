#include "convert/pooling_import.hpp"

#include <algorithm>

#include "base/json_reader.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;
using contract::Pool;

constexpr const char* kModules = "modules.json";
constexpr const char* kLimits = "sentence_bert_config.json";
constexpr const char* kPrompts = "config_sentence_transformers.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kNorm = "pooling";  // name of the norm of a module LayerNorm

// Activations of dense layers, by the last part of their class.
constexpr base::EnumName<contract::Activation> kActivations[] = {
    {"Tanh", contract::Activation::tanh},
    {"ReLU", contract::Activation::relu},
    {"GELU", contract::Activation::gelu_erf},
    {"SiLU", contract::Activation::silu}};

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
std::string last_part(const std::string& type) {
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

// The modules of a sentence-transformers directory, in their order.
class Modules {
 public:
  Modules(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract,
          std::vector<std::string>& notices)
      : checkpoint_(checkpoint),
        contract_(contract),
        notices_(notices),
        where_(cat(checkpoint.where(), "/", kModules)),
        width_(contract.d_model) {}

  void add_all(const Json& modules);

 private:
  void add(const Json& module);
  void add_pooling(const Json& module);
  void add_dense(const Json& module);
  void add_norm(const Json& module);
  void check_dense(const Json& config, const std::string& where);
  [[noreturn]] void refuse(const std::string& what) const;
  // The configuration in the module's folder; empty: there is none.
  std::pair<std::string, Json> config_of(const Json& module) const;
  void source(const std::string& part, const std::string& folder, const char* layer);

  const checkpoint::Checkpoint& checkpoint_;
  contract::Contract& contract_;
  std::vector<std::string>& notices_;
  std::string where_;
  std::size_t width_;
  std::optional<contract::Pooling> pooling_;
  bool left_out_ = false;  // there is a pooling that quern does not have

 public:
  std::vector<TensorSource> sources;
};

void Modules::refuse(const std::string& what) const {
  base::reject(where_, cat(what, " (without ", kModules, " the model converts, and `quern embed --pooling` makes "
                           "other vectors than these modules)"));
}

std::pair<std::string, Json> Modules::config_of(const Json& module) const {
  const std::string file = cat(text_at(module, "path"), "/config.json");
  const std::string where = cat(checkpoint_.where(), "/", file), text = checkpoint_.side_file(file);
  return {where, text.empty() ? Json() : base::parse_json(text, where)};
}

void Modules::add_pooling(const Json& module) {
  if (pooling_) return refuse("two modules of kind Pooling");
  if (const auto mode = mode_of(config_of(module).second)) {
    pooling_ = contract::Pooling{.mode = *mode};
    return;
  }
  left_out_ = true;
  notices_.push_back(cat(where_, ": no single pooling of cls, mean or last token: left out"));
}

void Modules::source(const std::string& part, const std::string& folder, const char* layer) {
  const std::string file = cat(folder, "/", kWeights);
  for (const char* kind : {"weight", "bias"})
    sources.push_back({.canonical = cat("pooling.", pooling_->dense.size() - 1, ".", part, kind),
                       .from = {cat(folder, "/", layer, ".", kind)}});
  if (checkpoint_.find(sources[sources.size() - 2].from[0]) == nullptr)
    base::reject(where_, cat("no tensor ", layer, ".weight in ", base::printable(file),
                             " (weights of modules are read from safetensors only)"));
}

void Modules::check_dense(const Json& config, const std::string& where) {
  const auto inputs = config.find("in_features"), outputs = config.find("out_features");
  if (inputs == config.end() || outputs == config.end() || !outputs->is_number_unsigned())
    base::reject(where, "a dense layer has in_features and out_features");
  if (*inputs != Json(width_))
    base::reject(where, "in_features", base::printable(inputs->dump(), 20), cat(width_, ", the width before it"));
  const std::string input = text_at(config, "module_input_name");
  if (!input.empty() && input != "sentence_embedding")
    refuse(cat("a dense layer on ", base::printable(input, 40), ", not on the text's vector"));
}

void Modules::add_dense(const Json& module) {
  if (left_out_) return;
  if (!pooling_)
    refuse("a dense layer without a pooling before it: models with a vector for every token are not supported");
  if (pooling_->normalize) refuse("a dense layer behind Normalize");
  const auto [where, config] = config_of(module);
  if (!config.is_object()) base::reject(where_, "a dense layer without its config.json");
  check_dense(config, where);
  contract::HeadTransform layer{config["out_features"].get<std::size_t>(), std::nullopt,
                                !config.contains("bias") || is_true(config, "bias"), std::nullopt};
  const std::string activation =
      config.contains("activation_function") ? last_part(text_at(config, "activation_function")) : "Tanh";
  if (activation != "Identity") {
    const auto found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const auto& entry) { return entry.name == activation; });
    if (found == std::end(kActivations))
      refuse(cat("unknown activation_function ", base::printable(activation, 40), " of a dense layer"));
    layer.activation = found->value;
  }
  width_ = layer.d_out;
  pooling_->dense.push_back(std::move(layer));
  source("", text_at(module, "path"), "linear");
}

// A norm belongs to the layer before it.
void Modules::add_norm(const Json& module) {
  if (left_out_) return;
  if (!pooling_ || pooling_->normalize || pooling_->dense.empty() || pooling_->dense.back().norm)
    refuse("a module LayerNorm that does not follow a dense layer");
  contract_.norms[kNorm] = {contract::NormKind::layer_norm, 1e-5, true, true, 0, contract::Accumulate::f32};
  pooling_->dense.back().norm = kNorm;
  source("norm.", text_at(module, "path"), "norm");
}

void Modules::add(const Json& module) {
  const std::string kind = last_part(text_at(module, "type"));
  if (kind == "Pooling") return add_pooling(module);
  if (kind == "Dense") return add_dense(module);
  if (kind == "LayerNorm") return add_norm(module);
  if (kind == "Normalize") {
    if (pooling_) pooling_->normalize = true;
  } else if (kind != "Transformer" && kind != "Dropout") {
    refuse(cat("unknown module ", base::printable(kind, 60), "; known: Transformer, Pooling, Dense, LayerNorm, "
               "Dropout, Normalize"));
  }
}

void Modules::add_all(const Json& modules) {
  for (const Json& module : modules) add(module);
  if (!pooling_) return;
  pooling_->max_tokens = max_tokens_of(checkpoint_, modules);
  contract_.pooling = std::move(pooling_);
}

// A text that the library puts before every input unless told otherwise; quern embeds texts as given.
void announce_prompt(const checkpoint::Checkpoint& checkpoint, std::vector<std::string>& notices) {
  const std::string text = checkpoint.side_file(kPrompts);
  if (text.empty()) return;
  const std::string where = cat(checkpoint.where(), "/", kPrompts);
  const Json config = base::parse_json(text, where);
  const std::string name = text_at(config, "default_prompt_name");
  if (name.empty() || !config.contains("prompts")) return;
  const std::string prompt = text_at(config["prompts"], name.c_str());
  if (!prompt.empty())
    notices.push_back(cat(where, ": texts are meant to begin with \"", base::printable(prompt, 80),
                          "\", which `quern embed` does not add"));
}

std::vector<TensorSource> import_modules(const checkpoint::Checkpoint& checkpoint,
                                         contract::Contract& contract,
                                         std::vector<std::string>& notices) {
  const std::string text = checkpoint.side_file(kModules);
  if (text.empty()) return {};
  const std::string where = cat(checkpoint.where(), "/", kModules);
  const Json modules = base::parse_json(text, where);
  if (!modules.is_array()) base::reject(where, "not a list of modules");
  Modules reader(checkpoint, contract, notices);
  reader.add_all(modules);
  announce_prompt(checkpoint, notices);
  return std::move(reader.sources);
}

// {arch}.pooling_type: 0 none, 1 mean, 2 first, 3 last; the result has length 1.
void import_pooling_type(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract) {
  const Json config = base::parse_json(checkpoint.config_json(), checkpoint.where());
  const std::string key = cat(text_at(config, "general.architecture"), ".pooling_type");
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number_integer()) return;
  const std::int64_t type = found->get<std::int64_t>();
  if (type < 1 || type > 3) return;
  contract.pooling = contract::Pooling{
      .mode = type == 1 ? Pool::mean : type == 2 ? Pool::first : Pool::last, .normalize = true};
}

// dense_2.weight, dense_3.weight, ...: layers without bias and activation, numbered as the modules.
std::vector<TensorSource> import_gguf_layers(const checkpoint::Checkpoint& checkpoint,
                                             contract::Contract& contract) {
  std::vector<TensorSource> sources;
  if (!contract.pooling) return sources;
  for (std::size_t n = 2;; ++n) {
    const std::string name = cat("dense_", n, ".weight");
    const checkpoint::SourceTensor* tensor = checkpoint.find(name);
    if (tensor == nullptr || tensor->shape.size() != 2) return sources;
    sources.push_back({.canonical = cat("pooling.", n - 2, ".weight"), .from = {name}});
    contract.pooling->dense.push_back({tensor->shape[0], std::nullopt, false, std::nullopt});
  }
}

}  // namespace

std::vector<TensorSource> import_pooling(const checkpoint::Checkpoint& checkpoint,
                                         contract::Contract& contract,
                                         std::vector<std::string>& notices) {
  if (checkpoint.kind() != checkpoint::SourceKind::gguf)
    return import_modules(checkpoint, contract, notices);
  import_pooling_type(checkpoint, contract);
  return import_gguf_layers(checkpoint, contract);
}

}  // namespace quern::convert
