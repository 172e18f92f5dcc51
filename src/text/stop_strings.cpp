#include "text/stop_strings.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/stream_decoder.hpp"

namespace quern::text {

namespace {

constexpr std::size_t kMostStops = 10000, kMostBytes = std::size_t{1} << 20;

// Of Knuth, Morris and Pratt: for each length of a beginning the longest shorter one that ends it.
std::vector<std::uint32_t> failures(std::string_view text) {
  std::vector<std::uint32_t> shorter(text.size() + 1, 0);
  for (std::size_t n = 2; n <= text.size(); ++n) {
    std::uint32_t k = shorter[n - 1];
    while (k > 0 && text[k] != text[n - 1]) k = shorter[k];
    shorter[n] = text[k] == text[n - 1] ? k + 1 : 0;
  }
  return shorter;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops)
    : stops_(std::move(stops)), matched_(stops_.size(), 0) {
  std::size_t bytes = 0;
  for (const std::string& stop : stops_) {
    if (stop.empty()) base::usage_error("--stop", "a stop text is empty");
    if (!is_valid_utf8(stop))
      base::usage_error("--stop", base::cat("\"", base::printable(stop, 40), "\" is not UTF-8"));
    bytes += stop.size();
    if (stops_.size() > kMostStops || bytes > kMostBytes)
      base::usage_error("--stop", base::cat("more than ", kMostStops, " texts or ", kMostBytes, " bytes"));
    shorter_.push_back(failures(stop));
  }
}

void StopStrings::advance(char byte) {
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    std::size_t& n = matched_[i];
    while (n > 0 && stops_[i][n] != byte) n = shorter_[i][n];
    if (stops_[i][n] == byte) ++n;
    const bool complete = n == stops_[i].size();
    if (complete && (!found_ || stops_[i].size() > stops_[*found_].size())) found_ = i;
  }
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return {};
  for (const char byte : piece) {
    held_ += byte;
    advance(byte);
    if (!found_) continue;
    held_.resize(held_.size() - stops_[*found_].size());
    return std::move(held_);
  }
  std::size_t open = 0;
  for (const std::size_t n : matched_) open = std::max(open, n);
  std::string shown = held_.substr(0, held_.size() - open);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() {
  return found_ ? std::string() : std::move(held_);
}

}  // namespace quern::text
