// What each token adds to a text, as bytes: for rules about texts that are not cut as tokens are
// (bans, breakers) and for showing tokens one by one. Not here: the text of a sequence, with its
// first token's exceptions and UTF-8 that is repaired (text_stream.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace quern::text {

class TokenText {
 public:
  // tokenizer must outlive it.
  explicit TokenText(const Tokenizer& tokenizer);

  // In the middle of a text; a byte token ("<0xC3>") adds its byte. Empty for ids without text.
  std::string of(std::int32_t id) const;
  // Of every id, 0 to size() - 1; empty for special ones if skip_special.
  std::vector<std::string> all(bool skip_special) const;

 private:
  const Tokenizer& tokenizer_;
  bool has_byte_tokens_;
  std::string before_, behind_;  // what the tokens around it add
};

}  // namespace quern::text
