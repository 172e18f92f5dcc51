// Contracts for the tests: hand-written files (tests/data/contract), and well-known models built
// from the widths of their published configurations.
#pragma once

#include <cmath>
#include <string>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/contract.hpp"
#include "contract/json.hpp"

namespace quern::contract {

// llama.json and gpt2.json are whole; the others hold the top-level keys that differ from
// llama.json.
inline const std::vector<std::string> kSamples = {"llama.json",           "gpt2.json",
                                                  "latent.json",          "sparse.json",
                                                  "encoder_decoder.json", "encoder.json"};
inline std::string sample_text(const std::string& name) {
  const auto file = [](const std::string& base_name) {
    return base::read_text_file(std::string(QUERN_SOURCE_DIR) + "/tests/data/contract/" + base_name,
                                1 << 20);
  };
  if (name == "llama.json" || name == "gpt2.json") return file(name);
  base::Json document = base::Json::parse(file("llama.json"));
  const base::Json changes = base::Json::parse(file(name));
  for (const auto& [key, value] : changes.items()) document[key] = value;
  return document.dump();
}
inline Contract sample(const std::string& name) {
  return read_contract(sample_text(name), name);
}

inline Op op_of(const Attention& op) {
  Op out{};
  out.kind = OpKind::attention;
  out.attention = op;
  return out;
}
inline Op op_of(const Mla& op) {
  Op out{};
  out.kind = OpKind::mla;
  out.mla = op;
  return out;
}
inline Op op_of(const Nsa& op) {
  Op out{};
  out.kind = OpKind::nsa;
  out.nsa = op;
  return out;
}
inline Op op_of(const Ffn& op) {
  Op out{};
  out.kind = OpKind::ffn;
  out.ffn = op;
  return out;
}
inline Op op_of(const Moe& op) {
  Op out{};
  out.kind = OpKind::moe;
  out.moe = op;
  return out;
}
inline Ffn plain_ffn(std::size_t d_ff, Activation activation, bool bias) {
  return {d_ff, activation, false, std::nullopt, 0, bias, bias};
}
inline Ffn gated_ffn(std::size_t d_ff, Activation activation) {
  return {d_ff, activation, true, std::nullopt, 0, false, false};
}
inline Embedding plain_embedding(std::size_t d_model) {
  Embedding out{};
  out.d_embed = d_model;
  out.scale = 1;
  return out;
}
inline Head lm_head(bool tied) {
  Head out{};
  out.kind = HeadKind::lm;
  out.tied = tied;
  out.in_scale = out.logit_scale = 1;
  return out;
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
  out.embedding = plain_embedding(widths.d_model);
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
  out.ops["attn"] = op_of(attention);
  out.ops["ffn"] = op_of(gated_ffn(widths.d_ff, Activation::silu));
  out.blocks["block"] = {Residual::sequential,
                         1.0,
                         {{"rms", "attn", std::nullopt, std::nullopt, 1, 1},
                          {"rms", "ffn", std::nullopt, std::nullopt, 1, 1}}};
  out.decoder = Stack{{{{"block"}, widths.n_layers, false}}, "rms", std::nullopt};
  out.head = lm_head(widths.tied);
  out.tokenizer.model = "none";
  return out;
}

// GPT-2 (124M): 12 layers of 768, 12 heads, positions 1024, all biases, tied head.
inline Contract gpt2_small() {
  Contract out = gated_decoder({50257, 768, 12, 12, 12, 64, 3072, true, true});
  out.max_positions = 1024;
  out.embedding.positions = PositionTable{PositionTableKind::learned, 1024, 0, std::nullopt};
  out.norms["rms"] = {NormKind::layer_norm, 1e-5, true, true, 0, Accumulate::f32};
  out.ropes.clear();
  out.ops["attn"].attention->rope.reset();
  out.ops["attn"].attention->bias_o = true;
  out.ops["ffn"].ffn = plain_ffn(3072, Activation::gelu_tanh, true);
  return out;
}

}  // namespace quern::contract
