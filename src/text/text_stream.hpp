// The text of ids as they come: UTF-8 that never ends inside a character. What a decoder cannot
// know yet (a run of byte tokens, half a character) is held back. All chunks together are the text
// of all ids, with U+FFFD for bytes that are not UTF-8.
#pragma once

#include <cstdint>
#include <string>

#include "text/decoder.hpp"
#include "text/stream_decoder.hpp"
#include "text/tokenizer.hpp"

namespace quern::text {

class TextStream {
 public:
  // skip_special drops special added tokens. tokenizer must outlive it.
  explicit TextStream(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(tokenizer), skip_special_(skip_special), tokens_(tokenizer.decoder()) {}

  std::string push(std::int32_t id) {
    if (!tokenizer_.has_text(id) || (skip_special_ && tokenizer_.is_special(id))) return {};
    return bytes_.push(tokens_.push(tokenizer_.token_bytes(id)));
  }
  std::string finish() {
    std::string out = bytes_.push(tokens_.finish());
    return out += bytes_.finish();
  }

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  Decoder::Stream tokens_;
  StreamDecoder bytes_;
};

}  // namespace quern::text
