// The driver: checkpoint -> OUT/model.quern + OUT/model.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/lora.hpp"
#include "convert/recipe.hpp"
#include "quant/format.hpp"

namespace quern::convert {

struct ConvertOptions {
  std::string type;  // "f32" ... "keep"; "" = keep for quantized sources, q4 for float ones
  std::vector<std::pair<std::string, std::string>> tensor_types;  // REGEX=TYPE, first match wins
  std::string output_tensor_type, token_embedding_type;
  std::string recipe_file, arch_as;
  Adaptations adaptations;
  std::vector<checkpoint::LoraAdapter> adapters;  // merged before anything is quantized
  std::size_t n_threads = 1;
  bool force = false, dry_run = false, strict = false, allow_nonfinite = false;
};

struct TensorPlan {
  std::string name;
  std::size_t rows, columns;
  const quant::FormatTraits* format;
  std::uint64_t bytes;
  bool kept;         // source codes and scales exactly
  std::string note;  // why this format, "requantized from Q4_K"
};

// Tensors of one role and format together.
struct RoleReport {
  std::string role, format;
  std::size_t n_tensors = 0;
  std::uint64_t parameters = 0, bytes = 0;
  // Of the stored values against the source's; zero in a dry run.
  double squared_error = 0, squared_sum = 0;
  double bits() const;
  double relative_rmse() const;
};

struct ConvertReport {
  contract::Contract contract;
  std::string policy;  // one line
  std::vector<TensorPlan> tensors;
  std::vector<RoleReport> roles;  // in the order of the forward pass
  std::uint64_t file_bytes = 0;   // of model.quern; in a dry run but for its directory
  double bits_per_weight = 0;     // over matrices
  std::vector<std::string> notices;
};

// Progress: bytes of output done and in all; called from the converting thread. What it throws ends
// the conversion and removes the temporary directory (interruption).
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// dry_run: plan and sizes, nothing written. Otherwise writes OUT in a temporary directory beside
// it, syncs, reads it back (all checksums), renames. Peak memory <= largest tensor x 3 + 256 MiB.
// Same input, same bytes for any thread count.
ConvertReport convert(const std::filesystem::path& source, const std::filesystem::path& target,
                      const ConvertOptions& options, const Progress& progress);

}  // namespace quern::convert
