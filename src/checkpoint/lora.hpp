// LoRA adapters (PEFT directories) merged into a checkpoint as it is read: a matrix W that an adapter
// changes gives W + scale * B A, in float32, row by row on demand; several adapters add up. A tensor of a module that
// an adapter saves whole (modules_to_save) stands in the place of the checkpoint's.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

struct LoraAdapter {
  std::filesystem::path directory;
  double scale = 1;  // the user's, beside the adapter's own
};

// The checkpoint with the adapters merged. Input errors: what plain LoRA is not (DoRA, biases, ...) by name, an
// adapter's tensor that belongs to no matrix of the checkpoint, shapes.
std::unique_ptr<Checkpoint> with_adapters(std::unique_ptr<Checkpoint> checkpoint,
                                          const std::vector<LoraAdapter>& adapters);

}  // namespace quern::checkpoint
