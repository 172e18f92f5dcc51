#include "progress.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/strings.hpp"
#include "terminal.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kWidth = 30;
constexpr std::chrono::milliseconds kInterval{100};

std::string clock_text(double seconds) {
  const auto total = static_cast<unsigned>(std::clamp(seconds, 0.0, 359999.0));
  char text[32];
  std::snprintf(text, sizeof text, "%u:%02u", total / 60, total % 60);
  return text;
}

}  // namespace

ProgressBar::ProgressBar() : active_(stderr_is_terminal()), start_(Clock::now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (!active_ || total == 0 || (drawn_ && done < total && now - last_ < kInterval)) return;
  last_ = now;
  drawn_ = true;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const double spent = std::chrono::duration<double>(now - start_).count();
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kWidth));
  std::string bar(std::min(filled, kWidth), '=');
  bar.resize(kWidth, ' ');
  const double left = share > 0 ? spent / share - spent : 0;
  std::fprintf(stderr, "\r[%s] %3.0f %%  %s of %s  ETA %s\033[K", bar.c_str(), 100 * share,
               base::human_bytes(done).c_str(), base::human_bytes(total).c_str(),
               clock_text(left).c_str());
  std::fflush(stderr);
}

}  // namespace quern::tool
