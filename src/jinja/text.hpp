// Strings of a template: UTF-8 bytes that remember which of them people or tools wrote, and whether
// the string counts as markup (`|safe`). Lengths and places in templates are in characters; here
// everything is in bytes unless it says otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.hpp"

namespace quern::jinja {

using Range = base::MarkedText::Range;

struct Text {
  Text() = default;
  explicit Text(std::string b, std::vector<Range> u = {}, bool m = false)
      : bytes(std::move(b)), untrusted(std::move(u)), markup(m), ascii(is_ascii(bytes)) {}
  Text(const Text& other) : Text(other.bytes, other.untrusted, other.markup) {}
  Text(Text&& other) noexcept  // never of one that a heap counts
      : bytes(std::move(other.bytes)),
        untrusted(std::move(other.untrusted)),
        markup(other.markup),
        ascii(other.ascii) {}
  ~Text() {
    if (counter != nullptr) *counter -= cost();
  }
  Text& operator=(const Text&) = delete;

  std::size_t cost() const { return bytes.capacity() + untrusted.capacity() * sizeof(Range) + 96; }
  static bool is_ascii(std::string_view bytes);

  std::string bytes;
  std::vector<Range> untrusted;  // ascending, disjoint, none empty or touching
  bool markup = false;
  bool ascii = true;
  std::size_t* counter = nullptr;  // the heap's count of living bytes, which holds this text
};

using TextRef = std::shared_ptr<const Text>;

// Characters of a text.
std::size_t char_count(const Text& text);
std::size_t byte_of_char(const Text& text, std::size_t character);  // its end when there are fewer
std::size_t char_of_byte(const Text& text, std::size_t byte);

// Writes a text piece by piece; marks follow their bytes.
class TextBuilder {
 public:
  void append(const Text& text) { append(text, 0, text.bytes.size()); }
  void append(const Text& text, std::size_t begin, std::size_t end);
  void append(std::string_view bytes, bool untrusted = false);
  std::size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  Text take(bool markup = false) { return Text(std::move(bytes_), std::move(untrusted_), markup); }

 private:
  void mark(std::size_t begin, std::size_t end);
  std::string bytes_;
  std::vector<Range> untrusted_;
};

// Asks for the marks of ascending places.
class MarkReader {
 public:
  explicit MarkReader(const Text& text) : ranges_(text.untrusted) {}
  bool untrusted(std::size_t byte) {
    while (next_ < ranges_.size() && ranges_[next_].end <= byte) ++next_;
    return next_ < ranges_.size() && ranges_[next_].begin <= byte;
  }

 private:
  const std::vector<Range>& ranges_;
  std::size_t next_ = 0;
};

}  // namespace quern::jinja
