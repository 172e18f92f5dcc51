// What can be known about a chat format by rendering small chats with it (format.hpp,
// FormatTraits).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/format.hpp"

namespace quern::chat {

class FormatProbe {
 public:
  explicit FormatProbe(const Format& format) : format_(format) {}
  FormatTraits run() const;

 private:
  // The text of a chat, or nothing when the template refuses it.
  std::optional<base::MarkedText> text_of(const std::vector<Message>& messages, bool prompt,
                                          const jinja::Template::Variables& more = {}) const;
  void find_thinking(FormatTraits& traits) const;
  void find_turn_end(FormatTraits& traits) const;

  const Format& format_;
};

}  // namespace quern::chat
