// Random valid contracts: every mechanism of the vocabulary in random combination, from a seed.
#pragma once

#include <random>

#include "samples.hpp"

namespace quern::contract {

class RandomContract {
 public:
  explicit RandomContract(std::uint32_t seed) : random_(seed) {}

  Contract make() {
    Contract out{};
    out.name = out.family = "random";
    out.kind = ModelKind::decoder;
    out.vocab_size = 300 + below(500);
    out.d_model = 8 * (1 + below(12));
    out.max_positions = 1 + below(300);
    out.embedding = {out.d_model, real(), std::nullopt, 0, std::nullopt, false};
    add_norms(out);
    add_ropes(out);
    out.embedding.norm = maybe_norm();
    if (coin()) {
      const std::size_t offset = below(3);
      out.embedding.positions =
          PositionTable{coin() ? PositionTableKind::learned : PositionTableKind::sinusoidal,
                        out.max_positions + offset + below(9), offset};
    }
    add_ops(out);
    add_blocks(out);
    add_decoder(out);
    out.head = {HeadKind::lm, coin(), coin(), real(), real(), maybe_real()};
    out.tokens.eos = {2};
    out.tokenizer.model = "none";
    return out;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool coin() { return (random_() & 1u) != 0; }
  double real() {
    return std::ldexp(1 + static_cast<double>(below(1000)) / 1000, static_cast<int>(below(7)) - 3);
  }
  std::optional<double> maybe_real() { return coin() ? std::optional(real()) : std::nullopt; }
  std::optional<std::string> maybe_norm() {
    return coin() ? std::optional("n" + std::to_string(below(n_norms_))) : std::nullopt;
  }

  void add_norms(Contract& out) {
    n_norms_ = 1 + below(4);
    for (std::size_t i = 0; i < n_norms_; ++i) {
      const bool weight = below(4) != 0;
      out.norms["n" + std::to_string(i)] = {coin() ? NormKind::rms_norm : NormKind::layer_norm,
                                            1e-6 * real(),
                                            weight,
                                            coin(),
                                            weight && coin() ? 1.0 : 0.0,
                                            coin() ? Accumulate::f32 : Accumulate::f64};
    }
  }
  void add_ropes(Contract& out) {
    for (const char* name : {"local", "global"}) {
      Rope rope{};
      rope.dims = 4 + 2 * below(3);
      rope.layout = coin() ? RopeLayout::half : RopeLayout::pairs;
      rope.rule = "yarn";
      rope.base = 1e4;
      rope.mscale = real();
      for (std::size_t i = 0; i < rope.dims / 2; ++i)
        rope.inv_freq.push_back(static_cast<float>(below(1u << 20)) / 1048576.0f);
      if (coin())
        rope.switch_rule =
            RopeSwitch{RopeSwitchKind::dynamic_ntk, 1 + below(500), 1e4, 1 + real(), {}, 1};
      else if (coin())
        rope.switch_rule =
            RopeSwitch{RopeSwitchKind::longrope, 1 + below(500), 0, 0, rope.inv_freq, real()};
      out.ropes[name] = rope;
    }
  }
  Attention attention() {
    Attention op{};
    op.n_kv_heads = 1 + below(3);
    op.n_heads = op.n_kv_heads * (1 + below(3));
    op.d_k = 8 + 2 * below(8);
    op.d_v = 1 + below(20);
    op.scale = real();
    op.bias_q = coin(), op.bias_k = coin(), op.bias_v = coin(), op.bias_o = coin();
    if (coin()) op.qk_norm = QkNorm{*std::optional("n" + std::to_string(below(n_norms_))), coin()};
    if (coin()) op.rope = coin() ? "local" : "global";
    op.mask = {MaskKind::causal, std::nullopt, 0};
    if (coin()) op.mask.window = 1 + below(100), op.mask.sinks = below(5);
    op.softcap = maybe_real();
    if (coin()) op.alibi = Alibi{std::vector<float>(op.n_heads, 0.125f), coin()};
    op.sink_logits = coin();
    return op;
  }
  void add_ops(Contract& out) {
    for (int i = 0; i < 2; ++i)
      out.ops["a" + std::to_string(i)] = {OpKind::attention, attention(), std::nullopt};
    Attention reader = *out.ops["a0"].attention;  // reads layer 0, which the first block owns
    reader.kv_from = 0;
    reader.bias_k = reader.bias_v = false;
    out.ops["reader"] = {OpKind::attention, reader, std::nullopt};
    for (int i = 0; i < 2; ++i)
      out.ops["f" + std::to_string(i)] = {
          OpKind::ffn, std::nullopt, Ffn{1 + below(90), Activation::relu, coin(), coin(), coin()}};
  }
  Block block(const std::vector<std::string>& ops) {
    Block out{coin() ? Residual::sequential : Residual::parallel, real(), {}};
    for (const std::string& op : ops) {
      const bool parallel = out.residual == Residual::parallel;
      Branch branch{maybe_norm(), op,    maybe_norm(), parallel ? std::nullopt : maybe_norm(),
                    real(),       real()};
      if (parallel && !out.branches.empty() && out.branches.back().norm_in && coin()) {
        branch.norm_in = kSharedNorm;
        branch.in_scale = 1;
      }
      out.branches.push_back(branch);
    }
    return out;
  }
  void add_blocks(Contract& out) {
    out.blocks["first"] = block({"a0", "f0"});
    out.blocks["b0"] = block({"a0", "f1"});
    out.blocks["b1"] = block({"a1", "f0", "f1"});
    out.blocks["b2"] = block({"reader", "f0"});
    out.blocks["b3"] = block({"f1"});
  }
  void add_decoder(Contract& out) {
    Stack stack{{{{"first"}, 1 + below(2), coin()}}, maybe_norm()};
    for (std::size_t i = below(4); i > 0; --i) {
      LayerGroup group{{}, 1 + below(4), coin()};
      for (std::size_t j = 1 + below(4); j > 0; --j)
        group.pattern.push_back("b" + std::to_string(below(4)));
      stack.layers.push_back(group);
    }
    out.decoder = stack;
  }

  std::mt19937 random_;
  std::size_t n_norms_ = 1;
};

}  // namespace quern::contract
