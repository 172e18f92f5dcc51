#include "batch/reorder.hpp"

#include <algorithm>

namespace quern::batch {

void Reorder::finish(std::size_t item, FinishedLine line, const std::function<void(const FinishedLine&)>& write) {
  if (!ordered_) {
    ++next_;
    return write(line);
  }
  waiting_bytes_ += line.text.size();
  waiting_.emplace(item, std::move(line));
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    const FinishedLine first = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    waiting_bytes_ -= first.text.size();
    ++next_;
    write(first);
  }
}

}  // namespace quern::batch
