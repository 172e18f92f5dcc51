// The parameter count split by component, by arithmetic on the contract alone: lines of `inspect`.
#pragma once

#include <cstdint>

#include "contract/contract.hpp"

namespace quern::contract {

struct ParameterParts {
  std::uint64_t embedding = 0;  // tokens, token types, projection
  std::uint64_t positions = 0;
  std::uint64_t attention = 0;  // projections, biases, sink logits
  std::uint64_t ffn = 0;
  std::uint64_t inactive = 0;  // of ffn: experts that a token does not use
  std::uint64_t norms = 0;
  std::uint64_t head = 0;  // 0 when tied (and without bias and transform)
  std::uint64_t total() const { return embedding + positions + attention + ffn + norms + head; }
  std::uint64_t active() const { return total() - inactive; }  // what one token uses
};
ParameterParts parameter_parts(const Contract& contract);
ParameterParts stack_parts(const Contract& contract, const Stack& stack);  // layers and final norm
ParameterParts block_parts(const Contract& contract, const Block& block);  // one layer

}  // namespace quern::contract
