// Decoding: one token a step, or guesses checked with it; sampling and the ends of an answer.
#include <algorithm>

#include "base/error.hpp"
#include "engine/session_state.hpp"

namespace quern::engine {

using Clock = std::chrono::steady_clock;

// Tokens that the text can grow to without being computed again.
std::size_t Session::State::room() const {
  return follow_length ? std::min(declared, max_tokens) : max_tokens;
}

// The steps of one answer behind its prompt: one token, or one and guesses of those that follow it. A guess that
// was right is a token whose keys, values and logits are there already; the others are taken back.
struct Session::State::DecodeSteps {
 public:
  DecodeSteps(Session::State& session, Speculator* speculator) : s_(session), speculator_(speculator) {
    if (speculator_ != nullptr) speculator_->restart();
    most_ = s_.max_draft;
    if (const model::Embedding& embedding = s_.model.decoder->embedding; embedding.positions != nullptr)
      n_positions_ = embedding.positions->rows - embedding.position_offset;
  }
  DecodeSteps(const DecodeSteps&) = delete;
  DecodeSteps& operator=(const DecodeSteps&) = delete;
  ~DecodeSteps() { end_step(); }

  // True when the step at hand guessed that the text goes on with `id`.
  bool guessed(std::int32_t id) {
    if (speculator_ != nullptr) speculator_->token(id);
    if (s_.row >= guesses_.size() || guesses_[s_.row] != id) return false;
    s_.tokens.push_back(id);
    ++s_.row;
    return true;
  }

  // Takes back what was guessed wrong, and notes what the step brought.
  void end_step() {
    if (width_ == 0) return;
    if (!guesses_.empty()) {
      const bool kept = s_.cache.truncate(kSessionSequence, s_.tokens.size());
      QUERN_ASSERT(kept);  // CacheOptions::rollback holds as many
    }
    const std::size_t n_tokens = s_.row + 1;
    s_.times.decode_tokens += n_tokens;
    s_.times.token_seconds.insert(s_.times.token_seconds.end(), n_tokens, seconds_ / static_cast<double>(n_tokens));
    s_.times.decode_seconds += seconds_;
    ++s_.times.decode_steps;
    if (speculator_ != nullptr) {
      speculator_->stepped(width_, s_.row, step_seconds_);
      s_.times.speculation = speculator_->counts();
    }
    guesses_.clear();
    width_ = 0;
  }

  // The text goes on with `id`; at most `n_more` tokens follow it.
  void step(std::int32_t id, std::size_t n_more) {
    const Clock::time_point start = Clock::now();
    s_.tokens.push_back(id);  // for the guesses; its keys and values follow
    if (speculator_ != nullptr) guess(n_more);
    s_.tokens.pop_back();
    const Clock::time_point step_start = Clock::now();
    ids_.assign(1, id);
    ids_.insert(ids_.end(), guesses_.begin(), guesses_.end());
    // One token keeps latent attention in its absorbed form, and so must several in its place.
    if (!guesses_.empty()) s_.runner.set_deterministic(true);
    s_.run(ids_, guesses_.empty() ? model::Want::last : model::Want::all);
    s_.runner.set_deterministic(s_.deterministic);
    s_.tokens.resize(s_.tokens.size() - guesses_.size());
    width_ = ids_.size();
    step_seconds_ = seconds_since(step_start);
    seconds_ = seconds_since(start);
  }

 private:
  void guess(std::size_t n_more) {
    const std::size_t held = s_.tokens.size();
    const std::size_t most = std::min({most_, n_more, s_.room() - held, n_positions_ - std::min(n_positions_, held)});
    const std::span<const std::int32_t> guesses = speculator_->guesses(s_.tokens, most);
    guesses_.assign(guesses.begin(), guesses.end());
  }

  Session::State& s_;
  Speculator* speculator_;
  std::size_t most_ = 0, n_positions_ = SIZE_MAX;
  std::vector<std::int32_t> guesses_, ids_;
  std::size_t width_ = 0;  // of the step at hand; 0: none
  double seconds_ = 0, step_seconds_ = 0;
};

FinishReason Session::State::decode(sampling::Sampler& sampler, const GenerateOptions& options,
                                    const std::function<bool(std::int32_t)>& on_token) {
  const auto stops = [&](std::int32_t id) {
    return !options.ignore_eos && std::find(options.stop_ids.begin(), options.stop_ids.end(), id) !=
                                      options.stop_ids.end();
  };
  std::optional<FinishReason> end;
  DecodeSteps steps(*this, options.speculator);
  for (std::size_t n = 0; n < options.max_new_tokens; ++n) {
    const Clock::time_point sampling = Clock::now();
    const std::int32_t id = sampler.sample({runner.logits(row), model.contract.vocab_size}, n);
    sampler.accept(id);
    times.sampling_seconds += seconds_since(sampling);
    if (stops(id)) return FinishReason::stop;
    if (!on_token(id)) return FinishReason::interrupted;
    if (n + 1 == options.max_new_tokens) break;
    if (steps.guessed(id)) continue;
    steps.end_step();
    if (tokens.size() < room())
      steps.step(id, options.max_new_tokens - n - 2);
    else if (!append(id, options, end))
      return *end;
  }
  return FinishReason::length;
}

}  // namespace quern::engine
