#include "model/ffn.hpp"

#include <limits>

#include "model/linear.hpp"

namespace quern::model {

void activate_row(const kernels::Kernels& kernels, const Ffn& op, float* gate, float* up, std::size_t n) {
  const contract::Ffn& spec = *op.spec;
  if (!spec.gated) return kernels.activate(op.activation, up, n);
  if (spec.clamp) {
    const auto limit = static_cast<float>(*spec.clamp);
    kernels.clamp(gate, -std::numeric_limits<float>::infinity(), limit, n);
    kernels.clamp(up, -limit, limit, n);
  }
  if (spec.up_offset != 0) kernels.shift(up, static_cast<float>(spec.up_offset), n);
  kernels.activate_gated(op.activation, gate, up, n);
}

void run_ffn(Step& step, const Ffn& op, const LazyRows& input, const Rows& out) {
  const Rows gate = step.scratch.gate.rows(input.rows.n, op.spec->d_ff);
  const Rows up = step.scratch.up.rows(input.rows.n, op.spec->d_ff);
  const LinearJob jobs[] = {{&op.up, up}, {&op.gate, gate}};
  step.begins(Part::gate_up);
  run_linears(step, input, std::span<const LinearJob>(jobs).first(op.spec->gated ? 2 : 1));
  auto activate = [&](std::size_t t) {
    activate_row(*step.model.kernels, op, gate.row(t), up.row(t), up.width);
  };
  step.begins(Part::down);
  run_linear(step, {up, activate}, op.down, out);
}

}  // namespace quern::model
