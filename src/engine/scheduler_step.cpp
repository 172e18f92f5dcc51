// What a step computes, and what comes of it.
#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "engine/scheduler_state.hpp"

namespace quern::engine {

// ---- memory (SchedulerOptions::cache_bytes)

// A sequence begins when the cache has room for its text and for some growth of the others, or is empty.
bool Scheduler::State::may_begin(const Sequence& s) {
  if (options.cache_bytes == 0) return true;
  const std::uint64_t most = options.cache_bytes - options.cache_bytes / 16;
  while (cache.block_bytes() != 0 && cache.block_bytes() + cache.reserve_bytes(s.slot, s.text.size()) > most)
    if (!beginnings.drop_oldest()) {
      blocked = true;
      return false;
    }
  return true;
}

// Room for n more tokens: kept beginnings go first, then the sequences that began last, which begin anew later.
bool Scheduler::State::make_room(const Sequence& s, std::size_t n) {
  if (options.cache_bytes == 0) return true;
  while (cache.block_bytes() + cache.reserve_bytes(s.slot, n) > options.cache_bytes) {
    if (beginnings.drop_oldest()) continue;
    Sequence* last = nullptr;
    if (decodes(s))
      for (auto other = running.rbegin(); last == nullptr && other->get() != &s; ++other)
        if (held(**other) > 0 && std::find(stepped.begin(), stepped.end(), other->get()) == stepped.end())
          last = other->get();
    if (last == nullptr) return false;
    set_aside(*last);
  }
  return true;
}

// Nobody could go on: the one that began last gives way; one that is alone does not fit.
bool Scheduler::State::relieve() {
  Sequence* first = nullptr;
  for (const std::unique_ptr<Sequence>& s : running)
    if (!s->done && (first == nullptr || (held(*first) == 0 && held(*s) > 0))) first = s.get();
  if (first == nullptr) return false;
  for (auto s = running.rbegin(); s != running.rend(); ++s)
    if (s->get() != first && held(**s) > 0) {
      set_aside(**s);
      return true;
    }
  finish(*first, FinishReason::interrupted,
         base::cat("KV cache: ", first->text.size(), " tokens of one sequence need more than ",
                   base::human_bytes(options.cache_bytes)));
  return true;
}

// The sequence leaves the cache and is computed again, with the same bits, when there is room.
void Scheduler::State::set_aside(Sequence& s) {
  beginnings.set_aside(s, running);
  cache.clear(s.slot);
  ++totals.set_aside;
}

// As many sources as fit into one run of the encoder; the others wait for the next step.
void Scheduler::State::encode_sources() {
  slices.clear();
  stepped.clear();
  std::size_t left = encode_chunk;
  for (const std::unique_ptr<Sequence>& s : running) {
    if (s->encoded || s->done || s->request.source.size() > left) continue;
    left -= s->request.source.size();
    slices.push_back({s->slot, s->request.source, model::Want::none});
    slices.back().total_length = s->request.total_length;
    stepped.push_back(s.get());
  }
  if (slices.empty()) return;
  runner.encode(slices);
  for (Sequence* s : stepped) s->encoded = true;
}

// The next n tokens of the sequence into the step, with their place in the cache. Returns how many these are.
std::size_t Scheduler::State::plan_slice(Sequence& s, std::size_t n) {
  const std::size_t first = held(s);
  const bool last = first + n == s.text.size();
  model::Slice slice{s.slot, std::span(s.text).subspan(first, n), last ? model::Want::last : model::Want::none};
  slice.total_length = s.request.total_length;
  try {
    model::check_slice(*model.decoder, slice, first);
  } catch (const base::Error& error) {  // more tokens than the model has positions
    finish(s, FinishReason::interrupted, error.what());
    return 0;
  }
  if (!make_room(s, n)) {
    blocked = true;
    return 0;
  }
  cache.reserve(s.slot, n);
  slices.push_back(slice);
  stepped.push_back(&s);
  return n;
}

// First every sequence that decodes, then prompts in the order of their sequences: the first is done soonest.
void Scheduler::State::plan_once() {
  slices.clear();
  stepped.clear();
  blocked = false;
  std::size_t left = chunk;
  for (const std::unique_ptr<Sequence>& s : running)
    if (!s->done && decodes(*s)) left -= plan_slice(*s, 1);
  bool begins = true;  // none waits for the memory to begin: nobody passes it
  for (const std::unique_ptr<Sequence>& s : running) {
    if (left == 0) break;
    if (s->done || decodes(*s) || !s->encoded) continue;
    const std::size_t n = beginnings.chunk_of(*s, std::min(left, s->text.size() - held(*s)));
    if (n == 0) continue;
    if (held(*s) == 0) begins = begins && may_begin(*s);
    if (held(*s) == 0 && !begins) continue;
    left -= plan_slice(*s, n);
  }
}

void Scheduler::State::plan() {
  do plan_once();
  while (slices.empty() && blocked && relieve());
}

void Scheduler::State::after_step() {
  std::size_t row = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    Sequence& s = *stepped[i];
    if (s.started && slices[i].ids.size() == 1)
      ++totals.decode_tokens;
    else
      totals.prefill_tokens += slices[i].ids.size();
    beginnings.keep_at_cut(s);
    if (slices[i].want == model::Want::last) sample(s, {runner.logits(row++), model.contract.vocab_size});
  }
}

void Scheduler::State::sample(Sequence& s, std::span<const float> logits) {
  if (!s.started) s.first_token = Sequence::Clock::now();
  std::int32_t id = 0;
  try {
    if (!s.started) s.request.sampler->start(s.text);
    s.started = true;
    id = s.request.sampler->sample(logits, s.outcome.answer_tokens);
    s.request.sampler->accept(id);
  } catch (const base::Error& error) {
    return finish(s, FinishReason::interrupted, error.what());
  }
  const std::vector<std::int32_t>& stops = s.request.stop_ids;
  if (std::find(stops.begin(), stops.end(), id) != stops.end()) return finish(s, FinishReason::stop);
  s.text.push_back(id);
  ++s.outcome.answer_tokens;
  if (s.request.on_token && !s.request.on_token(id, logits)) return finish(s, FinishReason::stop);
  if (s.outcome.answer_tokens == s.request.max_new_tokens) finish(s, FinishReason::length);
}

}  // namespace quern::engine
