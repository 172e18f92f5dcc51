// model.safetensors.index.json: which shard holds which tensor. Names are checked before any file
// is opened.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace quern::checkpoint {

struct ShardIndex {
  std::vector<std::string> shards;                        // sorted, distinct, plain file names
  std::unordered_map<std::string, std::size_t> shard_of;  // tensor -> index into shards
};

ShardIndex parse_shard_index(std::string_view text, std::string_view where);

}  // namespace quern::checkpoint
