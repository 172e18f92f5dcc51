#include "model/linear.hpp"

#include <algorithm>

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

bool wants(std::span<const LinearJob> jobs, std::size_t group) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const LinearJob& job) {
    return job.linear->weight->format->activation_group == group;
  });
}

}  // namespace

void quantize_rows(const Step& step, const Rows& input, std::span<const QuantizedInput> quantized,
                   std::span<const std::size_t> groups) {
  for (const std::size_t group : groups) {
    const QuantizedInput& target = *quantized_for(quantized, group);
    auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
      kernels::QuantizedRows rows = target.rows();
      rows.codes += begin * rows.codes_stride;
      rows.scales += begin * rows.groups_stride;
      rows.sums += begin * rows.groups_stride;
      step.model.kernels->quantize(input.row(begin), input.stride, end - begin, input.width, group,
                                   rows);
    };
    for_tokens(step, input.n, work);
  }
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
  if (const std::size_t group = linear.weight->format->activation_group; group != 0) {
    args.q = quantized_for(input.quantized, group)->rows();
    args.q.codes += piece.row * args.q.codes_stride;
    args.q.scales += piece.row * args.q.groups_stride;
    args.q.sums += piece.row * args.q.groups_stride;
  }
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

void run_linears(Step& step, const Rows& input, std::span<const LinearJob> jobs) {
  if (input.n == 0) return;
  for (const QuantizedInput& target : step.scratch.quantized)
    if (wants(jobs, target.group))
      quantize_rows(step, input, step.scratch.quantized, {&target.group, 1});
  std::size_t n_panels = 0;
  for (const LinearJob& job : jobs) n_panels += job.linear->n_panels;

  const Cut cut = cut_work(n_panels, input.n, step.pool.n_threads());
  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    while (begin < end) {  // the units of one block of tokens and one matrix at a time
      const std::size_t token = begin / cut.n_units * cut.tokens, unit = begin % cut.n_units;
      const std::size_t units = std::min(end - begin, cut.n_units - unit);
      begin += units;
      if (token >= input.n) continue;
      const std::size_t n_rows = std::min(cut.tokens, input.n - token);
      std::size_t panel = unit * cut.panels, left = std::min(units * cut.panels, n_panels - panel);
      for (const LinearJob* job = jobs.data(); left > 0; ++job) {
        if (panel >= job->linear->n_panels) {
          panel -= job->linear->n_panels;
          continue;
        }
        const std::size_t n = std::min(left, job->linear->n_panels - panel);
        const Rows out{job->out.row(token), n_rows, job->out.width, job->out.stride};
        run_piece(step, {input, step.scratch.quantized}, *job->linear, {panel, panel + n, token, n_rows}, out, thread);
        left -= n;
        panel = 0;
      }
    }
  };
  step.pool.parallel_for(cut.n_blocks * cut.n_units, cut.grain, work);
}

}  // namespace quern::model
