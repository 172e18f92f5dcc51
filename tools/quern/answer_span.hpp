// Where a head of kind span says the answers to a question lie in the text beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quern::tool {

struct AnswerSpan {
  std::size_t first, last;  // tokens of the input
  double probability;       // of the beginning times that of the end
};

// The k best, best first (equal ones in the order of the text). `logits`: a begin and an end for every token;
// `parts` as in InputItem: answers lie in part 2 and have at most `longest` tokens. Beginnings and ends are
// probabilities over that part and the input's first token, which stands for "no answer".
std::vector<AnswerSpan> best_spans(std::span<const float> logits, std::span<const std::uint8_t> parts,
                                   std::size_t longest, std::size_t k);

}  // namespace quern::tool
