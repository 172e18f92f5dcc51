// The driver: checkpoint -> OUT/model.quern + OUT/model.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "convert/recipe.hpp"
#include "quant/format.hpp"

namespace quern::convert {

struct ConvertOptions {
  std::string type;                 // "f32" ... "keep"; "" = keep for quantized sources, q4 for float ones
  std::vector<std::pair<std::string, std::string>> tensor_types;   // REGEX=TYPE, first match wins
  std::string output_tensor_type, token_embedding_type;
  std::string recipe_file, arch_as;
  Adaptations adaptations;
  std::size_t n_threads = 1;
  bool force = false, dry_run = false, strict = false, allow_nonfinite = false;
};

struct TensorPlan {
  std::string name;
  std::size_t rows, columns;
  const quant::FormatTraits* format;
  std::uint64_t bytes;
  bool kept;                        // source codes and scales exactly
  std::string note;                 // why this format, "requantized from Q4_K"
};

struct ConvertReport {
  contract::Contract contract;
  std::vector<TensorPlan> tensors;
  std::uint64_t file_bytes;
  double bits_per_weight;           // over matrices
  std::vector<std::string> notices;
};

// Progress: bytes of output done and in all; called from the converting thread.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// dry_run: plan and sizes, nothing written. Otherwise writes OUT in a temporary directory beside it, syncs,
// reads it back (all checksums), renames. Peak memory <= largest tensor x 3 + 256 MiB. Same input, same bytes
// for any thread count.
ConvertReport convert(const std::filesystem::path& source, const std::filesystem::path& target,
                      const ConvertOptions& options, const Progress& progress);

}  // namespace quern::convert
