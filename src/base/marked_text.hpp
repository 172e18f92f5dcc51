// Text that remembers which of its bytes people or tools wrote. A chat template makes it (jinja), the
// tokenizer reads it (text): in those bytes no control token is ever recognised, while every other
// rule of the tokenizer sees one unbroken text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quern::base {

struct MarkedText {
  struct Range {
    std::size_t begin, end;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::string text;
  std::vector<Range> untrusted;  // byte ranges: ascending, disjoint, none empty
  friend bool operator==(const MarkedText&, const MarkedText&) = default;
};

}  // namespace quern::base
