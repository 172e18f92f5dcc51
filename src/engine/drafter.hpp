// Guesses of the next tokens for speculative decoding. A wrong guess costs time, never an answer. Not here: how
// many guesses pay (speculator.hpp), and the checking (Session::generate).
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
  // At most `n` guesses of what follows `text` (prompt and answer so far, not empty), none for "no idea"; valid
  // until the next call. Texts of following calls usually go on from one another.
  virtual std::span<const std::int32_t> draft(std::span<const std::int32_t> text, std::size_t n) = 0;
  // Guesses cost next to nothing, so that they may be made only to see how good they are.
  virtual bool cheap() const = 0;
  virtual std::string name() const = 0;  // for the timing table: "ngram", "draft model"
};

struct NgramOptions {
  std::size_t longest = 4, shortest = 2;  // tokens at the end of the text that are looked up
};
// Prompt lookup: what followed the last time the text's end occurred in it.
std::unique_ptr<Drafter> ngram_drafter(const NgramOptions& options = {});

// A smaller model with the same vocabulary, greedy. Input error where the vocabularies differ in size or the
// model is no decoder. cache.max_tokens 0: the target's max_positions; a longer text gets no guesses.
std::unique_ptr<Drafter> model_drafter(const model::Model& draft, const model::Model& target, base::ThreadPool& pool,
                                       const model::CacheOptions& cache, std::size_t prefill_chunk);

}  // namespace quern::engine
