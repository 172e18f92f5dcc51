// Text <-> token ids, driven by the contract's tokenizer section and its tables. Follows the
// `tokenizers` library, and sentencepiece where the steps say so. Not here: reading tokenizer.json,
// GGUF and other files (convert/tokenizer_import.hpp), chat templates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/marked_text.hpp"
#include "contract/contract.hpp"
#include "text/decoder.hpp"

namespace quern::text {

struct EncodeOptions {
  bool add_special = true;  // prefix and suffix ids of the post-processor
  // Control tokens in the text become their ids, as `tokenizers` does. False: they are ordinary
  // text. Control are the special added tokens and the others that look like markup (<...>, [...]);
  // user-defined words and runs of white space among the added tokens are matched either way.
  bool parse_special = true;
};

struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  // token type of each id
};

class Tokenizer {
 public:
  // Builds the runtime over mapped tables (text/tokenizer_tables.hpp), which must outlive it. Input
  // errors for tables that do not agree with the description. A few ms for 262,144 tokens: nothing
  // of the vocabulary is copied or sorted.
  Tokenizer(const contract::TokenizerDescription& description, base::Bytes tables,
            std::string_view where);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // Text must be valid UTF-8 for non-byte-level models; byte-level ones take any bytes.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // A rendered chat: control tokens are those that lie wholly in trusted bytes, all else sees one
  // unbroken text, so that for text without control tokens of its own the ids are those of
  // encode(text, {.add_special = false}).
  std::vector<std::int32_t> encode(const base::MarkedText& text) const;

  // With token types; of two texts in one input (an error when the description has no pair).
  Encoding encode_typed(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const;

  // Ids -> bytes of the text. skip_special drops special added tokens. Unknown ids give nothing.
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special = false) const;

  // What the tables hold of one id: its bytes (maybe part of a character) when the vocabulary is
  // byte-level, else its spelling, which the decoder makes text of (text/text_stream.hpp).
  std::string_view token_bytes(std::int32_t id) const;
  bool has_text(std::int32_t id) const;  // false for ids outside the vocabulary and unused ones
  const Decoder& decoder() const;
  bool is_special(std::int32_t id) const;
  bool is_control(std::int32_t id) const;  // special, or markup by its look (EncodeOptions)
  std::int32_t id_of(
      std::string_view token_content) const;  // added tokens and vocabulary; -1 when unknown
  std::size_t size() const;                   // largest id + 1

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::text
