// The steps of a pre-tokenizer: each cuts a piece of text into pieces, or spells it anew.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace quern::text {

struct TextPiece {
  std::string_view text;
  bool at_start;  // it begins where the whole input does
};

class PreTokenizerStep {
 public:
  using Sink = std::function<void(const TextPiece& piece)>;
  virtual ~PreTokenizerStep() = default;
  // Pieces are not empty and in order.
  virtual void cut(const TextPiece& piece, const Sink& sink) const = 0;
};

// An input error quotes an unknown step.
std::unique_ptr<PreTokenizerStep> make_pretokenizer_step(std::string_view step,
                                                         std::string_view where);

}  // namespace quern::text
