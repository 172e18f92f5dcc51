// One safetensors file: the tensor directory from bytes. Offsets must be contiguous, disjoint and
// cover the whole data part; duplicate keys, holes and unknown types are rejected.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

std::vector<SourceTensor> parse_safetensors(base::Bytes bytes, std::string_view where);

}  // namespace quern::checkpoint
