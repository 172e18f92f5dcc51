// When what was typed is a whole message, and which text it stands for: blocks in """, a \ at the end of
// a line that continues it, commands and their escape //. Not here: what commands do.
#pragma once

#include <string>
#include <string_view>

namespace quern::terminal {

enum class LineMode {
  single,  // the line end sends; a \ before it goes on in the next line
  multi,   // the line end goes on; a \ before it sends (--multiline-input). Commands are sent by the line end
};

// Whether a line end after `typed` sends it.
bool is_complete(std::string_view typed, LineMode mode);

struct Typed {
  bool command = false;  // text begins with / and is one line, or has a """ block behind its first word
  std::string text;      // without quotes and continuation marks; of //... without the first /
};
Typed finished(std::string_view typed, LineMode mode);

}  // namespace quern::terminal
