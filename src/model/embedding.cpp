#include "model/embedding.hpp"

#include "model/norm.hpp"

namespace quern::model {

namespace {

void embed_token(const Step& step, const TokenPlace& token, float* row) {
  const Embedding& embedding = step.model.embedding;
  const kernels::Kernels& kernels = *step.model.kernels;
  const weights::TensorView& table = *embedding.tokens;
  const auto id = static_cast<std::size_t>(token.id);
  quant::decode_row(*table.format, table.panel(id / quant::kPanelRows), id % quant::kPanelRows,
                    table.columns, row);
  if (embedding.scale != 1) kernels.scale(row, embedding.scale, table.columns);
  if (embedding.positions != nullptr) {
    const std::size_t position = token.position + embedding.position_offset;
    kernels.add(row, embedding.positions->floats() + position * table.columns, table.columns);
  }
}

}  // namespace

void embed(Step& step) {
  const Rows stream = step.scratch.stream.rows(step.n_tokens(), step.model.contract.d_model);
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) embed_token(step, step.tokens[t], stream.row(t));
  };
  for_tokens(step, step.n_tokens(), work);
  if (step.model.embedding.norm) normalize(step, *step.model.embedding.norm, stream, stream);
}

}  // namespace quern::model
