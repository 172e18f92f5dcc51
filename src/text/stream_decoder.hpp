// Token bytes -> UTF-8 that never ends inside a character: incomplete sequences are held back,
// invalid ones become U+FFFD (maximal subparts, as Rust's from_utf8_lossy), what is left at the end
// becomes one U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace quern::text {

class StreamDecoder {
 public:
  std::string push(std::string_view token_bytes);
  std::string finish();

 private:
  std::string pending_;
};

std::string utf8_lossy(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

}  // namespace quern::text
