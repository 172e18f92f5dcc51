#include "model/linear.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace quern::model {

namespace {

// Chunks per thread: enough that a thread whose core is taken away for a while leaves work to the
// others.
constexpr std::size_t kChunksPerThread = 4;
// A block of tokens shorter than this decodes its weights too often.
constexpr std::size_t kMinTokensPerBlock = 32;

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

  // Items are panels; when there are too few for the threads, each block of tokens has its own.
  const std::size_t wanted = kChunksPerThread * step.pool.n_threads();
  std::size_t n_blocks = 1;
  while (n_blocks * n_panels < wanted && input.n / (2 * n_blocks) >= kMinTokensPerBlock)
    n_blocks *= 2;
  const std::size_t block_tokens = (input.n + n_blocks - 1) / n_blocks;

  auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
    while (begin < end) {
      const std::size_t token = begin / n_panels * block_tokens;
      std::size_t panel = begin % n_panels;
      const LinearJob* job = jobs.data();
      while (panel >= job->linear->n_panels) panel -= (job++)->linear->n_panels;
      const std::size_t n = std::min(end - begin, job->linear->n_panels - panel);
      if (token < input.n) {
        const Piece piece{panel, panel + n, token, std::min(block_tokens, input.n - token)};
        const Rows out{job->out.row(token), piece.n_rows, job->out.width, job->out.stride};
        run_piece(step, {input, step.scratch.quantized}, *job->linear, piece, out, thread);
      }
      begin += n;
    }
  };
  const std::size_t n_items = n_blocks * n_panels;
  step.pool.parallel_for(n_items, (n_items + wanted - 1) / wanted, work);
}

}  // namespace quern::model
