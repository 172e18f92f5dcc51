// One PEFT directory: adapter_config.json and adapter_model.safetensors, as pairs of factors by module,
// and tensors that were trained whole.
// For lora.cpp only.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/source_files.hpp"

namespace quern::checkpoint {

// The change of one module's weight [out, in]: scale * b [out, r] a [r, in]. Of an embedding [n, d]: a
// [r, n], b [d, r], and the change is transposed.
struct LoraPair {
  std::string module;
  SourceTensor a{}, b{};
  double scale = 1;
  bool embedding = false;
};

struct LoraFiles {
  std::string where;
  bool fan_in_fan_out = false;  // weights of the modules are [in, out]
  std::vector<SourceFile> files;
  std::vector<LoraPair> pairs;  // in the order of the file
  std::vector<SourceTensor> saved;  // of modules saved whole; "lm_head.weight" stands for the checkpoint's
  std::vector<std::string> not_saved;  // modules that the configuration calls saved, without tensors here
};

// Whether "model.layers.0.mlp.up_proj.weight" is of the module "mlp", "mlp.up_proj", ...
bool is_of_module(std::string_view tensor, std::string_view module);

LoraFiles read_lora(const std::filesystem::path& directory);

}  // namespace quern::checkpoint
