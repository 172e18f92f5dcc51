// A progress bar with the time left, on standard error, only when that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>

namespace quern::tool {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  bool active_ = false, drawn_ = false;
  Clock::time_point start_, last_;
};

}  // namespace quern::tool
