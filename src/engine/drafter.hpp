// Guesses of the next tokens for speculative decoding: the model checks several guesses in one step and keeps
// those it would have chosen itself, so the answer is that of plain decoding, token for token. Not here: the
// checking (Session::generate).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/forward.hpp"

namespace quern::engine {

class Drafter {
 public:
  virtual ~Drafter() = default;
  // At most `n` guesses of what follows `text` (prompt and answer so far), best effort, none for "no idea".
  // Texts of following calls usually go on from one another.
  virtual std::vector<std::int32_t> draft(std::span<const std::int32_t> text, std::size_t n) = 0;
  virtual std::string name() const = 0;  // for the timing table: "ngram", "draft model"
};

struct NgramOptions {
  std::size_t longest = 4, shortest = 2;  // tokens at the end of the text that are looked up
};
// Prompt lookup: what followed the last time the text's end occurred in it.
std::unique_ptr<Drafter> ngram_drafter(const NgramOptions& options);

// A smaller model with the same vocabulary, greedy. Input error where the vocabularies differ in size.
std::unique_ptr<Drafter> model_drafter(const model::Model& draft, const model::Model& target, base::ThreadPool& pool,
                                       const model::CacheOptions& cache, std::size_t prefill_chunk);

struct SpeculationOptions {
  Drafter* drafter = nullptr;  // not owned; null: plain decoding
  std::size_t max_draft = 8;   // --draft-max
  bool adaptive = true;        // measures what steps of each width cost and what they bring; off where it loses
};

struct SpeculationCounts {
  std::size_t steps = 0, drafted = 0, accepted = 0;
  double draft_seconds = 0;
  std::size_t plain_steps = 0;  // decoded one by one, because there was no guess or it would not pay
};

}  // namespace quern::engine
