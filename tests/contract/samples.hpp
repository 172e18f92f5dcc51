// Contracts for the tests: two hand-written files (tests/data/contract), and well-known models
// built from the widths of their published configurations.
#pragma once

#include <cmath>
#include <string>

#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/contract.hpp"
#include "contract/json.hpp"

namespace quern::contract {

inline std::string sample_text(const std::string& name) {
  return base::read_text_file(std::string(QUERN_SOURCE_DIR) + "/tests/data/contract/" + name,
                              1 << 20);
}
inline Contract sample(const std::string& name) {
  return read_contract(sample_text(name), name);
}

// What distinguishes the sizes of one family: published numbers of its config.json.
struct Widths {
  std::size_t vocab_size, d_model, n_layers, n_heads, n_kv_heads, d_k, d_ff;
  bool tied;
  bool qkv_bias;
};

inline Contract gated_decoder(const Widths& widths) {
  Contract out{};
  out.name = out.family = "test";
  out.kind = ModelKind::decoder;
  out.vocab_size = widths.vocab_size;
  out.d_model = widths.d_model;
  out.max_positions = 4096;
  out.embedding = {widths.d_model, 1.0, std::nullopt, 0, std::nullopt, false};
  out.norms["rms"] = {NormKind::rms_norm, 1e-5, true, false, 0, Accumulate::f32};
  Rope rope{};
  rope.dims = widths.d_k;
  rope.layout = RopeLayout::half;
  for (std::size_t i = 0; i < widths.d_k / 2; ++i)
    rope.inv_freq.push_back(static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(widths.d_k))));
  rope.mscale = 1;
  rope.rule = "default";
  rope.base = 10000;
  out.ropes["main"] = rope;
  Attention attention{};
  attention.n_heads = widths.n_heads;
  attention.n_kv_heads = widths.n_kv_heads;
  attention.d_k = attention.d_v = widths.d_k;
  attention.scale = 1 / std::sqrt(static_cast<double>(widths.d_k));
  attention.bias_q = attention.bias_k = attention.bias_v = widths.qkv_bias;
  attention.rope = "main";
  attention.mask = {MaskKind::causal, std::nullopt, 0};
  out.ops["attn"] = {OpKind::attention, attention, std::nullopt};
  out.ops["ffn"] = {OpKind::ffn, std::nullopt,
                    Ffn{widths.d_ff, Activation::silu, true, false, false}};
  out.blocks["block"] = {Residual::sequential,
                         1.0,
                         {{"rms", "attn", std::nullopt, std::nullopt, 1, 1},
                          {"rms", "ffn", std::nullopt, std::nullopt, 1, 1}}};
  out.decoder = Stack{{{{"block"}, widths.n_layers, false}}, "rms"};
  out.head = {HeadKind::lm, widths.tied, false, 1, 1, std::nullopt};
  out.tokenizer.model = "none";
  return out;
}

// GPT-2 (124M): 12 layers of 768, 12 heads, positions 1024, all biases, tied head.
inline Contract gpt2_small() {
  Contract out = gated_decoder({50257, 768, 12, 12, 12, 64, 3072, true, true});
  out.max_positions = 1024;
  out.embedding.positions = PositionTable{PositionTableKind::learned, 1024, 0};
  out.norms["rms"] = {NormKind::layer_norm, 1e-5, true, true, 0, Accumulate::f32};
  out.ropes.clear();
  out.ops["attn"].attention->rope.reset();
  out.ops["attn"].attention->bias_o = true;
  out.ops["ffn"].ffn = Ffn{3072, Activation::gelu_tanh, false, true, true};
  return out;
}

}  // namespace quern::contract
