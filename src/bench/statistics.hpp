// What repeated measurements say: median with an interval that assumes no distribution (order statistics),
// mean and deviation as llama-bench prints them, and the comparison of two programs pair by pair. Everything
// is a function of the samples alone: the same samples give the same figures.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quern::bench {

// [low, high] holds the median with probability `coverage` at least; with few samples that is less than what was
// asked for, and the interval is from the smallest to the largest.
struct Interval {
  double low = 0, high = 0, coverage = 0;
};

struct Summary {
  std::size_t n = 0;
  double mean = 0, deviation = 0, median = 0;  // deviation: of the samples, n - 1
  Interval interval;                           // of the median, 95 %
  // Half the interval's width over the median.
  double relative_error() const { return median > 0 ? (interval.high - interval.low) / 2 / median : 0; }
};

inline constexpr double kConfidence = 0.95;
Summary summarize(std::vector<double> samples, double confidence = kConfidence);

// Median of the first half and of the second half in the order measured: second over first. 1 below 6 samples.
double drift(std::span<const double> samples);

// ---- two programs, measured alternately --------------------------------------------------------------

// One pair: seconds of this program and of the other, measured next to each other.
struct Pair {
  double mine, other;
};

enum class Outcome { same, slower, faster, undecided };

struct PairedOptions {
  // Ratios inside [1 - effect, 1 + effect] are no difference: two launches of one binary differ by as much, as
  // memory and addresses fall differently.
  double effect = 0.025;
  double confidence = 0.99;  // the interval is looked at several times while pairs are added
  std::size_t min_pairs = 8;
};

struct PairedResult {
  std::size_t n = 0;
  double ratio = 1;      // median of mine / other: above 1 is slower
  Interval interval;     // of that median
  Outcome outcome = Outcome::undecided;
};

// slower or faster: the whole interval lies beyond the effect; same: the whole interval lies within it.
PairedResult compare_pairs(std::span<const Pair> pairs, const PairedOptions& options);

// Two runs at different times, by the intervals of their medians (speeds, larger is better); `scale` is what the
// base's machine must be multiplied by to be this one.
struct RunComparison {
  double ratio = 1, low = 1, high = 1;  // this / (base * scale)
  Outcome outcome = Outcome::same;
};
RunComparison compare_runs(const Summary& mine, const Summary& base, double scale, double effect);

}  // namespace quern::bench
