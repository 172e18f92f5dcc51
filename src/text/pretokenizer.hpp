// Cuts text into the words that the model sees, by the steps of the contract's tokenizer section:
//   NAME             a scanner of text/scanners.hpp, or "smollm" (digits, then gpt2)
//   regex:PATTERN    matches and what lies between them are pieces (Split, isolated)
//   regex-BEHAVIOUR:PATTERN, regex-BEHAVIOUR-inverted:PATTERN   with BEHAVIOUR removed,
//                    merged_with_previous, merged_with_next or contiguous (and isolated, inverted)
//   punctuation-BEHAVIOUR
//   prefix_space     a space before each piece that does not start with one
//   byte_alphabet    spells the pieces in the byte alphabet, for steps that come after it
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

class PreTokenizer {
 public:
  // Input errors quote an unknown step.
  PreTokenizer(const std::vector<std::string>& steps, std::string_view where);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;

  using Sink = std::function<void(std::string_view word)>;
  void run(std::string_view text, const Sink& sink) const;

  class Step;

 private:
  void run_from(std::size_t index, std::string_view piece, const Sink& sink) const;
  std::vector<std::unique_ptr<Step>> steps_;
  bool spelled_ = false;  // a byte_alphabet step: words are spelled and read back at the end
};

}  // namespace quern::text
