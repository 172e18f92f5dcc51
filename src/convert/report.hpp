// What a conversion writes about itself into model.json: the quantization report and the
// provenance. No times, no local paths.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/tensors.hpp"
#include "convert/convert.hpp"
#include "convert/policy.hpp"
#include "convert/tensor_encoder.hpp"

namespace quern::convert {


// Adds a tensor to the line of its role and format.
void add_to_roles(const PlannedTensor& tensor, const TensorError& error,
                  std::vector<RoleReport>& roles);

double bits_over_matrices(const std::vector<PlannedTensor>& tensors);

// "requantized from Q4_K to q4" -> number of tensors.
std::map<std::string, std::size_t> requantizations(const ConvertReport& report);

// JSON texts of one object each, for Contract::quantization_json and source_json.
std::string quantization_text(const ConvertReport& report, std::string_view type);
std::string source_text(const std::filesystem::path& path, const checkpoint::Checkpoint& checkpoint,
                        const Recipe& recipe, const ConvertOptions& options,
                        const Resolved& resolved);

}  // namespace quern::convert
