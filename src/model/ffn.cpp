#include "model/ffn.hpp"

#include "model/linear.hpp"

namespace quern::model {

namespace {

// up = act(gate) * up, or act(up).
void activate(Step& step, const Ffn& op, const Rows& gate, const Rows& up) {
  const kernels::Kernels& kernels = *step.model.kernels;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t t = begin; t < end; ++t) {
      if (op.spec->gated)
        kernels.activate_gated(op.activation, gate.row(t), up.row(t), up.width);
      else
        kernels.activate(op.activation, up.row(t), up.width);
    }
  };
  for_tokens(step, up.n, work);
}

}  // namespace

void run_ffn(Step& step, const Ffn& op, const Rows& input, const Rows& out) {
  const Rows gate = step.scratch.gate.rows(input.n, op.spec->d_ff);
  const Rows up = step.scratch.up.rows(input.n, op.spec->d_ff);
  const LinearJob jobs[] = {{&op.up, up}, {&op.gate, gate}};
  run_linears(step, input, std::span<const LinearJob>(jobs).first(op.spec->gated ? 2 : 1));
  activate(step, op, gate, up);
  run_linear(step, up, op.down, out);
}

}  // namespace quern::model
