// The tensors of a quantized Hugging Face checkpoint joined: what is stored as qweight, qzeros,
// scales, weight_packed, *_blocks, ... becomes one tensor under the name that the float weight has,
// so that a recipe need not know how a checkpoint is quantized.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

// config_json: config.json, for quantization_config. Input errors: a method that quern does not read,
// parts that are missing, of the wrong type or shape, parts left over. Tensors that only serve a
// run time (input scales, scales of a KV cache) are left out with a notice.
std::vector<SourceTensor> join_packed(std::vector<SourceTensor> tensors, std::string_view config_json,
                                      std::string_view where, std::vector<std::string>& notices);

}  // namespace quern::checkpoint
