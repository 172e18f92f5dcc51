// The inside of Scheduler, shared by scheduler*.cpp; nobody else includes it.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/shared_beginnings.hpp"

namespace quern::engine {

struct Scheduler::State {
  State(const model::Model& model, base::ThreadPool& pool, const SchedulerOptions& options);

  const model::Model& model;
  SchedulerOptions options;
  std::size_t chunk;        // most tokens of one step
  std::size_t encode_chunk; // of one encode()
  model::KvCache cache;
  model::Runner runner;
  SharedBeginnings beginnings;
  std::deque<std::unique_ptr<Sequence>> waiting;
  std::vector<std::unique_ptr<Sequence>> running;  // in the order in which they began
  std::vector<std::size_t> free_slots;
  std::vector<model::Slice> slices;  // of the step
  std::vector<Sequence*> stepped;    // whose slices they are
  bool blocked = false;              // somebody has no room in it
  Totals totals;

  std::size_t max_tokens() const { return cache.options().max_tokens; }
  std::size_t held(const Sequence& s) const { return cache.length(s.slot); }
  bool decodes(const Sequence& s) const { return s.started && s.text.size() == held(s) + 1; }

  void check(const SequenceRequest& request) const;
  void admit();
  void encode_sources();
  void plan();
  void plan_once();
  std::size_t plan_slice(Sequence& s, std::size_t n);
  bool may_begin(const Sequence& s);
  bool make_room(const Sequence& s, std::size_t n);
  bool relieve();
  void set_aside(Sequence& s);
  void after_step();
  void sample(Sequence& s, std::span<const float> logits);
  void finish(Sequence& s, FinishReason reason, std::string error = {});
  void retire();
};

}  // namespace quern::engine
