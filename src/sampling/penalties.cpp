// Tokens of the last n become less likely: divided by (or, below zero, multiplied with) the repeat
// penalty, then less the frequency penalty for each occurrence and the presence penalty once.
#include "sampling/filter.hpp"

namespace quern::sampling {

namespace {

class Penalties : public Filter {
 public:
  Penalties(const SamplerOptions& o, std::size_t vocab_size)
      : repeat_(o.repeat_penalty),
        presence_(o.presence_penalty),
        frequency_(o.frequency_penalty),
        last_n_(o.repeat_last_n),
        count_of_(vocab_size, 0) {
    distinct_.reserve(vocab_size);
    counts_.reserve(vocab_size);
  }

  void apply(Candidates& candidates, Step& step) override {
    const std::size_t length = step.sequence.size();
    const std::size_t n = last_n_ < 0 ? length : std::min(length, static_cast<std::size_t>(last_n_));
    distinct_.clear();
    for (const std::int32_t id : step.sequence.last(n))
      if (count_of_[static_cast<std::size_t>(id)]++ == 0) distinct_.push_back(id);
    counts_.clear();
    for (const std::int32_t id : distinct_) {
      counts_.push_back(count_of_[static_cast<std::size_t>(id)]);
      count_of_[static_cast<std::size_t>(id)] = 0;
    }
    candidates.change(distinct_, [&](float logit, std::size_t i) {
      const double repeated = logit <= 0 ? logit * repeat_ : logit / repeat_;
      return repeated - (counts_[i] * frequency_ + presence_);
    });
  }
  bool keeps_best() const override { return false; }

 private:
  double repeat_, presence_, frequency_;
  std::int64_t last_n_;
  std::vector<std::uint32_t> count_of_;  // by id; all zero between calls
  std::vector<std::int32_t> distinct_;
  std::vector<std::uint32_t> counts_;    // of distinct_
};

}  // namespace

std::unique_ptr<Filter> make_penalties(const SamplerOptions& o, std::size_t vocab_size) {
  const bool none = o.repeat_penalty == 1 && o.presence_penalty == 0 && o.frequency_penalty == 0;
  if (none || o.repeat_last_n == 0) return nullptr;
  return std::make_unique<Penalties>(o, vocab_size);
}

}  // namespace quern::sampling
