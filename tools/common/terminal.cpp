#include "terminal.hpp"

#include <unistd.h>

#include <cstdint>
#include <iostream>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::tool {

bool stdout_is_terminal() { return ::isatty(1) != 0; }
bool stderr_is_terminal() { return ::isatty(2) != 0; }

std::string terminal_safe(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of("\n\t"), text.size());
    out += base::printable(text.substr(0, plain), SIZE_MAX);
    if (plain < text.size()) out += text[plain];
    text.remove_prefix(std::min(plain + 1, text.size()));
  }
  return out;
}

void write_model_text(std::string_view text) {
  if (text.empty()) return;
  if (stdout_is_terminal())
    std::cout << terminal_safe(text);
  else
    std::cout << text;
  std::cout.flush();
  if (!std::cout) throw base::Error(base::ExitCode::environment, "standard output", "cannot write");
}

}  // namespace quern::tool
