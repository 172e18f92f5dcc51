// What sequences have in common at their beginning is computed once: a new sequence starts from the blocks of
// one that runs or ended, or waits for one that is about to compute them. Works on the cache and on ids alone.
//
// Layers with a window forget, so that the end of a beginning can be shared only while a sequence stands there.
// In models that have some, chunks therefore end where a common beginning is known to end, and the cache is kept
// at that place; in others the prompts of ended sequences are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/sequence.hpp"
#include "model/kv_cache.hpp"

namespace quern::engine {

class SharedBeginnings {
 public:
  using Running = std::span<const std::unique_ptr<Sequence>>;  // in the order in which they began

  // Sequences [first_slot, first_slot + n_slots) of the cache hold what is kept. `on` false: nothing is shared.
  SharedBeginnings(model::KvCache& cache, std::size_t first_slot, std::size_t n_slots, bool on);

  // Before a step: new sequences look for a beginning, those that waited for one that is there take it.
  void settle(Running running);
  // How many of the next `n` tokens of the sequence are computed in one step; 0 while it waits for another.
  std::size_t chunk_of(const Sequence& sequence, std::size_t n) const;
  // After a step that computed tokens of the sequence.
  void keep_at_cut(const Sequence& sequence);
  // The sequence is about to leave the cache: who waits for it takes what is there or looks again.
  void leave(Sequence& sequence, Running running);
  // Gives up the kept beginning that was used longest ago; false: there is none.
  bool drop_oldest();

 private:
  struct Kept {
    std::size_t slot = 0;
    std::vector<std::int32_t> ids;  // empty: free
    std::uint64_t tables = 0, used = 0;
  };
  struct Seen {  // a prompt whose end the cache has forgotten: shows where a beginning ends
    std::vector<std::int32_t> ids;
    std::uint64_t tables = 0;
  };
  struct Found {
    std::size_t slot = 0, held = 0;                       // to be had now
    Sequence* leader = nullptr;                           // to be waited for
    std::size_t common = 0;
    std::size_t known = 0;                                // in common with somebody, held or not
  };

  Found find(const Sequence& sequence, Running running) const;
  void look(Sequence& sequence, Running running, bool may_wait);
  bool take(Sequence& sequence, std::size_t from, std::size_t n);
  void keep(const Sequence& sequence, std::size_t n);
  Kept& place_for(std::span<const std::int32_t> ids, std::uint64_t tables);

  model::KvCache& cache_;
  bool on_, forgets_;
  std::vector<Kept> kept_;
  std::vector<Seen> seen_;
  std::size_t next_seen_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace quern::engine
