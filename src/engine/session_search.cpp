#include <algorithm>

#include "base/error.hpp"
#include "engine/session_state.hpp"

namespace quern::engine {

using Clock = std::chrono::steady_clock;

namespace {

// The beams as sequences of the cache; all read the one encoded source. They share what they have
// in common.
class BeamDecoder : public BeamModel {
 public:
  BeamDecoder(model::Runner& runner, model::KvCache& cache, PhaseTimes& times)
      : runner_(runner), cache_(cache), times_(times) {}

  // Until the first advance() there is one sequence, the prompt.
  std::span<const float> logits(std::size_t beam) override {
    return {runner_.logits(started_ ? beam : 0), runner_.n_outputs()};
  }

  void advance(std::span<const std::size_t> parents, std::span<const std::int32_t> ids) override {
    const Clock::time_point start = Clock::now();
    parents_.assign(cache_.options().n_sequences, kSessionSequence);
    if (started_) std::copy(parents.begin(), parents.end(), parents_.begin());
    started_ = true;
    cache_.reorder(parents_);
    slices_.clear();
    for (std::size_t beam = 0; beam < ids.size(); ++beam) {
      model::Slice slice{beam, ids.subspan(beam, 1), model::Want::last};
      slice.source = kSessionSequence;
      slices_.push_back(slice);
    }
    runner_.forward(slices_);
    times_.token_seconds.push_back(seconds_since(start));
    times_.decode_seconds += times_.token_seconds.back();
    ++times_.decode_tokens;
    ++times_.decode_steps;
  }

 private:
  model::Runner& runner_;
  model::KvCache& cache_;
  PhaseTimes& times_;
  bool started_ = false;
  std::vector<std::size_t> parents_;
  std::vector<model::Slice> slices_;
};

}  // namespace

Session::SearchResult Session::search(std::span<const std::int32_t> ids, sampling::TokenRules& rules,
                                      const BeamOptions& options) {
  State& s = *state_;
  check_generates(s.model);
  s.check_length(ids.size());
  QUERN_ASSERT(options.n_beams <= s.cache.options().n_sequences);
  s.restart_times(s.max_tokens);
  for (std::size_t beam = 0; beam < s.cache.options().n_sequences; ++beam) s.cache.clear(beam);
  s.tokens.clear();
  s.follow(std::min(options.max_length, s.max_tokens), {});
  SearchResult result{{Hypothesis{}}, FinishReason::interrupted};
  GenerateOptions prompt;
  prompt.stop_requested = options.stop_requested;
  if (!s.prefill(ids, prompt)) return result;
  s.tokens.clear();  // the sequences are not the prompt's any more
  const Clock::time_point start = Clock::now();
  BeamDecoder decoder(s.runner, s.cache, s.times);
  BeamOptions bounded = options;  // the last token needs no place in the cache
  bounded.max_length = std::min(options.max_length, s.max_tokens + 1);
  result.hypotheses = beam_search(decoder, ids, rules, bounded);
  s.times.sampling_seconds = seconds_since(start) - s.times.decode_seconds;
  const Hypothesis& best = result.hypotheses.front();
  const bool ended = !best.ids.empty() && std::find(options.ends.begin(), options.ends.end(),
                                                    best.ids.back()) != options.ends.end();
  if (best.finished) result.reason = ended ? FinishReason::stop : FinishReason::length;
  return result;
}

}  // namespace quern::engine
