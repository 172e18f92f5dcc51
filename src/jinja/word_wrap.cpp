#include "jinja/word_wrap.hpp"

#include <algorithm>
#include <string_view>

#include "jinja/characters.hpp"

namespace quern::jinja {

namespace {

using Line = std::vector<std::uint32_t>;

// Cuts a line into chunks: runs of white space, words, parts of hyphenated words, dashes between words.
class Chunks {
 public:
  Chunks(const Line& line, bool hyphens) : line_(line), hyphens_(hyphens) {}

  std::vector<CharRange> cut() const {
    std::vector<CharRange> chunks;
    for (std::size_t at = 0; at < line_.size();) {
      const std::size_t end = end_of(at);
      chunks.push_back({at, end});
      at = end;
    }
    return chunks;
  }

 private:
  bool space(std::size_t i) const {
    return i < line_.size() && line_[i] < 0x80 && std::string_view("\t\n\v\f\r ").find(static_cast<char>(line_[i])) != std::string_view::npos;
  }
  bool dash(std::size_t i) const { return i < line_.size() && line_[i] == '-'; }
  bool word(std::size_t i) const { return i < line_.size() && is_word(line_[i]); }
  bool letter(std::size_t i) const { return word(i) && !is_decimal(line_[i]); }
  bool word_or_mark(std::size_t i) const {
    return word(i) || (line_[i] < 0x80 && std::string_view("!\"'&.,?").find(static_cast<char>(line_[i])) != std::string_view::npos);
  }
  // Two dashes or more with a word behind them.
  bool dashes_before_word(std::size_t i) const {
    const std::size_t end = past_dashes(i);
    return end >= i + 2 && word(end);
  }
  std::size_t past_dashes(std::size_t i) const {
    while (dash(i)) ++i;
    return i;
  }
  // A hyphen inside a word, with two letters (or a letter, a hyphen and a letter) on either side.
  bool hyphen_inside(std::size_t i) const {
    if (!dash(i)) return false;
    const bool before = (i >= 2 && letter(i - 1) && letter(i - 2)) ||
                        (i >= 3 && letter(i - 1) && dash(i - 2) && letter(i - 3));
    return before && letter(i + 1) && (letter(i + 2) || (dash(i + 2) && letter(i + 3)));
  }

  std::size_t end_of(std::size_t begin) const {
    std::size_t at = begin;
    if (space(at)) {
      while (space(at)) ++at;
      return at;
    }
    if (hyphens_ && begin > 0 && word_or_mark(begin - 1) && dashes_before_word(begin)) return past_dashes(begin);
    for (at = begin + 1; at < line_.size() && !space(at); ++at) {
      if (!hyphens_) continue;
      if (hyphen_inside(at)) return at + 1;
      if (dash(at) && word_or_mark(at - 1) && dashes_before_word(at)) return at;
    }
    return at;
  }

  const Line& line_;
  bool hyphens_;
};

bool is_blank(const Line& line, CharRange range) {
  return std::all_of(line.begin() + static_cast<std::ptrdiff_t>(range.begin),
                     line.begin() + static_cast<std::ptrdiff_t>(range.end), is_space);
}

// How much of a chunk that is longer than a line goes into the `left` characters of this one.
std::size_t part_of_long(const Line& line, CharRange chunk, std::size_t left, bool hyphens) {
  if (!hyphens || chunk.size() <= left) return std::min(left, chunk.size());
  for (std::size_t i = left; i-- > 1;) {
    if (line[chunk.begin + i] != '-') continue;
    for (std::size_t j = 0; j < i; ++j)
      if (line[chunk.begin + j] != '-') return i + 1;
    break;
  }
  return left;
}

}  // namespace

std::vector<CharRange> wrapped_lines(const Line& line, const WrapStyle& style) {
  std::vector<CharRange> chunks = Chunks(line, style.break_on_hyphens).cut(), lines;
  for (std::size_t next = 0; next < chunks.size();) {
    if (!lines.empty() && is_blank(line, chunks[next])) ++next;  // none at the start of a line but the first
    std::vector<CharRange> parts;
    std::size_t size = 0;
    while (next < chunks.size() && size + chunks[next].size() <= style.width) {
      size += chunks[next].size();
      parts.push_back(chunks[next++]);
    }
    if (next < chunks.size() && chunks[next].size() > style.width) {
      CharRange& chunk = chunks[next];
      if (style.break_long_words) {
        const std::size_t n = part_of_long(line, chunk, style.width - size, style.break_on_hyphens);
        parts.push_back({chunk.begin, chunk.begin + n});
        chunk.begin += n;
      } else if (parts.empty()) {
        parts.push_back(chunks[next++]);
      }
    }
    if (!parts.empty() && is_blank(line, parts.back())) parts.pop_back();
    if (!parts.empty()) lines.push_back({parts.front().begin, parts.back().end});
  }
  return lines;
}

}  // namespace quern::jinja
