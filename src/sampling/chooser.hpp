// The end of the chain: one of the candidates, by chance. Mirostat and adaptive-p steer by what was
// chosen before.
#pragma once

#include <cstdint>
#include <memory>

#include "sampling/candidates.hpp"
#include "sampling/options.hpp"
#include "sampling/random.hpp"

namespace quern::sampling {

// What a chooser remembers of the tokens so far.
struct ChooserState {
  double mu = 0;                              // mirostat: largest surprise, in bits
  double weighted_sum = 0, total_weight = 0;  // adaptive-p: of the probabilities chosen
};

class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual std::int32_t choose(Candidates& candidates, Random& random) = 0;
  virtual void accept(std::int32_t) {}  // what choose() gave became the next token, or another did

  ChooserState state;
};

std::unique_ptr<Chooser> make_chooser(const SamplerOptions& options, std::size_t vocab_size);

}  // namespace quern::sampling
