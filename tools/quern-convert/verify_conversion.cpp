#include "verify_conversion.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "base/temporary.hpp"
#include "base/thread_pool.hpp"
#include "kernels/select.hpp"
#include "model/forward.hpp"
#include "quant/formats.hpp"
#include "text/tokenizer.hpp"

namespace quern::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPromptTokens = 32;
constexpr const char* kPrompt =
    "The capital of France is Paris. Water boils at 100 degrees Celsius at sea level, and in 1969 "
    "people first "
    "walked on the moon. def add(a, b): return a + b";
// Mean KL divergence from f32 that a sound file stays below, by the coarsest bits of its matrices: about
// four times what a 135M model shows (docs/FORMATS.md). A permuted or misplaced tensor is far beyond.
double divergence_bound(const model::Model& written) {
  double least_bits = 32;
  for (const weights::TensorView& tensor : written.weights.tensors())
    if (tensor.format->id != quant::FormatId::rows_f32)
      least_bits = std::min(least_bits, quant::bits_per_weight(*tensor.format, tensor.rows, tensor.columns));
  return least_bits >= 16 ? 0.005 : least_bits >= 8 ? 0.03 : least_bits >= 5 ? 0.3 : 0.8;
}

// Real text where the model has a tokenizer, else ids spread over the vocabulary.
std::vector<std::int32_t> prompt_of(const model::Model& model) {
  std::vector<std::int32_t> ids;
  if (model.contract.tokenizer.model != "none")
    ids = text::Tokenizer(model.contract.tokenizer, model.weights.tokenizer_tables(),
                          model.weights.where())
              .encode(kPrompt);
  const std::size_t length = std::min(kPromptTokens, model.contract.max_positions);
  for (std::size_t i = ids.size(); i < length; ++i)
    ids.push_back(static_cast<std::int32_t>((i * 7919 + 1) % model.contract.vocab_size));
  ids.resize(length);
  // The tokenizer of an encoder may know more words than the decoder.
  for (std::int32_t& id : ids) id %= static_cast<std::int32_t>(model.contract.vocab_size);
  return ids;
}

// Rows of one prefill with an f32 cache, so that only the weights differ: logits, or hidden states of a model
// without a head. Beside a decoder the encoder reads the same ids, where its vocabulary has them.
struct Rows {
  std::vector<float> values;
  std::size_t width;
};

Rows rows_of(const model::Model& model, const std::vector<std::int32_t>& ids,
             base::ThreadPool& pool) {
  model::CacheOptions options;
  options.k_type = options.v_type = kernels::CacheType::f32;
  options.max_tokens = ids.size();
  model::KvCache cache(model, options);
  model::Runner runner(model, cache, pool, ids.size(), ids.size());
  if (model.encoder && model.decoder) {
    std::vector<std::int32_t> source = ids;
    for (std::int32_t& id : source)
      id %= static_cast<std::int32_t>(model.encoder->embedding.tokens->rows);
    const model::Slice input{0, source, model::Want::none};
    runner.encode({&input, 1});
  }
  const model::Slice slice{0, ids, model::Want::all};
  runner.forward({&slice, 1});
  const bool logits = runner.n_logits() > 0;
  Rows rows{{}, logits ? runner.n_outputs() : model.contract.d_model};
  for (std::size_t row = 0; row < (logits ? runner.n_logits() : runner.n_hidden()); ++row) {
    const float* values = logits ? runner.logits(row) : runner.hidden(row);
    rows.values.insert(rows.values.end(), values, values + rows.width);
  }
  return rows;
}

struct Comparison {
  double max_difference = 0, deviation = 0, divergence = 0, worst_divergence = 0;
  std::size_t same_argmax = 0, positions = 0;
};

double log_sum_exp(const float* x, std::size_t n) {
  const double top = *std::max_element(x, x + n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(double{x[i]} - top);
  return top + std::log(sum);
}

void compare_position(const float* source, const float* written, std::size_t n, Comparison& total) {
  const double source_norm = log_sum_exp(source, n), written_norm = log_sum_exp(written, n);
  double divergence = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double p = double{source[i]} - source_norm, q = double{written[i]} - written_norm;
    divergence += std::exp(p) * (p - q);
    total.max_difference =
        std::max(total.max_difference, std::abs(double{source[i]} - double{written[i]}));
  }
  total.divergence += divergence;
  total.worst_divergence = std::max(total.worst_divergence, divergence);
  total.same_argmax += std::max_element(source, source + n) - source ==
                       std::max_element(written, written + n) - written;
  ++total.positions;
}

double deviation_of(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += double{value};
    squares += double{value} * double{value};
  }
  const double n = static_cast<double>(values.size());
  return std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
}

Comparison compare(const std::vector<float>& source, const std::vector<float>& written,
                   std::size_t vocab) {
  Comparison total;
  for (std::size_t at = 0; at < source.size(); at += vocab)
    compare_position(source.data() + at, written.data() + at, vocab, total);
  total.divergence /= static_cast<double>(total.positions);
  total.deviation = deviation_of(source);
  return total;
}

}  // namespace

bool verify_conversion(std::ostream& out, const fs::path& source, const fs::path& target,
                       const convert::ConvertOptions& options) {
  const base::Temporary temporary(target, base::Temporary::Kind::directory, 0700);
  convert::ConvertOptions float_options = options;
  float_options.type = "f32";
  float_options.tensor_types.clear();
  float_options.output_tensor_type.clear();
  float_options.token_embedding_type.clear();
  convert::convert(source, temporary.path() / "f32", float_options,
                   [](std::uint64_t, std::uint64_t) {});
  const kernels::Kernels& kernels = kernels::select_kernels();
  base::ThreadPool pool(options.n_threads);
  const auto written = model::Model::load(target, kernels);
  const auto reference = model::Model::load(temporary.path() / "f32", kernels);
  const std::vector<std::int32_t> ids = prompt_of(*reference);
  const Rows expected = rows_of(*reference, ids, pool);
  const Comparison result =
      compare(expected.values, rows_of(*written, ids, pool).values, expected.width);
  char line[256];
  std::snprintf(line, sizeof line,
                "verify: %zu tokens against the source in f32: max |difference| %.4g (%.2g x std), "
                "KL divergence %.3g "
                "(worst position %.3g), same argmax at %zu of %zu\n",
                ids.size(), result.max_difference, result.max_difference / result.deviation,
                result.divergence, result.worst_divergence, result.same_argmax, result.positions);
  out << line;
  const bool follows = result.divergence <= divergence_bound(*written);  // false for NaN
  if (!follows) out << "verify: FAILED: the written model does not follow its source\n";
  return follows;
}

}  // namespace quern::tool
