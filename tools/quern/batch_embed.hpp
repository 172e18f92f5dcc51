// Embedding requests of a batch: texts wait until there are enough of them for one packed step. The vectors are those
// of `quern embed`, whatever was packed together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "batch/request.hpp"
#include "batch_options.hpp"
#include "contract/contract.hpp"
#include "model_options.hpp"

namespace quern::tool {

class BatchEmbedder {
 public:
  BatchEmbedder(const LoadedModel& loaded, const ModelOptions& options);

  struct Text {
    std::vector<std::int32_t> ids, types;
  };
  // The texts of a request as ids. ItemError for what the model cannot read.
  std::vector<Text> prepare(const batch::Request& request) const;

  // on_done gets the vector, or why there is none.
  using OnDone = std::function<void(std::vector<float>, const std::string& error)>;
  void add(Text text, OnDone on_done);
  bool full() const { return n_tokens_ >= kMostTokens || waiting_.size() >= kMostTexts; }
  bool idle() const { return waiting_.empty(); }
  void run(const std::function<bool()>& stop_requested);  // all that waits
  void cancel() { waiting_.clear(); }
  std::size_t n_done_tokens() const { return n_done_tokens_; }

 private:
  static constexpr std::size_t kMostTokens = 8192, kMostTexts = 128;
  struct Waiting {
    Text text;
    OnDone on_done;
  };
  const LoadedModel& loaded_;
  std::size_t step_tokens_, longest_;
  contract::Pooling pooling_;
  std::vector<Waiting> waiting_;
  std::size_t n_tokens_ = 0, n_done_tokens_ = 0;
};

}  // namespace quern::tool
