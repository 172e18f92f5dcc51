// Text <-> token ids, driven by the contract's tokenizer section and its tables. Follows the
// `tokenizers` library; byte-level BPE now, other models join as files of their own. Not here:
// reading tokenizer.json or GGUF (convert/tokenizer_import.hpp), chat templates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "contract/contract.hpp"

namespace quern::text {

struct EncodeOptions {
  bool add_special = true;  // prefix and suffix ids of the post-processor
  // Control tokens in the text become their ids, as `tokenizers` does. False: they are ordinary
  // text. Control are the special added tokens and the others that look like markup (<...>, [...]);
  // user-defined words and runs of white space among the added tokens are matched either way.
  bool parse_special = true;
};

class Tokenizer {
 public:
  // Builds the runtime over mapped tables (text/tokenizer_tables.hpp), which must outlive it. Input
  // errors for tables that do not agree with the description. Under 5 ms for 50,000 tokens: nothing
  // is copied or sorted.
  Tokenizer(const contract::TokenizerDescription& description, base::Bytes tables,
            std::string_view where);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  // Text must be valid UTF-8 for non-byte-level models; byte-level ones take any bytes.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Ids -> bytes of the text. skip_special drops special added tokens. Unknown ids give nothing.
  std::string decode(const std::vector<std::int32_t>& ids, bool skip_special = false) const;

  // The bytes that one id adds to the text (streaming; may be part of a character).
  std::string_view token_bytes(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  std::int32_t id_of(
      std::string_view token_content) const;  // added tokens and vocabulary; -1 when unknown
  std::size_t size() const;                   // largest id + 1

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::text
