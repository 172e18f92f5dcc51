#include "jinja/text.hpp"

#include <algorithm>

namespace quern::jinja {

namespace {

bool starts_char(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

}  // namespace

bool Text::is_ascii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::size_t char_count(const Text& text) {
  if (text.ascii) return text.bytes.size();
  return static_cast<std::size_t>(std::count_if(text.bytes.begin(), text.bytes.end(), starts_char));
}

std::size_t byte_of_char(const Text& text, std::size_t character) {
  if (text.ascii) return std::min(character, text.bytes.size());
  std::size_t at = 0;
  for (; at < text.bytes.size(); ++at)
    if (starts_char(text.bytes[at]) && character-- == 0) break;
  return at;
}

std::size_t char_of_byte(const Text& text, std::size_t byte) {
  if (text.ascii) return byte;
  const auto end =
      text.bytes.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.bytes.size()));
  return static_cast<std::size_t>(std::count_if(text.bytes.begin(), end, starts_char));
}

void TextBuilder::mark(std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  if (!untrusted_.empty() && untrusted_.back().end == begin) {
    untrusted_.back().end = end;
  } else {
    untrusted_.push_back({begin, end});
  }
}

void TextBuilder::append(const Text& text, std::size_t begin, std::size_t end) {
  const std::size_t shift = bytes_.size();
  bytes_.append(text.bytes, begin, end - begin);
  auto range = std::partition_point(text.untrusted.begin(), text.untrusted.end(),
                                    [&](const Range& r) { return r.end <= begin; });
  for (; range != text.untrusted.end() && range->begin < end; ++range)
    mark(shift + std::max(range->begin, begin) - begin, shift + std::min(range->end, end) - begin);
}

void TextBuilder::append(std::string_view bytes, bool untrusted) {
  const std::size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (untrusted) mark(begin, bytes_.size());
}

}  // namespace quern::jinja
