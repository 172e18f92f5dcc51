// What a batch says on standard error while it runs and when it ends: a bar on a terminal, a line now and then
// elsewhere, one line of summary in any case.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace quern::tool {

struct BatchCounts {
  std::size_t total = 0;
  std::size_t done = 0, failed = 0;        // lines that are written, of earlier runs too
  std::size_t before = 0;                  // of these, written by earlier runs
  std::size_t prompt_tokens = 0, reused_tokens = 0, answer_tokens = 0, embedded_tokens = 0;  // of this run
  std::size_t n_running = 0, most_running = 0;
  std::size_t remaining() const { return total - done - failed; }
};

class BatchProgress {
 public:
  // interval_seconds: between lines without a terminal, 0: none. quiet: nothing but the summary.
  BatchProgress(std::size_t interval_seconds, bool quiet);

  void begin();  // the clock starts
  void update(const BatchCounts& counts);
  // "quern: batch: 950 done, 50 failed, 0 remaining of 1,000 lines ...", after the bar is gone.
  void finish(const BatchCounts& counts);

 private:
  std::string state(const BatchCounts& counts) const;
  void clear_bar();

  using Clock = std::chrono::steady_clock;
  std::chrono::seconds interval_;
  bool bar_, lines_;
  bool shown_ = false;
  Clock::time_point start_, last_;
};

}  // namespace quern::tool
