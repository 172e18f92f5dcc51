#include "engine/shared_beginnings.hpp"

#include <algorithm>

namespace quern::engine {

namespace {

// A beginning shorter than this is computed sooner than waited for or kept.
constexpr std::size_t kLeastCommon = 16;

using Ids = std::span<const std::int32_t>;

std::size_t common_length(Ids a, Ids b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

void add_cut(Sequence& sequence, std::size_t at) {
  const auto place = std::lower_bound(sequence.cuts.begin(), sequence.cuts.end(), at);
  if (place == sequence.cuts.end() || *place != at) sequence.cuts.insert(place, at);
}

}  // namespace

SharedBeginnings::SharedBeginnings(model::KvCache& cache, std::size_t first_slot, std::size_t n_slots, bool on)
    : cache_(cache), on_(on), forgets_(cache.forgets()), kept_(on ? n_slots : 0), seen_(on && forgets_ ? n_slots : 0) {
  for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i].slot = first_slot + i;
}

void SharedBeginnings::settle(Running running) {
  if (!on_) return;
  for (const std::unique_ptr<Sequence>& s : running) {
    if (s->leader == nullptr || cache_.length(s->leader->slot) < s->common) continue;
    const std::size_t from = s->leader->slot;
    s->leader = nullptr;
    if (!take(*s, from, s->common)) look(*s, running, false);
  }
  for (const std::unique_ptr<Sequence>& s : running)
    if (!s->looked) look(*s, running, true);
}

// The last id is always computed: its logits are needed.
SharedBeginnings::Found SharedBeginnings::find(const Sequence& sequence, Running running) const {
  Found found;
  const Ids ids = Ids(sequence.text).first(sequence.text.size() - 1);
  const auto offer = [&](std::size_t slot, std::size_t common) {
    found.known = std::max(found.known, common);
    const std::size_t held = std::min(common, cache_.length(slot));
    if (held <= found.held || !cache_.reaches(slot, held)) return;
    found.slot = slot;
    found.held = held;
  };
  for (const Kept& kept : kept_)
    if (kept.tables == sequence.tables) offer(kept.slot, common_length(ids, kept.ids));
  for (const Seen& seen : seen_)
    if (seen.tables == sequence.tables) found.known = std::max(found.known, common_length(ids, seen.ids));
  for (const std::unique_ptr<Sequence>& other : running) {
    if (other.get() == &sequence) break;  // those after it look at this one
    if (other->tables != sequence.tables || other->done) continue;
    const std::size_t common = common_length(ids, other->text);
    offer(other->slot, common);
    if (common <= found.common || common <= cache_.length(other->slot)) continue;
    found.leader = other.get();
    found.common = common;
  }
  return found;
}

void SharedBeginnings::look(Sequence& sequence, Running running, bool may_wait) {
  sequence.looked = true;
  if (sequence.text.size() <= kLeastCommon || cache_.length(sequence.slot) != 0) return;
  const Found found = find(sequence, running);
  if (may_wait && found.leader != nullptr && found.common >= found.held + kLeastCommon) {
    sequence.leader = found.leader;
    sequence.common = found.common;
    if (forgets_) add_cut(*found.leader, found.common);
    return;
  }
  if (found.held >= kLeastCommon) take(sequence, found.slot, found.held);
  if (forgets_ && found.known >= found.held + kLeastCommon) add_cut(sequence, found.known);
}

bool SharedBeginnings::take(Sequence& sequence, std::size_t from, std::size_t n) {
  if (!cache_.share(from, sequence.slot, n)) return false;
  if (!sequence.started) sequence.outcome.reused_tokens = n;
  for (Kept& kept : kept_)
    if (kept.slot == from) kept.used = ++clock_;
  return true;
}

std::size_t SharedBeginnings::chunk_of(const Sequence& sequence, std::size_t n) const {
  if (sequence.leader != nullptr) return 0;
  const std::size_t held = cache_.length(sequence.slot);
  const auto next = std::upper_bound(sequence.cuts.begin(), sequence.cuts.end(), held);
  return next == sequence.cuts.end() ? n : std::min(n, *next - held);
}

void SharedBeginnings::keep_at_cut(const Sequence& sequence) {
  const std::size_t held = cache_.length(sequence.slot);
  if (std::binary_search(sequence.cuts.begin(), sequence.cuts.end(), held)) keep(sequence, held);
}

void SharedBeginnings::leave(Sequence& sequence, Running running) {
  if (!on_) return;
  const std::size_t held = cache_.length(sequence.slot);
  for (const std::unique_ptr<Sequence>& other : running) {
    if (other->leader != &sequence) continue;
    other->leader = nullptr;
    other->looked = held >= other->common && take(*other, sequence.slot, other->common);
  }
  const std::size_t n = std::min(held, sequence.n_prompt);
  if (!forgets_ && n >= kLeastCommon) keep(sequence, n);
  if (seen_.empty()) return;
  sequence.text.resize(sequence.n_prompt);
  seen_[next_seen_++ % seen_.size()] = {std::move(sequence.text), sequence.tables};
}

void SharedBeginnings::keep(const Sequence& sequence, std::size_t n) {
  if (kept_.empty()) return;
  const Ids ids = Ids(sequence.text).first(n);
  for (Kept& kept : kept_) {
    if (kept.tables != sequence.tables || common_length(kept.ids, ids) < n || !cache_.reaches(kept.slot, n)) continue;
    kept.used = ++clock_;
    return;
  }
  Kept& place = place_for(ids, sequence.tables);
  cache_.clear(place.slot);
  place.ids.clear();
  if (!cache_.share(sequence.slot, place.slot, n)) return;
  place.ids.assign(ids.begin(), ids.end());
  place.tables = sequence.tables;
  place.used = ++clock_;
}

// Where most of what is kept is the beginning of `ids` too, these stand for it, so that the places hold different
// beginnings; but not where layers forget, which can share only what ends where it was kept.
SharedBeginnings::Kept& SharedBeginnings::place_for(Ids ids, std::uint64_t tables) {
  if (!forgets_)
    for (Kept& kept : kept_)
      if (!kept.ids.empty() && kept.tables == tables && 2 * common_length(kept.ids, ids) >= kept.ids.size()) return kept;
  const auto older = [](const Kept& a, const Kept& b) { return a.used < b.used; };
  return *std::min_element(kept_.begin(), kept_.end(), older);
}

bool SharedBeginnings::drop_oldest() {
  Kept* oldest = nullptr;
  for (Kept& kept : kept_)
    if (!kept.ids.empty() && (oldest == nullptr || kept.used < oldest->used)) oldest = &kept;
  if (oldest == nullptr) return false;
  cache_.clear(oldest->slot);
  oldest->ids.clear();
  oldest->used = 0;
  return true;
}

}  // namespace quern::engine
