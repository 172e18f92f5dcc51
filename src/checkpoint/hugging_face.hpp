// A Hugging Face directory: config.json, model.safetensors or the shards of
// model.safetensors.index.json. Every shard is opened once and stays mapped; nothing outside the
// directory is opened.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

std::unique_ptr<Checkpoint> open_hugging_face(const std::filesystem::path& path);

}  // namespace quern::checkpoint
