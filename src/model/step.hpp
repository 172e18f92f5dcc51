// One forward() in flight: its tokens and the scratch memory that every part of the model writes
// to. Sized once for the longest chunk; nothing here is allocated while a forward runs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/forward.hpp"
#include "model/kv_cache.hpp"
#include "model/lazy_array.hpp"
#include "model/mla_scratch.hpp"
#include "model/model.hpp"
#include "model/moe_scratch.hpp"
#include "model/nsa_scratch.hpp"
#include "model/position.hpp"
#include "model/rows.hpp"

namespace quern::model {

// A new token: its place in its sequence, and in the cache.
struct TokenPlace {
  std::int32_t id, type;
  std::uint32_t sequence, position;  // type: row of the token type table
  std::uint32_t position_row;        // of the position table, where there is one
  std::size_t cache_sequence, cache_row;
  std::size_t total_length = 0;      // declared, of its sequence; at most what the cache can hold
};

// The tokens [first_token, first_token + n_tokens) of the step are consecutive in one sequence.
struct Run {
  std::size_t sequence, first_token, n_tokens, first_position;
  // Where its keys are: row first_row of cache_sequence holds position 0. A step without a cache of its
  // own (encoder) puts all its sequences into cache sequence 0, one after another.
  std::size_t cache_sequence, first_row;
  std::size_t prefix_length;         // positions below it see each other (mask kind prefix)
  std::size_t source, source_length; // cross-attention: sequence of the encoder's cache, its keys
  std::size_t total_length = 0;      // declared; 0: the Runner's
};

// The tokens of a step that outputs are asked of, as a step of their own: what is left of it once all keys are stored.
struct Wanted {
  std::span<const std::size_t> rows;   // their numbers in the whole step, ascending
  std::span<const TokenPlace> tokens;
  std::span<const Run> runs;
};

// What a thread of one attend_by_tile() knows from its item before; SIZE_MAX: there was none.
struct DecodeTurn {
  std::size_t next_item = SIZE_MAX;  // in line: its tile is asked for
  std::size_t prepared = SIZE_MAX;   // the pair whose queries lie in scratch
  bool in_order = false;             // it has taken every item of that pair so far
};

// Per-thread memory of the attention kernels, for the query blocks of one item.
struct AttentionScratch {
  LazyArray<float> q, max, sum, o, alibi, kernel;
  LazyArray<std::uint32_t> begin, end;
  LazyArray<float> bias_lines;       // relative bias by distance, [heads of a group, bias_stride]
  LazyArray<const float*> bias;      // a query's place in its line
  LazyArray<const std::uint32_t*> selected;  // bits of the keys a query sees
  std::size_t q_stride = 0, o_stride = 0, bias_stride = 0;
  DecodeTurn decode;
};

// Longest caches a step attends to, for the memory of decode over them.
struct CacheExtent {
  std::size_t n_sequences, max_tokens;
};

// What the steps of a run write of a Scratch made for as many tokens as they have.
struct ScratchUse {
  std::size_t n_outputs = 1;        // most rows of logits that one step is asked for
  std::size_t absorbed_tokens = 0;  // most tokens of a step whose latent attention is absorbed
  bool expanded = false;            // some step's is expanded
};

struct Scratch {
  Scratch(const Model& model, const CacheExtent& extent, std::size_t max_chunk,
          std::size_t n_threads);

  RowBuffer stream, next_stream;  // [tokens, d_model]: residual stream; next: of parallel blocks
  RowBuffer normed, branch_out;   // [tokens, d_model]: input and output of a branch
  RowBuffer q, k, v, attended;    // [tokens, heads * width]
  RowBuffer gate, up;             // [tokens, d_ff]
  RowBuffer embedded;             // [tokens, d_embed], where the embedding is projected
  RowBuffer hidden, logits;       // [wanted, d_model], [wanted, outputs]
  RowBuffer pooled, transformed;  // [wanted, d_model], [wanted, transform d_out]: on the way to logits
  RowBuffer vector;               // [2, widest layer]: a text's vector, where its pooling has layers
  RowBuffer encoded;              // [tokens, d_model]: the encoder's output
  std::vector<QuantizedInput> quantized;     // one per activation group of the model's formats
  std::vector<LazyArray<std::byte>> matmul;  // per thread
  std::vector<AttentionScratch> attention;   // per thread
  LazyArray<float> tile_states;             // of one decode step over a long cache
  LazyArray<std::size_t> tiles_together;     // how many the first of them stands for, per run and group of heads
  MlaScratch mla;
  IndexScratch index;
  NsaScratch nsa;
  MoeScratch moe;

  std::size_t bytes() const;
  std::size_t used_bytes(const Model& model, const ScratchUse& use) const;
};

struct Step {
  const Model& model;
  const Stack& stack;
  KvCache& cache;        // of the stack's own attention
  KvCache* cross;        // K and V of the encoder's output; null: no such attention
  base::ThreadPool& pool;
  Scratch& scratch;
  const PositionTables& positions;
  std::span<const TokenPlace> tokens;
  std::span<const Run> runs;
  Wanted wanted;
  const Tap* tap = nullptr;  // null: no tap
  const PartWatch* part_watch = nullptr;
  bool deterministic = false;  // the same bits for any chunks (latent attention stays absorbed)

  std::size_t n_tokens() const { return tokens.size(); }
  // The step goes on with the wanted tokens alone, the first rows of each of `rows` from now on. A tap is shown all.
  bool drops_unwanted() const { return tap == nullptr && wanted.rows.size() < tokens.size(); }
  void keep_wanted(std::initializer_list<Rows*> rows);
  void begins(Part part) const {
    if (part_watch != nullptr) (*part_watch)(part);
  }
};

// Runs work(begin, end, thread) over the tokens; a single token stays on the calling thread, where
// it costs less than a barrier.
template <class F>
void for_tokens(const Step& step, std::size_t n_tokens, F&& work) {
  if (n_tokens <= 1) {
    if (n_tokens == 1) work(std::size_t{0}, std::size_t{1}, std::size_t{0});
    return;
  }
  const std::size_t grain =
      (n_tokens + 4 * step.pool.n_threads() - 1) / (4 * step.pool.n_threads());
  step.pool.parallel_for(n_tokens, grain, work);
}

}  // namespace quern::model
