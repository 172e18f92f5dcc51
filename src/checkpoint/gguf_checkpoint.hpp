// A GGUF file, or the parts of a split one (NAME-00001-of-0000N.gguf), as a checkpoint.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/source_files.hpp"

namespace quern::checkpoint {

// file: `path`, opened.
std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path, SourceFile file);

}  // namespace quern::checkpoint
