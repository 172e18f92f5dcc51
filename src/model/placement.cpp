#include "model/placement.hpp"

#include "base/error.hpp"
#include "base/round_up.hpp"
#include "base/strings.hpp"

namespace quern::model {

using base::cat;

namespace {

void check_ids(const Embedding& embedding, const Slice& slice) {
  for (const std::int32_t id : slice.ids)
    if (id < 0 || static_cast<std::size_t>(id) >= embedding.tokens->rows)
      base::reject("prompt", "token id out of range", cat(id),
                   cat("0 to ", embedding.tokens->rows - 1));
  const std::size_t n_types = embedding.token_types == nullptr ? 1 : embedding.token_types->rows;
  for (const std::int32_t type : slice.token_types)
    if (type < 0 || static_cast<std::size_t>(type) >= n_types)
      base::reject("prompt", "token type out of range", cat(type), cat("0 to ", n_types - 1));
  if (!slice.token_types.empty() && slice.token_types.size() != slice.ids.size())
    base::reject("prompt", "one token type per token", cat(slice.token_types.size()),
                 cat(slice.ids.size()));
}

void check_positions(const Embedding& embedding, std::size_t end) {
  if (embedding.positions == nullptr) return;
  const std::size_t n_positions = embedding.positions->rows - embedding.position_offset;
  if (end > n_positions)
    base::reject("prompt", "more tokens than the model has positions", cat(end),
                 cat("at most ", n_positions));
}

// Positions below prefix_length see each other, so they come together.
void check_prefix(const Slice& slice, std::size_t first) {
  if (first < slice.prefix_length && (first > 0 || slice.ids.size() < slice.prefix_length))
    base::reject("prompt", "a prefix must be computed in one step",
                 cat(slice.ids.size(), " tokens"), cat(slice.prefix_length, " tokens"));
}

}  // namespace

void check_slice(const Stack& stack, const Slice& slice, std::size_t first) {
  check_ids(stack.embedding, slice);
  check_positions(stack.embedding, first + slice.ids.size());
  check_prefix(slice, first);
}

Placement::Placement(std::size_t max_chunk) : max_chunk_(max_chunk) {
  tokens.reserve(max_chunk);
  runs.reserve(max_chunk);
  wanted.reserve(max_chunk);
  ranges.reserve(max_chunk);
  wanted_tokens_.reserve(max_chunk);
  wanted_runs_.reserve(max_chunk);
}

void Placement::clear() {
  tokens.clear();
  runs.clear();
  wanted.clear();
  ranges.clear();
  wanted_tokens_.clear();
  wanted_runs_.clear();
  n_rows = 0;
}

void Placement::gather_wanted() {
  for (const std::size_t row : wanted) wanted_tokens_.push_back(tokens[row]);
}

void Placement::add(const Model& model, const Embedding& embedding, const Slice& slice,
                    const Run& run) {
  QUERN_ASSERT(tokens.size() + slice.ids.size() <= max_chunk_);
  const std::size_t first_wanted = wanted.size(), n = slice.ids.size();
  // What is pooled needs every position of its sequence.
  const bool all = slice.want == Want::all || (slice.want != Want::none && model.head.pool);
  std::size_t n_pads = 0;  // so far; only encoders count them, which take whole sequences
  for (std::size_t i = 0; i < n; ++i) {
    if (all || (slice.want == Want::last && i + 1 == n)) wanted.push_back(tokens.size());
    const std::size_t position = run.first_position + i;
    const bool pad = embedding.position_pad == static_cast<std::size_t>(slice.ids[i]);
    n_pads += std::size_t{pad};
    const std::size_t row =
        pad ? embedding.position_offset - 1 : position + embedding.position_offset - n_pads;
    tokens.push_back({slice.ids[i], slice.token_types.empty() ? 0 : slice.token_types[i],
                      static_cast<std::uint32_t>(run.sequence),
                      static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(row),
                      run.cache_sequence, run.first_row + position});
  }
  runs.push_back(run);
  if (wanted.size() == first_wanted) return;
  const HiddenRange range{first_wanted, wanted.size() - first_wanted};
  ranges.push_back(range);
  Run part = run;  // its last tokens: one, or all
  part.first_token = range.first;
  part.first_position += run.n_tokens - range.n;
  part.n_tokens = range.n;
  wanted_runs_.push_back(part);
}

void Placement::place(const Model& model, std::span<const Slice> slices, const KvCache& cache,
                      const KvCache* source) {
  clear();
  const Stack& stack = *model.decoder;
  for (const Slice& slice : slices) {
    const std::size_t first = cache.length(slice.sequence);
    check_slice(stack, slice, first);
    if (slice.ids.empty()) continue;
    Run run{slice.sequence,
            tokens.size(),
            slice.ids.size(),
            first,
            slice.sequence,
            0,
            slice.prefix_length,
            0,
            0,
            slice.total_length};
    if (source != nullptr) {
      run.source = slice.source.value_or(slice.sequence);
      run.source_length = source->length(run.source);
      if (run.source_length == 0)
        base::reject("prompt", "the decoder has no encoder input to read");
    }
    add(model, stack.embedding, slice, run);
  }
}

void Placement::place_whole(const Model& model, std::span<const Slice> slices) {
  clear();
  for (const Slice& slice : slices) {
    check_ids(model.encoder->embedding, slice);
    check_positions(model.encoder->embedding, slice.ids.size());
    if (slice.ids.empty()) continue;
    const std::size_t n = slice.ids.size();
    add(model, model.encoder->embedding, slice,
        {slice.sequence, tokens.size(), n, 0, 0, n_rows, 0, 0, 0, slice.total_length});
    n_rows += base::round_up(n, kernels::kBlockTokens);
  }
}

}  // namespace quern::model
