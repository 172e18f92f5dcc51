#include "eval/subject.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace quern::eval {

namespace {

const model::Model& checked(const model::Model& model) {
  if (!model.decoder || model.encoder || model.contract.head.kind != contract::HeadKind::lm)
    base::reject(model.weights.where(), "has no probabilities of a next token to evaluate", {},
                 "a decoder with a language head, without an encoder");
  return model;
}

}  // namespace

Subject::Subject(const model::Model& model, base::ThreadPool& pool, const SubjectOptions& options)
    : name_(options.name),
      model_(checked(model)),
      pool_(pool),
      chunk_(std::max<std::size_t>(1, std::min(options.chunk, options.cache.max_tokens))),
      cache_(model, options.cache),
      runner_(model, cache_, pool, chunk_, options.cache.max_tokens) {
  runner_.set_deterministic(options.deterministic);
}

void Subject::clear() {
  for (std::size_t s = 0; s < cache_.options().n_sequences; ++s) cache_.clear(s);
}

bool Subject::forward(std::span<const std::int32_t> ids, model::Want want) {
  const model::Slice slice{0, ids, want};
  return runner_.forward({&slice, 1});
}

bool Subject::forward(std::span<const model::Slice> slices) {
  return runner_.forward(slices);
}

void Subject::share_first() {
  const std::vector<std::size_t> parents(cache_.options().n_sequences, 0);
  cache_.reorder(parents);
}

}  // namespace quern::eval
