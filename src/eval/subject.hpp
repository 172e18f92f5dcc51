// What is evaluated: a model with a type of cache, and the memory of one stream of work over it. Several subjects
// see the same tokens in one pass. Not here: what is made of the logits.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/thread_pool.hpp"
#include "model/forward.hpp"

namespace quern::eval {

struct SubjectOptions {
  std::string name;              // for reports
  model::CacheOptions cache;     // max_tokens: of the longest sequence
  std::size_t chunk = 512;       // most tokens of a step
  bool deterministic = false;
};

class Subject {
 public:
  // Input error for a model that has no decoder with a language head, or an encoder beside it.
  Subject(const model::Model& model, base::ThreadPool& pool, const SubjectOptions& options);

  void clear();
  // Appends to the sequence; false: stopped. logits() are those of the wanted positions.
  bool forward(std::span<const std::int32_t> ids, model::Want want);
  bool forward(std::span<const model::Slice> slices);
  // Sequence 0 becomes all sequences, whose blocks it shares.
  void share_first();
  const float* logits(std::size_t row) const { return runner_.logits(row); }
  std::size_t n_logits() const { return runner_.n_logits(); }
  std::size_t vocab_size() const { return runner_.n_outputs(); }
  std::size_t chunk() const { return chunk_; }
  const std::string& name() const { return name_; }
  const model::Model& model() const { return model_; }
  base::ThreadPool& pool() const { return pool_; }
  void set_stop(const std::function<bool()>& stop_requested) { runner_.set_stop(stop_requested); }

 private:
  std::string name_;
  const model::Model& model_;
  base::ThreadPool& pool_;
  std::size_t chunk_;
  model::KvCache cache_;
  model::Runner runner_;
};

}  // namespace quern::eval
