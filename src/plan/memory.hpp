// Memory of a run before it: weights, cache, scratch, the rest of the process, and what fits into a budget.
// Weights are mapped, so their pages can be dropped and read again; everything else must stay.
#pragma once

#include <cstdint>
#include <optional>

#include "model/memory_need.hpp"
#include "plan/shape_model.hpp"

namespace quern::plan {

// What one run is: a context that is filled by so many sequences at once.
struct RunOptions {
  std::size_t context = 0;          // tokens of one sequence; 0: the model's max_positions
  std::size_t sequences = 1;        // -np
  std::size_t beams = 1;            // of each prompt; above 1 with one sequence
  std::size_t new_tokens = 128;     // -n: with beams, what each of them has of its own
  std::size_t source_tokens = 0;    // encoder-decoder: of the source; 0: as long as the context
  std::size_t draft_tokens = 0;     // guesses checked at once: rows of logits
  model::RunShape shape;            // cache types, chunk, threads; the fields above are filled in
};

struct MemoryPlan {
  std::uint64_t weights_file = 0;      // mapped
  std::uint64_t weights_resident = 0;  // of it what the run reads
  model::MemoryNeed need;              // cache, scratch
  std::uint64_t draft = 0;             // weights, cache and scratch of the draft model
  std::uint64_t process = 0;           // program, libraries, tables, threads
  std::uint64_t peak() const { return weights_resident + need.total() + draft + process; }
  std::uint64_t anonymous() const { return peak() - weights_resident; }  // cannot be dropped (the draft's weights can)
};

// draft: nullptr for none.
MemoryPlan plan_memory(const ShapeModel& model, const ShapeModel* draft, const RunOptions& options);

// Pages of the weights that a run over n_tokens random tokens reads: rows of an untied embedding and of position
// tables, experts, everything else whole.
std::uint64_t resident_weights(const ShapeModel& model, std::uint64_t n_tokens);

// Estimated parts of a process that are no cache, scratch or weights (docs/PLAN.md).
std::uint64_t process_bytes(const ShapeModel& model, const RunOptions& options);

// Longest context (in tokens, at most `limit`), and most sequences (at most 4,096), whose peak is within `budget`;
// none where not even one fits.
std::optional<std::size_t> longest_context(const ShapeModel& model, const ShapeModel* draft, RunOptions options,
                                           std::uint64_t budget, std::size_t limit);
std::optional<std::size_t> most_sequences(const ShapeModel& model, const ShapeModel* draft, RunOptions options,
                                          std::uint64_t budget);

}  // namespace quern::plan
