// open_checkpoint: a directory or a GGUF file, told apart by what lies there and not by its name.
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/gguf_checkpoint.hpp"
#include "checkpoint/hugging_face.hpp"
#include "checkpoint/magic.hpp"
#include "checkpoint/source_files.hpp"

namespace quern::checkpoint {

std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path) {
  const std::string where = base::printable(path.string());
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found)
    base::reject(where, "no such file or directory");
  if (kind == std::filesystem::file_type::directory) return open_hugging_face(path);
  SourceFile file(path);
  const FileMagic magic = magic_of(file.bytes());
  if (magic == FileMagic::gguf) return open_gguf(path, std::move(file));
  if (magic == FileMagic::pickle)
    base::reject(where, "pickle is not read (it can run code; save the model as safetensors)");
  const std::string name = path.filename().string();
  if (name.ends_with(".safetensors") || name.ends_with(".json"))
    base::reject(where, "give the directory that holds it, with its config.json");
  base::reject(where, "neither a Hugging Face directory nor a GGUF file");
}

}  // namespace quern::checkpoint
