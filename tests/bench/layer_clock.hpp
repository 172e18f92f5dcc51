// Where the time of decode steps goes: by layer and part of it, and within a part by what the
// threads did. Told by the marks of a Runner and of a ThreadPool; keeps every step, so that medians
// can be taken.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/forward.hpp"

namespace quern::bench {

// Seconds. wall = alone + busy + late + waiting; the last three are within parallel loops, mean of
// the threads.
struct PartTime {
  double wall = 0;
  double alone = 0;    // outside loops: the calling thread works, the others do nothing
  double busy = 0;     // a thread has items
  double late = 0;     // from the loop's begin until a thread joins in
  double waiting = 0;  // from the end of a thread's last item to the loop's end

  PartTime& operator+=(const PartTime& other) {
    wall += other.wall;
    alone += other.alone;
    busy += other.busy;
    late += other.late;
    waiting += other.waiting;
    return *this;
  }
};

class LayerClock {
 public:
  explicit LayerClock(std::size_t n_layers) : n_layers_(n_layers) {}

  std::size_t n_layers() const { return n_layers_; }
  std::size_t n_steps() const { return steps_.size(); }
  // layer n_layers(): what is in none, before and behind the layers.
  const PartTime& at(std::size_t step, std::size_t layer, model::Part part) const {
    return steps_[step][layer * model::kParts + static_cast<std::size_t>(part)];
  }

  // For Runner::set_part_watch(). A step that was stopped is forgotten when the next begins; what is told outside of
  // steps, before the first `embedding` or behind an `end`, is of none.
  void begin(model::Part part) {
    const std::uint64_t now = now_ns();
    if (part == model::Part::embedding) {
      step_.assign((n_layers_ + 1) * model::kParts, {});
      layer_ = n_layers_;
    } else if (part_ == model::Part::end) {
      return;
    } else {
      close(now);
    }
    if (part == model::Part::layer) layer_ = layer_ == n_layers_ ? 0 : layer_ + 1;
    if (part == model::Part::final_norm) layer_ = n_layers_;
    if (part == model::Part::end) steps_.push_back(step_);
    part_ = part;
    begin_ = now;
    loops_ = {};
  }

  // For ThreadPool::set_watch().
  void loop(const base::LoopTimes& times) {
    const double share = 1e-9 / static_cast<double>(times.threads.size());
    for (const base::LoopTimes::Span& thread : times.threads) {
      const bool came = thread.end != 0;
      const std::uint64_t joined = came ? thread.begin : times.loop.end,
                          left = came ? thread.end : times.loop.end;
      loops_.late += share * static_cast<double>(joined - times.loop.begin);
      loops_.busy += share * static_cast<double>(left - joined);
      loops_.waiting += share * static_cast<double>(times.loop.end - left);
    }
  }

 private:
  static std::uint64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  void close(std::uint64_t now) {
    loops_.wall = 1e-9 * static_cast<double>(now - begin_);
    loops_.alone = loops_.wall - loops_.late - loops_.busy - loops_.waiting;
    step_[layer_ * model::kParts + static_cast<std::size_t>(part_)] += loops_;
  }

  std::size_t n_layers_, layer_ = 0;
  model::Part part_ = model::Part::end;  // end: no step is under way
  std::uint64_t begin_ = 0;
  PartTime loops_;  // of the part at hand
  std::vector<PartTime> step_;
  std::vector<std::vector<PartTime>> steps_;  // [step][(layer, part)]
};

}  // namespace quern::bench
