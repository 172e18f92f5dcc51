// What a template may use up. A template comes with the model, so it is hostile input: whatever it
// does, rendering ends soon, in bounded memory, with text or an error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::jinja {

struct Limits {
  std::size_t source_bytes = std::size_t{1} << 20;  // the longest known template has 30 KB
  std::size_t text_bytes = std::size_t{16} << 20;   // the output, and any single string
  std::size_t heap_bytes = std::size_t{512} << 20;  // all values alive at once
  // One step is an expression, a statement, an item or 64 bytes of text made. 4 million take about
  // 0.3 s; the templates of 42 families need some 100 a message.
  std::uint64_t fuel = 4'000'000;
  std::size_t range_items = 100'000;  // as the reference's sandbox
  int parse_depth = 128;              // nesting of expressions and statements, links of a chain
  int call_depth = 64;                // macros and recursive loops inside one another
};

}  // namespace quern::jinja
