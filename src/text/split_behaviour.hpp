// What becomes of matches and of the gaps between them: the behaviours of the reference's Split.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace quern::text {

enum class Behaviour { isolated, removed, merged_with_previous, merged_with_next, contiguous };

std::optional<Behaviour> behaviour_of(std::string_view word);

// Turns the sequence of matches and gaps into pieces, as the behaviour says. One span is held back,
// since a later one may join it. Sink takes (begin, end).
template <class Sink>
class Joiner {
 public:
  Joiner(Behaviour behaviour, const Sink& sink) : behaviour_(behaviour), sink_(sink) {}

  void add(std::size_t begin, std::size_t end, bool matched) {
    if (held_ && joins(matched)) {
      end_ = end;
    } else {
      flush();
      begin_ = begin, end_ = end, held_ = true;
    }
    last_matched_ = matched;
    if (behaviour_ == Behaviour::removed && matched) held_ = false;
  }

  void flush() {
    if (held_) sink_(begin_, end_);
    held_ = false;
  }

 private:
  bool joins(bool matched) const {
    switch (behaviour_) {
      case Behaviour::merged_with_previous:
        return matched && !last_matched_;
      case Behaviour::merged_with_next:
        return last_matched_ && !matched;
      case Behaviour::contiguous:
        return matched == last_matched_;
      default:
        return false;
    }
  }

  Behaviour behaviour_;
  const Sink& sink_;
  std::size_t begin_ = 0, end_ = 0;
  bool held_ = false, last_matched_ = false;
};

}  // namespace quern::text
