#include "model/embedding.hpp"

#include "base/strings.hpp"
#include "model/linear.hpp"
#include "model/norm.hpp"

namespace quern::model {

namespace {

void add_position(const Step& step, const TokenPlace& token, float* row) {
  const Embedding& embedding = step.stack.embedding;
  const std::size_t width = embedding.positions->columns;
  step.model.kernels->add(row, embedding.positions->floats() + token.position_row * width, width);
}

void embed_token(const Step& step, const TokenPlace& token, float* row) {
  const Embedding& embedding = step.stack.embedding;
  const kernels::Kernels& kernels = *step.model.kernels;
  const weights::TensorView& table = *embedding.tokens;
  const auto id = static_cast<std::size_t>(token.id);
  quant::decode_row(*table.format, table.panel(id / quant::kPanelRows), id % quant::kPanelRows,
                    table.columns, row);
  if (embedding.scale != 1) kernels.scale(row, embedding.scale, table.columns);
  if (embedding.token_types != nullptr)
    kernels.add(
        row, embedding.token_types->floats() + static_cast<std::size_t>(token.type) * table.columns,
        table.columns);
  if (embedding.positions != nullptr && !embedding.positions_last) add_position(step, token, row);
}

}  // namespace

void embed(Step& step) {
  const Embedding& embedding = step.stack.embedding;
  const std::size_t n = step.n_tokens();
  const Rows stream = step.scratch.stream.rows(n, step.model.contract.d_model);
  const Rows sum =
      embedding.project ? step.scratch.embedded.rows(n, embedding.project->in) : stream;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) embed_token(step, step.tokens[t], sum.row(t));
  };
  for_tokens(step, n, work);
  if (embedding.norm) normalize(step, *embedding.norm, sum, sum);
  if (embedding.project) run_linear(step, sum, *embedding.project, stream);
  if (embedding.positions_last)
    for_tokens(step, n, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t t = begin; t < end; ++t) add_position(step, step.tokens[t], stream.row(t));
    });
  if (step.tap != nullptr)
    (*step.tap)(base::cat(step.stack.name == "decoder" ? "" : "encoder.", "embedding"), stream.data,
                n, stream.width, stream.stride);
}

}  // namespace quern::model
