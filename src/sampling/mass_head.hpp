// The shortest head of an order that holds a given share of the probability, without sorting: the
// mass of each of 1024 ranges of keys is summed, and only the range where the share is reached is
// put in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sampling/candidates.hpp"

namespace quern::sampling {

class MassHead {
 public:
  struct Share {
    double share;          // of the total weight
    bool exceed;           // more than it, not just as much
    std::size_t min_keep;  // so many at least, 1 or more
  };

  explicit MassHead(std::size_t vocab_size) {
    range_.reserve(vocab_size);
    keys_.reserve(vocab_size);
  }

  // Leaves the first candidates by (key, before()) that hold the share. key(place) >= 0 tells how
  // late a candidate comes; what lies beyond 40 nats has no mass to speak of and is one range.
  template <class Key>
  void keep(Candidates& candidates, Candidates::Weights weights, const Share& share, Key key) {
    const std::span<const Candidate> list = candidates.list();
    const auto n = static_cast<std::uint32_t>(list.size());
    double last_key = 0;
    keys_.clear();
    for (std::uint32_t i = 0; i < n; ++i) {
      keys_.push_back(key(i));
      last_key = std::max(last_key, keys_.back());
    }
    const double scale = last_key > 0 ? kRanges / std::min(last_key, 40.0) : 0;
    const auto range_of = [&](std::uint32_t i) {
      return static_cast<std::size_t>(std::min(keys_[i] * scale, kRanges - 1.0));
    };
    masses_.fill(0);
    counts_.fill(0);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::size_t range = range_of(i);
      masses_[range] += weights.each[i];
      ++counts_[range];
    }
    Head head{share.share * weights.total, share, 0, 0};
    const std::size_t last = head.skip_ranges(masses_, counts_);
    range_.clear();
    for (std::uint32_t i = 0; i < n; ++i)
      if (range_of(i) == last) range_.push_back(i);
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
      const double ka = keys_[a], kb = keys_[b];
      return ka != kb ? ka < kb : before(list[a], list[b]);
    };
    std::sort(range_.begin(), range_.end(), earlier);
    std::size_t taken = 0;
    while (taken < range_.size() && !head.reached(0, 0)) head.add(weights.each[range_[taken++]], 1);
    const double end_key = taken > 0 ? keys_[range_[taken - 1]] : 0;
    const Candidate end = taken > 0 ? list[range_[taken - 1]] : Candidate{};
    // A place is asked for before anything is moved there, so key() and list are still right.
    candidates.keep_if([&](std::size_t place) {
      const auto i = static_cast<std::uint32_t>(place);
      const std::size_t range = range_of(i);
      if (range != last) return range < last;
      if (taken == 0) return false;
      const double k = keys_[i];
      return k != end_key ? k < end_key : !before(end, list[i]);
    });
  }

 private:
  static constexpr std::size_t kRanges = 1024;
  using Masses = std::array<double, kRanges>;
  using Counts = std::array<std::size_t, kRanges>;

  struct Head {
    double wanted;
    Share share;
    double mass;
    std::size_t n;

    bool reached(double more, std::size_t n_more) const {
      const double sum = mass + more;
      return n + n_more >= share.min_keep && (share.exceed ? sum > wanted : sum >= wanted);
    }
    void add(double more, std::size_t n_more) {
      mass += more;
      n += n_more;
    }
    // Adds whole ranges before the one where the share is reached, which it returns.
    std::size_t skip_ranges(const Masses& masses, const Counts& counts) {
      std::size_t range = 0;
      for (; range + 1 < kRanges && !reached(masses[range], counts[range]); ++range)
        add(masses[range], counts[range]);
      return range;
    }
  };

  Masses masses_;
  Counts counts_;
  std::vector<std::uint32_t> range_;
  std::vector<double> keys_;
};

}  // namespace quern::sampling
