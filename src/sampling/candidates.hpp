// The tokens that may come next in one step, with their logits: what every sampler of the chain
// works on. They stay where they are, a row of all logits, until a sampler leaves only some of
// them, and unsorted until an order is asked for. Total order: larger logits first, equal ones by
// id. Nothing is allocated after construction. Not here: which tokens a sampler leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace quern::sampling {

struct Candidate {
  float logit;
  std::int32_t id;
};

inline bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

class Candidates {
 public:
  explicit Candidates(std::size_t vocab_size);

  // A step begins. All ids of `row` are candidates but those with -infinity; false when none is
  // left. The row is changed in place and must outlive the step.
  bool start(std::span<float> row);

  // The list, by id or best first; made from the row when it is asked for.
  std::span<const Candidate> list();
  std::size_t size() { return list().size(); }
  bool sorted() const { return sorted_; }
  Candidate best();
  static constexpr std::size_t kMostTop = 4096;
  // The best k, at most kMostTop, in order; the candidates stay as they are. Until the next call.
  std::span<const Candidate> top(std::size_t k);

  // A probability is exp(logit / temperature) over their sum; 1 at the start. Kept apart so that
  // the logits stay exact.
  double temperature() const { return temperature_; }
  void set_temperature(double temperature) { temperature_ = temperature; }
  // exp((logit - best) / temperature) of each in the order of list(), and their sum.
  struct Weights {
    std::span<const double> each;
    double total;
  };
  Weights weights();
  // The sum alone; what is still a row stays one, if it is a long one.
  double total_weight();
  // Whether this is still a long row: then id_at() is there instead of a list to draw from.
  bool is_row() const { return !gathered_ && row_.size() > kFew; }
  // The id where the weights of a row, summed up by id, first exceed `share` (below 1) of their total.
  std::int32_t id_at(double share);
  // Of a row: a list of so many of the best that they weigh `weight` and are `least` or more. A list stays.
  void keep_heavy(double weight, std::size_t least);
  // Of a row: takes away those with a probability of `threshold` (above 1 / kMostTop) or more, but for the
  // least of them.
  void leave_least_of_top(double threshold);
  // How many there are, the sum of the weights, and that of each times its logarithm.
  struct Surprise {
    std::size_t n;
    double total, weighted;
  };
  Surprise surprise();
  // Distances of the logits from the best: their means.
  struct Distances {
    double mean, mean_square;
  };
  Distances distances();

  void sort();
  void keep_best(std::size_t k);        // the best k of them, sorted
  void keep_at_least(double threshold);  // those with logits of at least `threshold`
  // Those whose place in list() keep(place) wants, in the same order.
  template <class Keep>
  void keep_if(Keep keep);

  // logit = change(logit, i) of ids[i], where that is a candidate; ids are distinct. Logits are
  // divided by the temperature first, which then is 1; what overflows becomes the largest float.
  template <class Change>
  void change(std::span<const std::int32_t> ids, Change change);
  // logit = change(place in list()) of all.
  template <class Change>
  void change_all(Change change);

 private:
  static constexpr std::size_t kFew = 4096;  // no more candidates than these are weighed by std::exp

  void gather();
  void settle_temperature();
  float weight_scale() const;
  static float bounded(double logit) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(logit, -kLargest, kLargest));
  }

  std::span<float> row_;
  bool gathered_ = false, sorted_ = false;
  double temperature_ = 1;
  bool best_known_ = false;
  Candidate best_{};
  std::vector<Candidate> list_;
  std::vector<Candidate> top_;
  std::vector<double> weights_;
  std::vector<double> block_weights_;  // of a row: a sum for each block
  std::vector<std::uint32_t> slots_;  // of change(): 1 + index in ids; all zero between calls
};

template <class Keep>
void Candidates::keep_if(Keep keep) {
  gather();
  best_known_ = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (keep(i)) list_[kept++] = list_[i];
  list_.resize(kept);
}

template <class Change>
void Candidates::change(std::span<const std::int32_t> ids, Change change) {
  settle_temperature();
  best_known_ = false;
  if (!gathered_) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<std::size_t>(ids[i]);
      if (id < row_.size() && row_[id] != -std::numeric_limits<float>::infinity())
        row_[id] = bounded(change(row_[id], i));
    }
    return;
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    slots_[static_cast<std::size_t>(ids[i])] = static_cast<std::uint32_t>(i + 1);
  for (Candidate& c : list_)
    if (const std::uint32_t slot = slots_[static_cast<std::size_t>(c.id)]; slot != 0)
      c.logit = bounded(change(c.logit, slot - 1));
  for (const std::int32_t id : ids) slots_[static_cast<std::size_t>(id)] = 0;
  sorted_ = false;
}

template <class Change>
void Candidates::change_all(Change change) {
  gather();
  for (std::size_t i = 0; i < list_.size(); ++i) list_[i].logit = bounded(change(i));
  temperature_ = 1;
  sorted_ = best_known_ = false;
}

}  // namespace quern::sampling
