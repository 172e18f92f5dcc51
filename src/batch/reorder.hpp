// Answers come as they are done and leave in the order of the input. What waits is bounded: has_room() says whether
// another item may begin.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace quern::batch {

struct FinishedLine {
  std::string text;  // its end included
  bool failed = false;
};

class Reorder {
 public:
  // ordered = false: every line leaves at once.
  explicit Reorder(bool ordered, std::size_t most_items = 4096, std::size_t most_bytes = std::size_t{32} << 20)
      : ordered_(ordered), most_items_(most_items), most_bytes_(most_bytes) {}

  // Items are numbered by when they begin, from 0.
  bool has_room(std::size_t next_item) const {
    return next_item - next_ < most_items_ && waiting_bytes_ < most_bytes_;
  }
  // Calls write for this line, and those behind it that waited for it, in order.
  void finish(std::size_t item, FinishedLine line, const std::function<void(const FinishedLine&)>& write);
  std::size_t n_waiting() const { return waiting_.size(); }

 private:
  bool ordered_;
  std::size_t most_items_, most_bytes_;
  std::size_t next_ = 0, waiting_bytes_ = 0;
  std::map<std::size_t, FinishedLine> waiting_;
};

}  // namespace quern::batch
