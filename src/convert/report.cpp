#include "convert/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/strings.hpp"
#include "convert/expression.hpp"
#include "convert/glob.hpp"
#include "quant/formats.hpp"

namespace quern::convert {

namespace {

using base::Json;
using contract::TensorRole;
namespace fs = std::filesystem;

// Six significant digits: a figure for people, the same on every machine.
Json rounded(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

// Files that a conversion of a directory reads, with their sizes.
Json files_of(const fs::path& path) {
  constexpr std::string_view kRead[] = {"config.json",           "generation_config.json",
                                        "tokenizer.json",        "tokenizer.model",
                                        "tokenizer_config.json", "special_tokens_map.json",
                                        "chat_template.jinja",   "chat_template.json",
                                        "*.safetensors",         "*.safetensors.index.json"};
  std::map<std::string, std::uint64_t> files;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    // A split file is its parts: NAME-00001-of-00003.gguf.
    const std::string name = path.filename().string(),
                      pattern = replaced(name, "-00001-of-", "-*-of-");
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (pattern == name)
      files[name] = fs::file_size(path);
    else
      for (const fs::directory_entry& entry : fs::directory_iterator(folder))
        if (glob_match(pattern, entry.path().filename().string()))
          files[entry.path().filename().string()] = fs::file_size(entry.path());
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      const bool read =
          std::any_of(std::begin(kRead), std::end(kRead),
                      [&](std::string_view pattern) { return glob_match(pattern, name); });
      if (read && fs::is_regular_file(entry.path(), error))
        files[name] = fs::file_size(entry.path());
    }
  }
  Json list = Json::array();
  for (const auto& [name, bytes] : files)
    list.push_back({{"name", base::printable(name)}, {"bytes", bytes}});
  return list;
}

Json adaptations_of(const Adaptations& wishes) {
  Json object = Json::object();
  const auto add = [&](const char* key, const auto& wish) {
    if (wish) object[key] = *wish;
  };
  add("rope_scaling", wishes.rope_scaling);
  add("rope_scale", wishes.rope_scale);
  add("rope_freq_base", wishes.rope_freq_base);
  add("rope_freq_scale", wishes.rope_freq_scale);
  add("yarn_orig_ctx", wishes.yarn_orig_ctx);
  add("yarn_ext_factor", wishes.yarn_ext_factor);
  add("yarn_attn_factor", wishes.yarn_attn_factor);
  add("yarn_beta_fast", wishes.yarn_beta_fast);
  add("yarn_beta_slow", wishes.yarn_beta_slow);
  return object;
}

Json adapters_of(const std::vector<checkpoint::LoraAdapter>& adapters) {
  Json list = Json::array();
  for (const checkpoint::LoraAdapter& adapter : adapters) {
    fs::path path = adapter.directory.lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    list.push_back(
        {{"name", base::printable(path.filename().string())}, {"scale", adapter.scale}});
  }
  return list;
}

Json architecture_of(const checkpoint::Checkpoint& checkpoint) {
  const Json config = base::parse_json(checkpoint.config_json(), checkpoint.where());
  for (const char* key : {"general.architecture", "architectures", "model_type"})
    if (const Json* value = find_path(config, key); value != nullptr && !value->is_null())
      return *value;
  return nullptr;
}

}  // namespace

double RoleReport::bits() const {
  return parameters == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters);
}

double RoleReport::relative_rmse() const {
  return squared_sum > 0 ? std::sqrt(squared_error / squared_sum) : 0;
}

void add_to_roles(const PlannedTensor& tensor, const TensorError& error,
                  std::vector<RoleReport>& roles) {
  const std::string_view role = contract::role_name(tensor.spec.role), format = tensor.format->name;
  auto line = std::find_if(roles.begin(), roles.end(), [&](const RoleReport& entry) {
    return entry.role == role && entry.format == format;
  });
  if (line == roles.end()) {
    RoleReport fresh;
    fresh.role = role;
    fresh.format = format;
    line = roles.insert(roles.end(), std::move(fresh));
  }
  ++line->n_tensors;
  line->parameters += tensor.spec.parameters();
  line->bytes += tensor.bytes;
  line->squared_error += error.squared_error;
  line->squared_sum += error.squared_sum;
}

double bits_over_matrices(const std::vector<PlannedTensor>& tensors) {
  double bytes = 0, parameters = 0;
  for (const PlannedTensor& tensor : tensors) {
    if (!tensor.spec.matrix) continue;
    bytes += static_cast<double>(tensor.bytes);
    parameters += static_cast<double>(tensor.spec.parameters());
  }
  return parameters > 0 ? 8 * bytes / parameters : 0;
}

std::map<std::string, std::size_t> requantizations(const ConvertReport& report) {
  std::map<std::string, std::size_t> counts;
  for (const TensorPlan& tensor : report.tensors)
    if (const std::size_t at = tensor.note.find("requantized from"); at != std::string::npos)
      ++counts[base::cat(tensor.note.substr(at), " to ", tensor.format->name)];
  return counts;
}

std::string quantization_text(const ConvertReport& report, std::string_view type) {
  Json document = {{"type", type},
                   {"policy", report.policy},
                   {"bits_per_weight", rounded(report.bits_per_weight)}};
  Json roles = Json::array();
  for (const RoleReport& line : report.roles)
    roles.push_back({{"role", line.role},
                     {"format", line.format},
                     {"tensors", line.n_tensors},
                     {"parameters", line.parameters},
                     {"bits", rounded(line.bits())},
                     {"relative_rmse", rounded(line.relative_rmse())}});
  document["roles"] = std::move(roles);
  document["requantized"] = requantizations(report);
  return document.dump();
}

std::string source_text(const fs::path& path, const checkpoint::Checkpoint& checkpoint,
                        const Recipe& recipe, const ConvertOptions& options,
                        const Resolved& resolved) {
  const bool gguf = checkpoint.kind() == checkpoint::SourceKind::gguf;
  const Json document = {
      {"kind", gguf ? "gguf" : "hugging_face"},
      {"architecture", architecture_of(checkpoint)},
      {"recipe", recipe.name},
      {"treated_as",
       options.arch_as.empty() ? Json(nullptr) : Json(base::printable(options.arch_as))},
      {"files", files_of(path)},
      {"tensors", checkpoint.tensors().size()},
      {"ignored_tensors", resolved.ignored},
      {"adaptations", adaptations_of(options.adaptations)},
      {"adapters", adapters_of(options.adapters)}};
  return document.dump();
}

}  // namespace quern::convert
