// Lists and ranges of numbers as they are typed: "512", "4k" (times 1,024), "1,8,64", "1-4", "0-4096+1024", "1-8*2",
// and options given several times. Every value and the number of values are bounded before anything is made of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern::bench {

struct SweepBounds {
  std::size_t low = 0, high = 0;
};
inline constexpr std::size_t kMaxSweepValues = 1000;  // of one option

// All values in the order typed, repeated ones too. Usage errors name `option`, what was got and expected.
std::vector<std::size_t> parse_sweep(std::string_view option, const std::vector<std::string>& words,
                                     const SweepBounds& bounds);

// "PP,TG" each: a prompt and then an answer as one test.
std::vector<std::pair<std::size_t, std::size_t>> parse_pairs(std::string_view option,
                                                             const std::vector<std::string>& words,
                                                             const SweepBounds& bounds);

}  // namespace quern::bench
