// DRY ("don't repeat yourself"): a token that would make the end of the sequence one token more like
// an earlier stretch is penalized by multiplier * base ^ (length of the stretch - allowed length).
// Breakers bound how far back the end may reach.
#include <cmath>

#include "sampling/filter.hpp"

namespace quern::sampling {

namespace {

class Dry : public Filter {
 public:
  Dry(const SamplerOptions& o, std::size_t vocab_size)
      : multiplier_(o.dry_multiplier),
        base_(o.dry_base),
        allowed_(o.dry_allowed_length),
        last_n_(o.dry_penalty_last_n),
        breakers_(o.dry_breakers),
        repeat_of_(vocab_size, 0) {
    const auto by_head = [](const DryBreaker& a, const DryBreaker& b) { return a.head < b.head; };
    std::stable_sort(breakers_.begin(), breakers_.end(), by_head);
    // float's range: what a larger penalty would do, this one does.
    if (base_ > 1.000001) most_exponent_ = static_cast<std::size_t>(88.7228391 / std::log(base_));
    repeated_.reserve(vocab_size);
  }

  void apply(Candidates& candidates, Step& step) override {
    const std::size_t length = step.sequence.size();
    const std::size_t n = last_n_ < 0 ? length : std::min(length, static_cast<std::size_t>(last_n_));
    if (n <= allowed_) return;
    const std::span<const std::int32_t> window = step.sequence.last(n);
    const std::size_t limit = longest_end(window);
    if (limit < allowed_) return;
    find_repeats(window, limit);
    note_continuations(window);
    candidates.change(repeated_, [&](float logit, std::size_t i) {
      const auto id = repeated_[i];
      if (breaks_alone(id)) return double{logit};
      std::size_t exponent = repeat_of_[static_cast<std::size_t>(id)] - 1 - allowed_;
      if (most_exponent_ > 0) exponent = std::min(exponent, most_exponent_);
      return logit - multiplier_ * std::pow(base_, static_cast<double>(exponent));
    });
    for (const std::int32_t id : repeated_) repeat_of_[static_cast<std::size_t>(id)] = 0;
  }
  bool keeps_best() const override { return false; }

 private:
  std::span<const DryBreaker> breakers_of(std::int32_t head) const {
    const auto first = std::partition_point(breakers_.begin(), breakers_.end(),
                                            [&](const DryBreaker& b) { return b.head < head; });
    const auto end = std::partition_point(first, breakers_.end(),
                                          [&](const DryBreaker& b) { return b.head == head; });
    return {first, end};
  }
  bool breaks_alone(std::int32_t id) const {
    const auto of = breakers_of(id);
    return std::any_of(of.begin(), of.end(), [](const DryBreaker& b) { return b.tail.empty(); });
  }
  std::size_t longest_end(std::span<const std::int32_t> window) const;
  void find_repeats(std::span<const std::int32_t> window, std::size_t limit);
  void note_continuations(std::span<const std::int32_t> window);

  double multiplier_, base_;
  std::size_t allowed_, most_exponent_ = 0;
  std::int64_t last_n_;
  std::vector<DryBreaker> breakers_;      // by head
  std::vector<std::size_t> lengths_;      // find_repeats(): by distance from the end
  std::vector<std::size_t> repeat_of_;    // by id: 1 + the longest repeat it would continue, or 0
  std::vector<std::int32_t> repeated_;    // ids with one
};

// How many tokens at the end of the window follow the last breaker in it.
std::size_t Dry::longest_end(std::span<const std::int32_t> window) const {
  const std::size_t n = window.size();
  for (std::size_t back = 0; back < n; ++back) {
    const std::size_t head = n - 1 - back;
    bool found = false;
    std::size_t longest = 0;
    for (const DryBreaker& breaker : breakers_of(window[head])) {
      const std::size_t size = breaker.tail.size();
      if (size > back || (found && size <= longest)) continue;
      if (!std::equal(breaker.tail.begin(), breaker.tail.end(),
                      window.begin() + static_cast<std::ptrdiff_t>(head + 1)))
        continue;
      found = true;
      longest = size;
    }
    if (found) return back - longest;
  }
  return n;
}

// lengths_[k] = how many tokens that end k before the window's end are equal to those at its end, at
// most `limit`: the Z function of the window read backwards.
void Dry::find_repeats(std::span<const std::int32_t> window, std::size_t limit) {
  const std::size_t n = window.size();
  const auto back = [&](std::size_t i) { return window[n - 1 - i]; };
  lengths_.assign(n, 0);
  std::size_t left = 0, right = 0;  // the match that reaches farthest: [left, right)
  for (std::size_t k = 1; k < n; ++k) {
    std::size_t length = k < right ? std::min(lengths_[k - left], right - k) : 0;
    while (k + length < n && back(length) == back(k + length)) ++length;
    if (k + length > right) left = k, right = k + length;
    lengths_[k] = length;
  }
  for (std::size_t& length : lengths_) length = std::min(length, limit);
}

void Dry::note_continuations(std::span<const std::int32_t> window) {
  repeated_.clear();
  for (std::size_t k = 1; k < window.size(); ++k) {
    if (lengths_[k] < allowed_) continue;
    const std::int32_t next = window[window.size() - k];
    std::size_t& longest = repeat_of_[static_cast<std::size_t>(next)];
    if (longest == 0) repeated_.push_back(next);
    longest = std::max(longest, lengths_[k] + 1);
  }
}

}  // namespace

std::unique_ptr<Filter> make_dry(const SamplerOptions& o, std::size_t vocab_size) {
  if (o.dry_multiplier == 0 || o.dry_base < 1 || o.dry_penalty_last_n == 0) return nullptr;
  return std::make_unique<Dry>(o, vocab_size);
}

}  // namespace quern::sampling
