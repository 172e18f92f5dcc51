// The regex sets that GGUF files name in tokenizer.ggml.pre.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::convert {

struct PreTokenizerSet {
  std::vector<std::string> normalizers;
  std::vector<std::string> steps;
  bool ignore_merges;
  bool add_bos, add_eos;  // what readers assume when the file does not say
};

// An input error that lists the known names for any other.
PreTokenizerSet find_pre_tokenizer_set(std::string_view name, std::string_view where);

}  // namespace quern::convert
