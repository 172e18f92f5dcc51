#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "engine/drafter.hpp"
#include "engine/session.hpp"

namespace quern::engine {

namespace {

using Ids = std::span<const std::int32_t>;

constexpr std::size_t kRollback = 64;  // tokens of guesses that windowed layers take back

model::CacheOptions cache_options(const model::Model& target, model::CacheOptions cache) {
  if (cache.max_tokens == 0) cache.max_tokens = target.contract.max_positions;
  cache.n_sequences = 1;
  cache.rollback = std::max(cache.rollback, kRollback);
  return cache;
}

class ModelDrafter : public Drafter {
 public:
  ModelDrafter(const model::Model& draft, const model::CacheOptions& cache, base::ThreadPool& pool,
               std::size_t chunk)
      : model_(draft),
        chunk_(std::max<std::size_t>(chunk, 1)),
        most_(draft.decoder->embedding.positions == nullptr
                  ? cache.max_tokens
                  : std::min(cache.max_tokens, draft.decoder->embedding.positions->rows -
                                                   draft.decoder->embedding.position_offset)),
        cache_(draft, cache),
        runner_(draft, cache_, pool, chunk_, cache.max_tokens) {}

  Ids draft(Ids text, std::size_t n) override {
    guesses_.clear();
    if (text.size() + n > most_ || n == 0) return guesses_;
    keep_beginning(text);
    run(text.subspan(held_.size()));
    while (true) {
      const float* logits = runner_.logits(0);
      const std::int32_t id =
          static_cast<std::int32_t>(std::max_element(logits, logits + model_.contract.vocab_size) - logits);
      guesses_.push_back(id);
      if (guesses_.size() == n) return guesses_;
      run({&id, 1});
    }
  }
  bool cheap() const override { return false; }
  std::string name() const override { return "draft model"; }

 private:
  // The last token is computed again, for its logits.
  void keep_beginning(Ids text) {
    std::size_t common = 0;
    const std::size_t most = std::min(held_.size(), text.size() - 1);
    while (common < most && held_[common] == text[common]) ++common;
    if (!cache_.truncate(0, common)) {
      cache_.clear(0);
      common = 0;
    }
    held_.resize(common);
  }
  void run(Ids ids) {
    for (std::size_t done = 0; done < ids.size();) {
      const std::size_t n = std::min(chunk_, ids.size() - done);
      const model::Slice slice{0, ids.subspan(done, n), done + n == ids.size() ? model::Want::last : model::Want::none};
      runner_.forward({&slice, 1});
      done += n;
    }
    held_.insert(held_.end(), ids.begin(), ids.end());
  }

  const model::Model& model_;
  std::size_t chunk_, most_;
  model::KvCache cache_;
  model::Runner runner_;
  std::vector<std::int32_t> held_, guesses_;  // held_: by the cache
};

}  // namespace

std::unique_ptr<Drafter> model_drafter(const model::Model& draft, const model::Model& target, base::ThreadPool& pool,
                                       const model::CacheOptions& cache, std::size_t prefill_chunk) {
  check_generates(draft);
  if (draft.encoder) base::reject("draft model", "is no decoder");
  if (draft.contract.vocab_size != target.contract.vocab_size)
    base::reject("draft model", "has another vocabulary than the model", base::cat(draft.contract.vocab_size, " ids"),
                 base::cat(target.contract.vocab_size, " ids"));
  return std::make_unique<ModelDrafter>(draft, cache_options(target, cache), pool, prefill_chunk);
}

}  // namespace quern::engine
