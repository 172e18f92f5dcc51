#include "bench_eval.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.hpp"
#include "engine/session.hpp"
#include "signals.hpp"
#include "text/tokenizer.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kWindow = 512;

double log_likelihood(std::span<const float> logits, std::size_t id) {
  double most = logits[0];
  for (const float x : logits) most = std::max<double>(most, x);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  return static_cast<double>(logits[id]) - most - std::log(sum);
}

}  // namespace

double bench_perplexity(const model::Model& model, base::ThreadPool& pool, const BenchEval& eval) {
  const contract::Contract& contract = model.contract;
  if (contract.kind != contract::ModelKind::decoder)
    base::reject(eval.where, "--eval needs a decoder that predicts the next token");
  if (contract.tokenizer.model == "none") base::reject(model.weights.where(), "--eval: the model has no tokenizer");
  const text::Tokenizer tokenizer(contract.tokenizer, model.weights.tokenizer_tables(), model.weights.where());
  std::vector<std::int32_t> ids = tokenizer.encode(eval.text);
  ids.resize(std::min(ids.size(), eval.max_tokens));
  if (ids.size() < 2) base::reject(eval.where, "the text has too few tokens", std::to_string(ids.size()), "at least 2");
  engine::SessionOptions options;
  options.cache.k_type = eval.k_type;
  options.cache.v_type = eval.v_type;
  options.cache.max_tokens = std::min(kWindow, contract.max_positions);
  engine::Session session(model, pool, options);
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t first = 0; first + 1 < ids.size() && !interrupted(); first += options.cache.max_tokens) {
    const auto window = std::span<const std::int32_t>(ids).subspan(first, std::min(options.cache.max_tokens, ids.size() - first));
    session.evaluate(window, [&](std::size_t position, const float* logits) {
      if (position + 1 >= window.size()) return;
      sum += log_likelihood({logits, contract.vocab_size}, static_cast<std::size_t>(window[position + 1]));
      ++n;
    });
  }
  return n == 0 ? 0 : std::exp(-sum / static_cast<double>(n));
}

}  // namespace quern::tool
