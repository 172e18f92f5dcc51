#include "batch_progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/strings.hpp"
#include "terminal.hpp"

namespace quern::tool {

namespace {

constexpr std::chrono::milliseconds kBarInterval{200};

double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

// 75 -> "1:15", 3700 -> "1:01:40"
std::string duration(double value) {
  if (!std::isfinite(value) || value > 1e8) return "?";
  const auto whole = static_cast<unsigned long>(value + 0.5);
  std::array<char, 48> text{};
  if (whole >= 3600) std::snprintf(text.data(), text.size(), "%lu:%02lu:%02lu", whole / 3600, whole / 60 % 60, whole % 60);
  else std::snprintf(text.data(), text.size(), "%lu:%02lu", whole / 60, whole % 60);
  return text.data();
}

std::string one_digit(double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::size_t terminal_columns() {
  struct winsize size{};
  return ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

}  // namespace

BatchProgress::BatchProgress(std::size_t interval_seconds, bool quiet)
    : interval_(static_cast<std::chrono::seconds::rep>(interval_seconds)),
      bar_(!quiet && stderr_is_terminal()),
      lines_(!quiet && !bar_ && interval_seconds > 0),
      start_(Clock::now()),
      last_(start_) {}

void BatchProgress::begin() { start_ = last_ = Clock::now(); }

// "340 of 1,000 lines (2 failed), 16 running, 412.3 tokens/s, 1:40 left"
std::string BatchProgress::state(const BatchCounts& counts) const {
  const double elapsed = std::max(seconds(Clock::now() - start_), 1e-9);
  const std::size_t written = counts.done + counts.failed;
  const std::size_t here = written - counts.before;
  std::string text = base::cat(base::grouped(written), " of ", base::grouped(counts.total), " lines");
  if (counts.failed > 0) text += base::cat(" (", base::grouped(counts.failed), " failed)");
  if (counts.n_running > 0) text += base::cat(", ", counts.n_running, " running");
  text += base::cat(", ", one_digit(static_cast<double>(counts.answer_tokens + counts.embedded_tokens) / elapsed), " tokens/s");
  if (here > 0 && counts.remaining() > 0)
    text += base::cat(", ", duration(elapsed / static_cast<double>(here) * static_cast<double>(counts.remaining())), " left");
  return text;
}

void BatchProgress::update(const BatchCounts& counts) {
  const Clock::time_point now = Clock::now();
  if (bar_ && now - last_ >= kBarInterval) {
    last_ = now;
    const std::size_t width = 20;
    const std::size_t filled = counts.total == 0 ? width : (counts.done + counts.failed) * width / counts.total;
    std::string line = base::cat("[", std::string(filled, '#'), std::string(width - filled, '.'), "] ", state(counts));
    line.resize(std::min(line.size(), terminal_columns() - 1));
    std::cerr << "\r" << line << "\x1b[K" << std::flush;
    shown_ = true;
  } else if (lines_ && now - last_ >= interval_) {
    last_ = now;
    std::cerr << "quern: batch: " << state(counts) << "\n";
  }
}

void BatchProgress::clear_bar() {
  if (shown_) std::cerr << "\r\x1b[K";
  shown_ = false;
}

void BatchProgress::finish(const BatchCounts& counts) {
  clear_bar();
  const double elapsed = std::max(seconds(Clock::now() - start_), 1e-9);
  std::string text = base::cat("quern: batch: ", counts.done, " done, ", counts.failed, " failed, ", counts.remaining(),
                               " remaining of ", counts.total, " lines");
  if (counts.before > 0) text += base::cat(" (", counts.before, " from earlier runs)");
  if (counts.prompt_tokens + counts.reused_tokens > 0)
    text += base::cat("; ", base::grouped(counts.prompt_tokens), " prompt tokens computed, ",
                      base::grouped(counts.reused_tokens), " shared");
  if (counts.embedded_tokens > 0) text += base::cat("; ", base::grouped(counts.embedded_tokens), " tokens embedded");
  if (counts.answer_tokens > 0)
    text += base::cat("; ", base::grouped(counts.answer_tokens), " answer tokens, ",
                      one_digit(static_cast<double>(counts.answer_tokens) / elapsed), " tokens/s, at most ",
                      counts.most_running, " at once");
  std::cerr << text << "; " << one_digit(elapsed) << " s\n" << std::flush;
}

}  // namespace quern::tool
