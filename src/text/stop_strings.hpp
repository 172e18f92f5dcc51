// Texts that end an answer, found in its text as it comes, however it is cut into pieces. What may
// still become one of them is held back, so that no part of a stop is ever shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quern::text {

class StopStrings {
 public:
  // Usage errors for an empty text, one that is not UTF-8, more than 10,000 of them or 1 MiB.
  explicit StopStrings(std::vector<std::string> stops);

  // The text that may be shown now. Once a stop is there, all of it that lies before the stop; then
  // nothing more. Of stops that are complete at the same place the longest counts.
  std::string push(std::string_view piece);
  // The answer ended otherwise: what was held back.
  std::string finish();
  // Which stop ended the answer, as an index into stops().
  std::optional<std::size_t> found() const { return found_; }
  const std::vector<std::string>& stops() const { return stops_; }

 private:
  void advance(char byte);

  std::vector<std::string> stops_;
  std::vector<std::vector<std::uint32_t>> shorter_;  // failure function of each
  std::vector<std::size_t> matched_;                 // bytes of each that end the text so far
  std::string held_;
  std::optional<std::size_t> found_;
};

}  // namespace quern::text
