// A pre-tokenizer regex that has no hand-written scanner, on PCRE2. The pattern is written for
// Oniguruma (Ruby syntax), as in tokenizer.json; what the two engines read differently is
// rewritten.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace quern::text {

// Oniguruma -> PCRE2 (with UTF and UCP); an input error quoting the pattern for constructs without
// a counterpart (class intersections, possessive intervals).
std::string translate_pattern(std::string_view pattern, std::string_view where);

// The pattern that matches exactly `text`.
std::string literal_pattern(std::string_view text);

class Regex {
 public:
  Regex(std::string_view pattern, std::string_view where);
  ~Regex();
  Regex(Regex&&) noexcept;

  // Calls piece(begin, end, matched) for the whole of `text` in order: matches and what lies
  // between them. Bytes that are not UTF-8 never match. Piece is any callable.
  template <class Piece>
  void split(std::string_view text, Piece&& piece) const {
    Search search(*this, text);
    std::size_t at = 0;
    while (search.next()) {
      if (search.begin > at) piece(at, search.begin, false);
      piece(search.begin, search.end, true);
      at = search.end;
    }
    if (at < text.size()) piece(at, text.size(), false);
  }

 private:
  struct Program;

  // One pass over one text; matches are not empty.
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;
    bool next();
    std::size_t begin = 0, end = 0;

   private:
    bool next_in_segment();
    struct Scratch;
    const Regex& regex_;
    std::string_view text_;
    std::size_t at_ = 0, segment_begin_ = 0, segment_end_ = 0;
    std::unique_ptr<Scratch> scratch_;
  };

  std::unique_ptr<Program> program_;
  std::string pattern_;
};

}  // namespace quern::text
