// Numbers between bounds, exact by their digits, as expressions. No exponents, no leading zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar.hpp"

namespace quern::grammar {

// A decimal, 0 or more: "12", "5" is 12.5.
struct Decimal {
  std::string whole = "0", fraction;
  bool exclusive = false;  // as a bound: not itself
};

struct DecimalRange {
  Decimal low;
  std::optional<Decimal> high;
  std::size_t max_whole = 15;  // digits, where nothing else bounds them
  std::size_t max_fraction = 0;
};
NodeId decimal_node(Grammar& grammar, const DecimalRange& range);

// Integers of [low, high] that all of `multiples` divide; nothing() for none.
struct IntegerBounds {
  std::int64_t low, high;
  std::vector<std::int64_t> multiples;
};
NodeId integer_node(Grammar& grammar, const IntegerBounds& bounds);

}  // namespace quern::grammar
