// One sampler of the chain: from the candidates of a step, and the sequence so far, to fewer of
// them or other logits. What is off is not in the chain. Not here: the choice among what is left
// (chooser.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sampling/candidates.hpp"
#include "sampling/options.hpp"
#include "sampling/random.hpp"

namespace quern::sampling {

struct Step {
  std::span<const std::int32_t> sequence;  // all ids so far
  Random& random;
};

class Filter {
 public:
  virtual ~Filter() = default;
  virtual void apply(Candidates& candidates, Step& step) = 0;
  // The best candidate before apply() is the best after it.
  virtual bool keeps_best() const { return true; }
};

// Null when the options say that it is off.
std::unique_ptr<Filter> make_filter(SamplerKind kind, const SamplerOptions& options,
                                    std::size_t vocab_size);

// Each in its file; options that are off give null.
std::unique_ptr<Filter> make_penalties(const SamplerOptions& options, std::size_t vocab_size);
std::unique_ptr<Filter> make_dry(const SamplerOptions& options, std::size_t vocab_size);
std::unique_ptr<Filter> make_top_n_sigma(const SamplerOptions& options);
std::unique_ptr<Filter> make_top_k(const SamplerOptions& options);
std::unique_ptr<Filter> make_typical(const SamplerOptions& options, std::size_t vocab_size);
std::unique_ptr<Filter> make_top_p(const SamplerOptions& options, std::size_t vocab_size);
std::unique_ptr<Filter> make_min_p(const SamplerOptions& options);
std::unique_ptr<Filter> make_xtc(const SamplerOptions& options);
std::unique_ptr<Filter> make_temperature(const SamplerOptions& options);

}  // namespace quern::sampling
