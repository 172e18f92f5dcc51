#include "checkpoint/join_packed.hpp"

#include <algorithm>
#include <array>

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "checkpoint/packed_parts.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::Json;

constexpr std::array<std::string_view, 6> kMethods = {"gptq", "awq",  "compressed-tensors",
                                                      "fp8",  "mxfp4", "fbgemm_fp8"};
// Formats of a method that are something else than the packed_*.cpp files read.
constexpr std::array<std::string_view, 7> kOtherFormats = {
    "gemv", "gemv_fast", "marlin", "marlin-24", "sparse-24-bitmask", "nvfp4-pack-quantized",
    "mxfp4-pack-quantized"};
// Parts that only quantize activations or caches at run time.
constexpr std::array<std::string_view, 9> kRunTimeParts = {
    ".input_scale",        ".input_zero_point", ".input_global_scale", ".output_scale",
    ".output_zero_point",  ".k_scale",          ".v_scale",            ".q_scale",
    ".activation_scale"};
// Parts of a packed tensor that mean nothing alone.
constexpr std::array<std::string_view, 10> kLooseParts = {
    ".qweight",      ".qzeros",       ".scales",      ".g_idx",
    "weight_packed", "_scale_inv",    "weight_scale", "weight_zero_point",
    "weight_shape",  "weight_g_idx"};

std::string lower_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  std::string text = found->get<std::string>().substr(0, 60);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::uint64_t small_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return 0;
  const auto value = found->get<std::uint64_t>();
  return value < (1u << 30) ? value : 0;
}

// [rows, columns] of a block; 0: a size that no block has.
void read_block(const Json& object, const char* key, PackedConfig& config) {
  const auto block = object.find(key);
  if (block == object.end() || !block->is_array() || block->size() != 2) return;
  const auto size = [&](std::size_t i) -> std::uint64_t {
    const Json& n = (*block)[i];
    return n.is_number_unsigned() && n.get<std::uint64_t>() < (1u << 30) ? n.get<std::uint64_t>() : 0;
  };
  config.block_rows = size(0);
  config.block_columns = size(1);
}

void read_group(const Json& object, PackedConfig& config) {
  config.group = small_number(object, "group_size");
  const auto found = object.find("group_size");
  config.whole_rows = found != object.end() && found->is_number_integer() && *found == -1;
}

// compressed-tensors has one such object per group of modules. What they agree on.
void read_config_groups(const Json& groups, PackedConfig& config) {
  bool first = true;
  for (const Json& group : groups) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (!group.is_object() || weights == group.end() || !weights->is_object()) continue;
    PackedConfig one;
    one.bits = small_number(*weights, "num_bits");
    read_group(*weights, one);
    if (first) {
      config.bits = one.bits;
      config.group = one.group;
      config.whole_rows = one.whole_rows;
    }
    if (config.bits != one.bits) config.bits = 0;
    config.mixed = config.mixed || config.group != one.group || config.whole_rows != one.whole_rows;
    first = false;
    read_block(*weights, "block_structure", config);
  }
}

void reject_other_formats(const Json& object, const PackedConfig& config, std::string_view where) {
  std::vector<std::string> formats = {config.format, lower_text(object, "backend")};
  if (const auto sparse = object.find("sparsity_config");
      sparse != object.end() && sparse->is_object())
    formats.push_back(lower_text(*sparse, "format"));
  for (const std::string& format : formats) {
    const bool other = std::find(kOtherFormats.begin(), kOtherFormats.end(), format) !=
                           kOtherFormats.end() ||
                       format.starts_with("sparse") || format == "llm-awq";
    if (other)
      base::reject(where, cat("unsupported layout of quantized tensors (", config.method, ")"),
                   base::printable(format));
  }
}

PackedConfig read_config(std::string_view config_json, std::string_view where) {
  const Json document = base::parse_json(config_json, where);
  PackedConfig config;
  const char* key =
      document.is_object() && document.contains("compression_config") ? "compression_config"
                                                                      : "quantization_config";
  if (!document.is_object() || !document.contains(key) || document[key].is_null()) return config;
  const std::string place = cat(where, ": ", key);
  const Json& object = document[key];
  if (!object.is_object()) base::reject(place, "wrong kind of value", object.type_name(), "an object");
  config.method = lower_text(object, "quant_method");
  if (config.method.empty() && std::string_view(key) == "compression_config")
    config.method = "compressed-tensors";
  if (std::find(kMethods.begin(), kMethods.end(), config.method) == kMethods.end())
    base::reject(cat(place, ".quant_method"), "unsupported quantized checkpoint",
                 config.method.empty() ? "no method" : base::printable(config.method),
                 cat(base::join({kMethods.begin(), kMethods.end()}), " or floats"));
  config.format = lower_text(object, config.method == "gptq"  ? "checkpoint_format"
                                     : config.method == "awq" ? "version"
                                                              : "format");
  config.bits = small_number(object, "bits");
  read_group(object, config);
  read_block(object, "weight_block_size", config);
  if (const auto groups = object.find("config_groups");
      groups != object.end() && groups->is_object())
    read_config_groups(*groups, config);
  if (config.block_rows == 0 || config.block_columns == 0)
    base::reject(place, "sizes of a block of scales", {}, "two whole numbers from 1 to 2^30");
  // GPTQ modules may differ from the whole by `dynamic`: only the tensors know.
  if (object.contains("dynamic") && object["dynamic"].is_object() && !object["dynamic"].empty()) {
    config.bits = 0;
    config.mixed = true;
  }
  reject_other_formats(object, config, place);
  return config;
}

bool ends_with_any(std::string_view name, const auto& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::optional<SourceTensor> join_one(PackedParts& parts, const SourceTensor& tensor) {
  for (const auto join : {join_gptq, join_awq, join_pack_quantized, join_mxfp4, join_scaled})
    if (std::optional<SourceTensor> made = join(parts, tensor)) return made;
  return std::nullopt;
}

void reject_loose(const PackedParts& parts, const SourceTensor& tensor, std::string_view where) {
  if (ends_with_any(tensor.name, kLooseParts))
    base::reject(parts.place(tensor.name),
                 parts.config().method.empty()
                     ? cat("part of a quantized tensor, but ", where, " has no quantization_config")
                     : "part of a quantized tensor that is not there");
}

}  // namespace

std::vector<SourceTensor> join_packed(std::vector<SourceTensor> tensors, std::string_view config_json,
                                      std::string_view where, std::vector<std::string>& notices) {
  PackedParts parts(tensors, read_config(config_json, where), std::string(where));
  std::vector<std::optional<SourceTensor>> made(tensors.size());
  std::size_t n_joined = 0, n_dropped = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (parts.taken(tensors[i])) continue;
    made[i] = join_one(parts, tensors[i]);
    n_joined += made[i].has_value();
  }
  std::vector<SourceTensor> result;
  result.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (made[i]) {
      result.push_back(std::move(*made[i]));
    } else if (!parts.taken(tensors[i])) {
      const bool run_time = n_joined != 0 && ends_with_any(tensors[i].name, kRunTimeParts);
      if (run_time) {
        ++n_dropped;
        continue;
      }
      reject_loose(parts, tensors[i], where);
      result.push_back(std::move(tensors[i]));
    }
  }
  if (parts.n_doubtful_zeros() != 0)
    notices.push_back(cat(parts.n_doubtful_zeros(), " GPTQ zero point(s) are stored as all ones: read as 2^bits, ",
                          "which old kernels wrapped to 0"));
  if (n_dropped != 0)
    notices.push_back(cat(n_dropped, " scale(s) of activations or caches are ignored"));
  if (n_joined == 0 && !parts.config().method.empty())
    notices.push_back(cat("quantization_config says ", base::printable(parts.config().method),
                          ", but no tensor is quantized"));
  return result;
}

}  // namespace quern::checkpoint
