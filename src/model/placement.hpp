// The slices of one forward() or encode() as tokens with places: position, cache row, what is asked
// of them. Checks the input before anything is written; allocates once.
#pragma once

#include <span>
#include <vector>

#include "model/forward.hpp"
#include "model/step.hpp"

namespace quern::model {

// Hidden rows [first, first + n) belong to one slice.
struct HiddenRange {
  std::size_t first, n;
};

struct Placement {
  explicit Placement(std::size_t max_chunk);

  // New tokens of a decoder behind what `cache` holds; `source`: the encoder's side, or null.
  void place(const Model& model, std::span<const Slice> slices, const KvCache& cache,
             const KvCache* source);
  // Whole sequences of an encoder, each in cache blocks of its own.
  void place_whole(const Model& model, std::span<const Slice> slices);
  // The tokens that outputs are asked of, as a step of their own: made when the tokens are complete, seen until the next
  // place.
  void gather_wanted();
  Wanted wanted_part() const { return {wanted, wanted_tokens_, wanted_runs_}; }

  std::vector<TokenPlace> tokens;
  std::vector<Run> runs;
  std::vector<std::size_t> wanted;  // tokens whose hidden state is asked for
  std::vector<HiddenRange> ranges;  // of the slices that ask for any
  std::size_t n_rows = 0;           // place_whole: cache rows in use

 private:
  void clear();
  void add(const Model& model, const Embedding& embedding, const Slice& slice, const Run& run);

  std::size_t max_chunk_;
  std::vector<TokenPlace> wanted_tokens_;
  std::vector<Run> wanted_runs_;
};

}  // namespace quern::model
