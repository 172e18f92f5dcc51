#include "plan/memory.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

namespace quern::plan {

namespace {

// The kernel maps the pages around a fault that the page cache holds, in windows of this size.
constexpr double kFaultAround = 64 * 1024;

// Part of a table that n random look-ups of `rows` touch: a row lies in a panel of 16.
double touched_share(const weights::TensorView& table, std::uint64_t n) {
  const auto bytes = static_cast<double>(table.bytes.size());
  const bool panels = table.format->column_step != 0 && table.rows > 0;
  const double rows = static_cast<double>(table.rows);
  const double row_bytes = panels ? bytes / rows * static_cast<double>(quant::kPanelRows) : bytes / std::max(rows, 1.0);
  const double share = std::min(1.0, (row_bytes + kFaultAround) / std::max(bytes, 1.0));
  return 1.0 - std::pow(1.0 - share, static_cast<double>(n));
}

// Position tables are read from the start.
double leading_share(const weights::TensorView& table, std::uint64_t n) {
  return std::min(1.0, static_cast<double>(n) / static_cast<double>(std::max<std::size_t>(table.rows, 1)));
}

// Expected part of a mixture's experts that n tokens use, if the router spreads them evenly.
double expert_share(const contract::Moe& spec, std::uint64_t n) {
  const double one = static_cast<double>(spec.top_k) / static_cast<double>(std::max<std::size_t>(spec.n_experts, 1));
  return 1.0 - std::pow(1.0 - std::min(one, 1.0), static_cast<double>(n));
}

// By view: the part of it that is read, where that is not all.
using Shares = std::unordered_map<const weights::TensorView*, double>;

void add_embedding(const model::Embedding& embedding, const model::Linear& head, std::uint64_t n, Shares& shares) {
  if (embedding.tokens != nullptr && embedding.tokens != head.weight)
    shares[embedding.tokens] = touched_share(*embedding.tokens, n);
  if (embedding.positions != nullptr) shares[embedding.positions] = leading_share(*embedding.positions, n);
}

Shares shares_of(const model::Model& model, std::uint64_t n) {
  Shares shares;
  for (const model::Stack* stack : model.stacks()) add_embedding(stack->embedding, model.head.logits, n, shares);
  model::for_branches(model, [&](const model::Branch& branch) {
    if (!branch.moe) return;
    const double share = expert_share(*branch.moe->spec, n);
    for (const model::Ffn& expert : branch.moe->experts)
      for (const model::Linear* linear : {&expert.gate, &expert.up, &expert.down}) shares[linear->weight] = share;
  });
  return shares;
}

// Most tokens that run through the model: they decide which rows are read.
std::uint64_t all_tokens(const RunOptions& options, std::size_t context) {
  return std::uint64_t{context} * options.sequences;
}

std::size_t context_of(const ShapeModel& model, const RunOptions& options) {
  return options.context != 0 ? options.context : model.model->contract.max_positions;
}

model::RunShape shape_of(const ShapeModel& model, const RunOptions& options) {
  model::RunShape shape = options.shape;
  shape.cache.max_tokens = context_of(model, options);
  shape.cache.n_sequences = std::max(options.sequences, options.beams);
  shape.beams = options.beams > 1;
  shape.own_tokens = std::min(options.new_tokens, shape.cache.max_tokens);
  if (model.model->encoder && model.model->decoder)
    shape.source_tokens = options.source_tokens != 0 ? options.source_tokens : shape.cache.max_tokens;
  shape.n_outputs = std::max<std::size_t>(shape.cache.n_sequences, options.draft_tokens + 1);
  return shape;
}

// Estimates for a release build (x86-64, glibc 2.36); docs/PLAN.md compares the totals with runs.
constexpr std::uint64_t kProgram = 8'600'000;       // pages of the program, its libraries and their data
constexpr std::uint64_t kPerThread = 40'000;        // stack and counters of a worker
constexpr std::uint64_t kPerTensor = 1'000;         // directory entry, names and bound matrix
constexpr std::uint64_t kPerContractByte = 9;       // the JSON document while it is read
constexpr std::uint64_t kPerVocabularyEntry = 14;   // candidates and bias of a sampler

// The largest number of sequences or tokens for which `fits`, by doubling and halving; fits(1) holds.
template <class F>
std::size_t largest(std::size_t limit, F&& fits) {
  std::size_t low = 1, high = 2;
  while (high <= limit && fits(high)) {
    low = high;
    high *= 2;
  }
  if (high > limit) {
    if (fits(limit)) return limit;
    high = limit;
  }
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::uint64_t resident_weights(const ShapeModel& model, std::uint64_t n_tokens) {
  const Shares shares = shares_of(*model.model, n_tokens);
  double unread = 0;
  for (const auto& [view, share] : shares)
    if (view != nullptr) unread += (1.0 - share) * static_cast<double>(view->bytes.size());
  return model.file_bytes - std::min(model.file_bytes, static_cast<std::uint64_t>(unread));
}

std::uint64_t process_bytes(const ShapeModel& model, const RunOptions& options) {
  return kProgram + kPerThread * options.shape.n_threads + kPerTensor * model.tensors.size() +
         kPerContractByte * model.contract_bytes + kPerVocabularyEntry * model.model->contract.vocab_size;
}

MemoryPlan plan_memory(const ShapeModel& model, const ShapeModel* draft, const RunOptions& options) {
  MemoryPlan plan;
  const model::RunShape shape = shape_of(model, options);
  plan.weights_file = model.file_bytes;
  plan.weights_resident = resident_weights(model, all_tokens(options, shape.cache.max_tokens));
  plan.need = model::memory_need(*model.model, shape);
  plan.process = process_bytes(model, options);
  if (draft == nullptr) return plan;
  RunOptions guesses = options;
  guesses.context = shape.cache.max_tokens;
  guesses.beams = 1;
  guesses.draft_tokens = 0;
  const MemoryPlan own = plan_memory(*draft, nullptr, guesses);
  plan.draft = own.peak() - std::min(own.peak(), kProgram + kPerThread * options.shape.n_threads);
  return plan;
}

std::optional<std::size_t> longest_context(const ShapeModel& model, const ShapeModel* draft, RunOptions options,
                                           std::uint64_t budget, std::size_t limit) {
  const auto fits = [&](std::size_t context) {
    options.context = context;
    return plan_memory(model, draft, options).peak() <= budget;
  };
  if (limit == 0 || !fits(1)) return std::nullopt;
  return largest(limit, fits);
}

std::optional<std::size_t> most_sequences(const ShapeModel& model, const ShapeModel* draft, RunOptions options,
                                          std::uint64_t budget) {
  constexpr std::size_t kMostSequences = 4096;
  options.beams = 1;
  const auto fits = [&](std::size_t sequences) {
    options.sequences = sequences;
    return plan_memory(model, draft, options).peak() <= budget;
  };
  if (!fits(1)) return std::nullopt;
  return largest(kMostSequences, fits);
}

}  // namespace quern::plan
