// Counter-based random numbers: draw i of seed s is a pure function of (s, i), with an explicit
// mapping to double, so a seed gives the same tokens with every compiler and library.
#pragma once

#include <cstdint>

namespace quern::sampling {

class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(mix(seed + kGolden)) {}

  // Uniform in [0, 1), 53 bits.
  double uniform() {
    const std::uint64_t bits = mix(seed_ + ++counter_ * kGolden);
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  std::uint64_t n_drawn() const { return counter_; }
  void skip_to(std::uint64_t n_drawn) { counter_ = n_drawn; }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

  // SplitMix64's finalizer (Steele, Lea and Flood, 2014).
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

}  // namespace quern::sampling
