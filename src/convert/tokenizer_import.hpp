// tokenizer.json, tokenizer_config.json or GGUF vocabulary -> the contract's tokenizer section and
// its tables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/contract.hpp"

namespace quern::convert {

struct ImportedTokenizer {
  contract::TokenizerDescription description;  // model "none" when the checkpoint has no tokenizer
  std::vector<std::byte> tables;
  contract::Tokens tokens;  // bos, eos, add_bos ... (merged with generation_config by resolve)
  contract::ChatDescription chat;
  std::vector<std::string> notices;
};

ImportedTokenizer import_tokenizer(const checkpoint::Checkpoint& checkpoint,
                                   std::size_t vocab_size);

// For `quern tokenize --tokenizer`: tokenizer.json, a directory with one, or a GGUF; no weights
// needed.
ImportedTokenizer import_tokenizer_file(const std::filesystem::path& path);

}  // namespace quern::convert
