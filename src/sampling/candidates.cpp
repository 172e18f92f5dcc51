#include "sampling/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "sampling/fast_exp.hpp"

namespace quern::sampling {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Logits looked at together: if none of a block can be wanted, one comparison is all it costs.
constexpr std::size_t kBlock = 64;

float largest_of(const float* values, std::size_t n) {
  if (n < kBlock) return *std::max_element(values, values + n);
  float lanes[16];  // independent, so that the compiler makes vectors of them
  for (std::size_t j = 0; j < 16; ++j) lanes[j] = values[j];
  for (std::size_t i = 16; i < kBlock; i += 16)
    for (std::size_t j = 0; j < 16; ++j)
      lanes[j] = values[i + j] > lanes[j] ? values[i + j] : lanes[j];
  for (std::size_t width = 8; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j)
      lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
  return lanes[0];
}

// visit(id, logit) of every logit >= *threshold, by id; visit may raise the threshold.
template <class Visit>
void visit_at_least(std::span<const float> row, const float* threshold, Visit visit) {
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, row.size() - begin);
    if (largest_of(&row[begin], n) < *threshold) continue;
    for (std::size_t i = begin; i < begin + n; ++i)
      if (row[i] >= *threshold) visit(static_cast<std::int32_t>(i), row[i]);
  }
}

// Four sums of a block; their order depends on the place alone.
void add_lanes(double (&sums)[4], const float (&block)[kBlock]) {
  for (std::size_t i = 0; i < kBlock; i += 4)
    for (std::size_t j = 0; j < 4; ++j) sums[j] += block[i + j];
}

// exp((logit - top) * scale) of the n logits of a block, 0 for those that are none and behind them.
void weigh(const float* logits, std::size_t n, float top, float scale, float (&block)[kBlock]) {
  for (std::size_t i = 0; i < n; ++i) block[i] = (logits[i] - top) * scale;
  for (std::size_t i = n; i < kBlock; ++i) block[i] = kLeastExponent;
  fast_exp_all(block);
  for (std::size_t i = 0; i < n; ++i) block[i] = logits[i] == kNever ? 0 : block[i];
  for (std::size_t i = n; i < kBlock; ++i) block[i] = 0;
}

}  // namespace

Candidates::Candidates(std::size_t vocab_size) : slots_(vocab_size, 0) {
  list_.reserve(vocab_size);
  top_.reserve(std::min(vocab_size, kMostTop));
  weights_.reserve(vocab_size);
  block_weights_.reserve(vocab_size / kBlock + 1);
}

bool Candidates::start(std::span<float> row) {
  row_ = row;
  gathered_ = sorted_ = best_known_ = false;
  temperature_ = 1;
  list_.clear();
  return std::any_of(row.begin(), row.end(), [](float logit) { return logit != kNever; });
}

void Candidates::gather() {
  if (gathered_) return;
  gathered_ = true;
  list_.resize(row_.size());
  std::size_t n = 0;
  for (std::size_t i = 0; i < row_.size(); ++i) {
    list_[n] = {row_[i], static_cast<std::int32_t>(i)};
    n += row_[i] != kNever ? 1 : 0;
  }
  list_.resize(n);
  QUERN_ASSERT(!list_.empty());
}

std::span<const Candidate> Candidates::list() {
  gather();
  return list_;
}

Candidate Candidates::best() {
  if (sorted_) return list_.front();
  if (best_known_) return best_;
  best_known_ = true;
  if (gathered_) return best_ = *std::min_element(list_.begin(), list_.end(), before);
  Candidate best{kNever, 0};
  float threshold = std::numeric_limits<float>::lowest();
  visit_at_least(row_, &threshold, [&](std::int32_t id, float logit) {
    if (logit <= best.logit) return;  // equal ones: the first is the lowest id
    best = {logit, id};
    threshold = logit;
  });
  return best_ = best;
}

void Candidates::sort() {
  gather();
  if (!sorted_) std::sort(list_.begin(), list_.end(), before);
  sorted_ = true;
}

// A heap whose front is the worst of the k kept so far; few of a row ever enter it.
std::span<const Candidate> Candidates::top(std::size_t k) {
  QUERN_ASSERT(k > 0 && k <= kMostTop);
  if (sorted_) return std::span<const Candidate>(list_).first(std::min(k, list_.size()));
  top_.clear();
  float threshold = std::numeric_limits<float>::lowest();
  const auto visit = [&](std::int32_t id, float logit) {
    const Candidate candidate{logit, id};
    if (top_.size() == k) {
      if (!before(candidate, top_.front())) return;
      std::pop_heap(top_.begin(), top_.end(), before);
      top_.pop_back();
    }
    top_.push_back(candidate);
    std::push_heap(top_.begin(), top_.end(), before);
    if (top_.size() == k) threshold = top_.front().logit;
  };
  if (gathered_) {
    for (const Candidate& c : list_)
      if (c.logit >= threshold) visit(c.id, c.logit);
  } else {
    visit_at_least(row_, &threshold, visit);
  }
  std::sort_heap(top_.begin(), top_.end(), before);
  return top_;
}

void Candidates::keep_best(std::size_t k) {
  k = std::max<std::size_t>(k, 1);
  if (!gathered_ && k <= kMostTop && k < row_.size()) {
    top(k);
    list_.assign(top_.begin(), top_.end());
    gathered_ = sorted_ = true;
    return;
  }
  gather();
  if (!sorted_ && k < list_.size()) {
    std::nth_element(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(k), list_.end(),
                     before);
    list_.resize(k);
  }
  sort();
  list_.resize(std::min(k, list_.size()));
}

void Candidates::keep_at_least(double threshold) {
  if (gathered_) {
    keep_if([&](std::size_t i) { return double{list_[i].logit} >= threshold; });
    return;
  }
  // The float below it: no logit that is wanted can be smaller.
  const float low = std::max(std::nextafter(static_cast<float>(threshold), kNever),
                             std::numeric_limits<float>::lowest());
  gathered_ = true;
  visit_at_least(row_, &low, [&](std::int32_t id, float logit) {
    if (double{logit} >= threshold) list_.push_back({logit, id});
  });
}

Candidates::Weights Candidates::weights() {
  const double largest = best().logit;
  const std::span<const Candidate> all = list();
  weights_.resize(all.size());
  if (all.size() <= kFew) {
    double total = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      total += weights_[i] = std::exp((all[i].logit - largest) / temperature_);
    return {weights_, total};
  }
  // Four sums, in blocks that stay in the nearest cache; their order depends on the place alone.
  const float scale = weight_scale(), top = static_cast<float>(largest);
  double sums[4] = {};
  for (std::size_t begin = 0; begin < all.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, all.size() - begin);
    float block[kBlock];
    for (std::size_t i = 0; i < n; ++i) block[i] = (all[begin + i].logit - top) * scale;
    for (std::size_t i = n; i < kBlock; ++i) block[i] = kLeastExponent;
    fast_exp_all(block);
    for (std::size_t i = 0; i < n; ++i) weights_[begin + i] = block[i];
    for (std::size_t i = n; i < kBlock; ++i) block[i] = 0;
    add_lanes(sums, block);
  }
  return {weights_, (sums[0] + sums[1]) + (sums[2] + sums[3])};
}

// Bounded, so that it makes no NaN of the best logit's distance 0.
float Candidates::weight_scale() const {
  return static_cast<float>(std::min(1 / temperature_, 1e30));
}

double Candidates::total_weight() {
  if (!is_row()) return weights().total;
  const float scale = weight_scale(), top = best().logit;
  block_weights_.clear();
  double total = 0;
  for (std::size_t begin = 0; begin < row_.size(); begin += kBlock) {
    float block[kBlock];
    weigh(&row_[begin], std::min(kBlock, row_.size() - begin), top, scale, block);
    double sums[4] = {};
    add_lanes(sums, block);
    block_weights_.push_back((sums[0] + sums[1]) + (sums[2] + sums[3]));
    total += block_weights_.back();
  }
  return total;
}

std::int32_t Candidates::id_at(double share) {
  QUERN_ASSERT(is_row());
  double left = share * total_weight();
  const float scale = weight_scale(), top = best().logit;
  std::int32_t last = best().id;  // for a rounding error at the very end
  for (std::size_t i = 0; i < block_weights_.size(); ++i) {
    if (block_weights_[i] == 0) continue;
    if (left >= block_weights_[i]) {
      left -= block_weights_[i];
      continue;
    }
    float block[kBlock];
    const std::size_t begin = i * kBlock, n = std::min(kBlock, row_.size() - begin);
    weigh(&row_[begin], n, top, scale, block);
    for (std::size_t j = 0; j < n; ++j) {
      if (block[j] == 0) continue;
      last = static_cast<std::int32_t>(begin + j);
      left -= block[j];
      if (left < 0) return last;
    }
  }
  return last;
}

void Candidates::keep_heavy(double weight, std::size_t least) {
  if (!is_row()) return;
  const float scale = weight_scale(), top = best().logit;
  constexpr double kMargin = 1 + 1e-5;  // for the error of single weights
  for (double nats = 6; nats < 60; nats *= 2) {
    const auto threshold = static_cast<float>(top - nats * temperature_);
    double sum = 0;
    std::size_t n = 0;
    visit_at_least(row_, &threshold, [&](std::int32_t, float logit) {
      sum += fast_exp((logit - top) * scale);
      ++n;
    });
    if (sum >= weight * kMargin && n >= least) return keep_at_least(threshold);
  }
}

void Candidates::leave_least_of_top(double threshold) {
  QUERN_ASSERT(is_row());
  const double least = threshold * total_weight(), top = best().logit;
  // A little below the logit that has this weight: the weights themselves decide.
  const auto low = static_cast<float>(top + temperature_ * (std::log(least) - 1e-3));
  std::vector<Candidate>& above = top_;
  above.clear();
  visit_at_least(row_, &low, [&](std::int32_t id, float logit) {
    if (above.size() < kMostTop && std::exp((logit - top) / temperature_) >= least) above.push_back({logit, id});
  });
  if (above.size() < 2) return;
  std::iter_swap(std::max_element(above.begin(), above.end(), before), above.end() - 1);
  above.pop_back();
  for (const Candidate& c : above) row_[static_cast<std::size_t>(c.id)] = kNever;
  best_known_ = false;
}

Candidates::Surprise Candidates::surprise() {
  const double top = best().logit;
  if (!is_row()) {
    const Weights weights = this->weights();
    Surprise out{list_.size(), weights.total, 0};
    for (std::size_t i = 0; i < list_.size(); ++i)
      out.weighted += weights.each[i] * ((list_[i].logit - top) / temperature_);
    return out;
  }
  const float scale = weight_scale();
  Surprise out{0, 0, 0};
  for (std::size_t begin = 0; begin < row_.size(); begin += kBlock) {
    float block[kBlock], logarithms[kBlock] = {};
    const std::size_t n = std::min(kBlock, row_.size() - begin);
    weigh(&row_[begin], n, static_cast<float>(top), scale, block);
    for (std::size_t i = 0; i < n; ++i) {
      const bool there = row_[begin + i] != kNever;
      out.n += there ? 1 : 0;
      logarithms[i] = there ? (row_[begin + i] - static_cast<float>(top)) * scale : 0;
    }
    double sums[4] = {}, weighted[4] = {};
    add_lanes(sums, block);
    for (std::size_t i = 0; i < kBlock; ++i) block[i] *= logarithms[i];
    add_lanes(weighted, block);
    out.total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    out.weighted += (weighted[0] + weighted[1]) + (weighted[2] + weighted[3]);
  }
  return out;
}

Candidates::Distances Candidates::distances() {
  const double best = this->best().logit;
  double sums[4] = {}, squares[4] = {}, counts[4] = {};
  const auto add = [&](std::size_t lane, float logit) {
    const double distance = logit == kNever ? 0 : logit - best;
    sums[lane] += distance;
    squares[lane] += distance * distance;
    counts[lane] += logit == kNever ? 0 : 1;
  };
  if (gathered_) {
    for (std::size_t i = 0; i < list_.size(); ++i) add(i % 4, list_[i].logit);
  } else {
    std::size_t i = 0;
    for (; i + 4 <= row_.size(); i += 4)
      for (std::size_t j = 0; j < 4; ++j) add(j, row_[i + j]);
    for (; i < row_.size(); ++i) add(i % 4, row_[i]);
  }
  const double n = (counts[0] + counts[1]) + (counts[2] + counts[3]);
  return {((sums[0] + sums[1]) + (sums[2] + sums[3])) / n,
          ((squares[0] + squares[1]) + (squares[2] + squares[3])) / n};
}

void Candidates::settle_temperature() {
  if (temperature_ == 1) return;
  gather();
  best_known_ = false;
  for (Candidate& c : list_) c.logit = bounded(c.logit / temperature_);
  temperature_ = 1;
}

}  // namespace quern::sampling
