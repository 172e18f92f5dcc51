// The contract for a person: the table of eight points that can be checked against a model card,
// the exact equation of every layer group, parameters by component, cache bytes by formula. Used by
// `quern inspect`. Not here: printing, colours, weights (the formats of the tensors come in as
// plain text).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contract/contract.hpp"

namespace quern::contract {

// A tensor as it lies in the weight file; names as in expected_tensors().
struct StoredTensor {
  std::string name;
  std::string format;
  std::uint64_t bytes;
};

std::string describe_text(const Contract& contract, const std::vector<StoredTensor>& stored = {});

// One JSON object: {name, family, points: [{title, rows: [{label, value}]}], equations, parameters,
// cache, formats}, numbers as numbers where a program may want them.
std::string describe_json(const Contract& contract, const std::vector<StoredTensor>& stored = {});

}  // namespace quern::contract
