// Cuts text into the words that the model sees, by the steps of the contract's tokenizer section
// (docs/CONTRACT.md lists them). Not here: the steps (text/pretokenizer_steps.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

class PreTokenizerStep;

class PreTokenizer {
 public:
  // read_back: words are bytes for the model, so that what a byte_alphabet step spelled is read
  // back at the end. Input errors quote an unknown step.
  PreTokenizer(const std::vector<std::string>& steps, std::string_view where,
               bool read_back = true);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;

  using Sink = std::function<void(std::string_view word)>;
  // at_start: the text begins where the whole input does.
  void run(std::string_view text, const Sink& sink, bool at_start = true) const;

 private:
  struct Piece;
  void run_from(std::size_t index, const Piece& piece, const Sink& sink) const;
  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool spelled_ = false;  // a byte_alphabet step: words are spelled and read back at the end
};

}  // namespace quern::text
