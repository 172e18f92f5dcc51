#include "batch_embed.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "batch/item_error.hpp"
#include "contract/tensors.hpp"
#include "engine/packed_batch.hpp"
#include "text_limit.hpp"
#include "text_vectors.hpp"

namespace quern::tool {

using batch::ItemError;

BatchEmbedder::BatchEmbedder(const LoadedModel& loaded, const ModelOptions& options)
    : loaded_(loaded),
      step_tokens_(options.prefill_chunk),
      pooling_(default_pooling(loaded.model->contract)) {
  longest_ = std::min(context_length(loaded, options), pooling_.max_tokens.value_or(SIZE_MAX));
}

std::vector<BatchEmbedder::Text> BatchEmbedder::prepare(const batch::Request& request) const {
  const contract::Contract& contract = loaded_.model->contract;
  if (contract.kind == contract::ModelKind::encoder_decoder)
    throw ItemError("unsupported_endpoint", "model", "an encoder-decoder has no text vectors");
  std::vector<Text> texts;
  for (const batch::Prompt& prompt : request.prompts) {
    Text text{prompt.ids, {}};
    for (const std::int32_t id : text.ids)
      if (static_cast<std::size_t>(id) >= contract.vocab_size)
        throw ItemError("invalid_request", "input", base::cat("token id ", id, " is not in 0 to ", contract.vocab_size - 1));
    if (text.ids.empty()) {
      if (prompt.text.size() > most_text_bytes(longest_))
        throw ItemError("context_length_exceeded", "input", base::cat("too long a text (", prompt.text.size(), " bytes)"));
      text::Encoding encoding = need_tokenizer(loaded_).encode_typed(prompt.text);
      text.ids = std::move(encoding.ids);
      if (contract.embedding.token_types > 0) text.types = std::move(encoding.types);
    }
    if (text.ids.empty()) throw ItemError("invalid_request", "input", "has no tokens");
    if (text.ids.size() > longest_)
      throw ItemError("context_length_exceeded", "input",
                      base::cat("has ", text.ids.size(), " tokens, at most ", longest_));
    texts.push_back(std::move(text));
  }
  return texts;
}

void BatchEmbedder::add(Text text, OnDone on_done) {
  n_tokens_ += text.ids.size();
  waiting_.push_back({std::move(text), std::move(on_done)});
}

void BatchEmbedder::run(const std::function<bool()>& stop_requested) {
  const std::vector<Waiting> batch = std::move(waiting_);
  waiting_.clear();
  n_tokens_ = 0;
  std::vector<engine::PackedSequence> sequences;
  for (const Waiting& one : batch) sequences.push_back({one.text.ids, one.text.types});
  const engine::PackOptions pack{step_tokens_, false, stop_requested};
  engine::run_packed(*loaded_.model, *loaded_.pool, sequences, pack, [&](const engine::PackedResult& result) {
    const Waiting& one = batch[result.index];
    std::vector<float> vector(contract::vector_width(loaded_.model->contract));
    result.runner.pool(pooling_.mode, result.first_hidden, one.text.ids.size(), vector.data());
    n_done_tokens_ += one.text.ids.size();
    if (!is_finite(vector)) return one.on_done({}, "the model's output is not finite");
    if (pooling_.normalize) normalize(vector);
    one.on_done(std::move(vector), "");
  });
}

}  // namespace quern::tool
