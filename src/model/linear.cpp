#include "model/linear.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/round_up.hpp"

namespace quern::model {

namespace {

// Pieces of work per thread: enough that a thread whose core is taken away for a while leaves work to the others, and
// that the last piece is short.
constexpr std::size_t kChunksPerThread = 4, kTilesPerThread = 16;
// Panels that the kernels multiply together where there are tokens to fill a tile.
constexpr std::size_t kTilePanels = 4, kMinTileTokens = 16;
// A block of tokens shorter than this decodes its weights too often.
constexpr std::size_t kMinTokensPerBlock = 64;

// How the panels of some matrices and the rows of their input are cut: units of `panels` x `tokens`.
struct Cut {
  std::size_t panels, tokens, n_units, n_blocks, grain;
};

Cut cut_work(std::size_t n_panels, std::size_t n_tokens, std::size_t n_threads) {
  const bool tiles = n_tokens >= kMinTileTokens;
  const std::size_t panels = tiles ? kTilePanels : 1, n_units = base::divide_up(n_panels, panels);
  const std::size_t wanted = (tiles ? kTilesPerThread : kChunksPerThread) * n_threads;
  std::size_t n_blocks = 1;
  while (n_blocks * n_units < wanted && n_tokens / (2 * n_blocks) >= kMinTokensPerBlock) n_blocks *= 2;
  const std::size_t n_items = n_blocks * n_units;
  // Of few tiles each is its own piece; of few panels a piece is a stream long enough to prefetch.
  const std::size_t grain = tiles ? std::max<std::size_t>(1, n_items / wanted) : base::divide_up(n_items, wanted);
  return {panels, base::divide_up(n_tokens, n_blocks), n_units, n_blocks, grain};
}

const QuantizedInput* quantized_for(std::span<const QuantizedInput> all, std::size_t group) {
  for (const QuantizedInput& input : all)
    if (input.group == group) return &input;
  QUERN_ASSERT(!"activation group without a buffer");
  return nullptr;
}

// Activation groups of the jobs' formats, each once, without the 0 of float formats.
struct Groups {
  std::array<std::size_t, kernels::kMaxFormats> values;
  std::size_t n = 0;

  explicit Groups(std::span<const LinearJob> jobs) {
    for (const LinearJob& job : jobs) {
      const std::size_t group = job.linear->weight->format->activation_group;
      if (group != 0 && std::find(values.begin(), values.begin() + n, group) == values.begin() + n) values[n++] = group;
    }
  }
  std::span<const std::size_t> span() const { return {values.data(), n}; }
};

kernels::QuantizedRows rows_from(const QuantizedInput& input, std::size_t row) {
  kernels::QuantizedRows rows = input.rows();
  rows.codes += row * rows.codes_stride;
  rows.scales += row * rows.groups_stride;
  rows.sums += row * rows.groups_stride;
  return rows;
}

}  // namespace

void make_rows(const Step& step, const LazyRows& input, std::span<const QuantizedInput> quantized,
               std::span<const std::size_t> groups) {
  if (!input.make && groups.empty()) return;
  const Rows& rows = input.rows;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      if (input.make) input.make(t);
      for (const std::size_t group : groups)
        step.model.kernels->quantize(rows.row(t), rows.stride, 1, rows.width, group,
                                     rows_from(*quantized_for(quantized, group), t));
    }
  };
  for_tokens(step, rows.n, work);
}

void run_piece(const Step& step, const MatmulInput& input, const Linear& linear, const Piece& piece,
               const Rows& out, std::size_t thread) {
  kernels::MatmulArgs args{};
  args.weights = linear.weight->bytes.data();
  args.panel_bytes = linear.panel_bytes;
  args.columns = linear.in;
  args.first_panel = piece.first;
  args.end_panel = piece.end;
  args.n_tokens = piece.n_rows;
  args.x = input.rows.row(piece.row);
  args.x_stride = input.rows.stride;
  if (const std::size_t group = linear.weight->format->activation_group; group != 0)
    args.q = rows_from(*quantized_for(input.quantized, group), piece.row);
  args.out = out.data;
  args.out_stride = out.stride;
  args.scratch = step.scratch.matmul[thread].data();
  linear.matmul(args);
  if (linear.bias == nullptr) return;
  const std::size_t first = piece.first * quant::kPanelRows;
  const std::size_t end = std::min(piece.end * quant::kPanelRows, linear.out);
  for (std::size_t t = 0; t < piece.n_rows; ++t)
    step.model.kernels->add(out.row(t) + first, linear.bias + first, end - first);
}

namespace {

// work(piece, thread) over pieces that together are n_panels panels of n_tokens rows.
template <class F>
void for_pieces(Step& step, std::size_t n_panels, std::size_t n_tokens, F&& work) {
  const Cut cut = cut_work(n_panels, n_tokens, step.pool.n_threads());
  auto items = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    while (begin < end) {  // the units of one block of tokens at a time
      const std::size_t token = begin / cut.n_units * cut.tokens, unit = begin % cut.n_units;
      const std::size_t units = std::min(end - begin, cut.n_units - unit);
      begin += units;
      if (token >= n_tokens) continue;
      const std::size_t first = unit * cut.panels, last = std::min(first + units * cut.panels, n_panels);
      work(Piece{first, last, token, std::min(cut.tokens, n_tokens - token)}, thread);
    }
  };
  step.pool.parallel_for(cut.n_blocks * cut.n_units, cut.grain, items);
}

void run_job(const Step& step, const MatmulInput& input, const LinearJob& job, const Piece& piece, std::size_t thread) {
  run_piece(step, input, *job.linear, piece, {job.out.row(piece.row), piece.n_rows, job.out.width, job.out.stride},
            thread);
}

}  // namespace

void run_linears(Step& step, const LazyRows& lazy, std::span<const LinearJob> jobs) {
  if (lazy.rows.n == 0) return;
  make_rows(step, lazy, step.scratch.quantized, Groups(jobs).span());
  const MatmulInput input{lazy.rows, step.scratch.quantized};
  std::size_t n_panels = 0;
  for (const LinearJob& job : jobs) n_panels += job.linear->n_panels;
  for_pieces(step, n_panels, lazy.rows.n, [&](const Piece& piece, std::size_t thread) {
    std::size_t before = 0;  // panels of the jobs before
    for (const LinearJob& job : jobs) {
      const std::size_t end = before + job.linear->n_panels;
      const std::size_t first = std::max(piece.first, before), last = std::min(piece.end, end);
      if (first < last) run_job(step, input, job, {first - before, last - before, piece.row, piece.n_rows}, thread);
      before = end;
    }
  });
}

}  // namespace quern::model
