// Small models with an encoder, and decoders with the masks and biases that need more of a request
// than ids.
#pragma once

#include <string>
#include <vector>

#include "model/tiny_model.hpp"

namespace quern::tests {

inline contract::Attention bidirectional(contract::Attention attention) {
  attention.mask = {contract::MaskKind::bidirectional, std::nullopt, 0};
  return attention;
}

// BERT-like: learned positions, token types, norms after the sum, a narrow embedding, a head with a
// transform over it.
inline Contract encoder_contract() {
  Contract c = tiny_contract();
  c.kind = contract::ModelKind::encoder;
  c.norms["main"] = {contract::NormKind::layer_norm, 1e-5, true, true, 0,
                     contract::Accumulate::f32};
  c.ropes.clear();
  c.max_positions = 700;
  c.embedding = {24, 1.5, std::nullopt, 3, "main", true, true};
  c.embedding.positions = contract::PositionTable{contract::PositionTableKind::learned, 703, 3, {}};
  contract::Attention attention = bidirectional(attention_of(c));
  attention.rope.reset();
  attention.bias_q = attention.bias_k = attention.bias_v = attention.bias_o = true;
  attention_of(c) = attention;
  c.ops["ffn"].ffn = feed_forward(contract::Activation::gelu_erf, false, true, true);
  c.blocks["block"].branches = {{std::nullopt, "attn", std::nullopt, "main", 1, 1},
                                {std::nullopt, "ffn", std::nullopt, "main", 1, 1}};
  c.encoder = contract::Stack{{{{"block"}, 3, true}}, std::nullopt, std::nullopt};
  c.decoder.reset();
  c.head.bias = true;
  c.head.transform = contract::HeadTransform{24, contract::Activation::gelu_tanh, true, "main"};
  return c;
}

// A classifier of whole sequences over a windowed encoder with rotation.
inline Contract classifier_contract(contract::Pool pool) {
  Contract c = tiny_contract();
  c.kind = contract::ModelKind::encoder;
  c.ops["local"] = c.ops["attn"];
  c.ops["local"].attention->mask = {contract::MaskKind::bidirectional, 9, 0};
  attention_of(c) = bidirectional(attention_of(c));
  c.blocks["local"] = c.blocks["block"];
  c.blocks["local"].branches[0].op = "local";
  c.encoder = contract::Stack{{{{"block", "local"}, 2, false}}, "main", std::nullopt};
  c.decoder.reset();
  c.head = {contract::HeadKind::classify, false, true, 1, 1, {}, {}, pool, {}, {"a", "b", "c"}};
  c.head.transform = contract::HeadTransform{40, contract::Activation::tanh, true, std::nullopt};
  return c;
}

inline contract::RelativeBias relative_bias(bool bidirectional, bool per_layer) {
  return {bidirectional, {0, 1, 2, 3, 5, 9, 20, 47}, per_layer};
}

// T5-like: unscaled attention, a bias by distance per stack or per layer, cross-attention.
inline Contract encoder_decoder_contract(bool per_layer) {
  Contract c = tiny_contract();
  c.kind = contract::ModelKind::encoder_decoder;
  c.ropes.clear();
  contract::Attention attention = attention_of(c);
  attention.rope.reset();
  attention.scale = 0.7;
  c.ops["encode"] = c.ops["decode"] = c.ops["cross"] = c.ops["attn"];
  c.ops.erase("attn");
  c.ops["encode"].attention = bidirectional(attention);
  c.ops["encode"].attention->relative_bias = relative_bias(true, per_layer);
  c.ops["decode"].attention = attention;
  c.ops["decode"].attention->relative_bias = relative_bias(false, per_layer);
  c.ops["cross"].attention = bidirectional(attention);
  c.ops["cross"].attention->source = contract::AttentionSource::encoder;
  c.ops["cross"].attention->n_heads = c.ops["cross"].attention->n_kv_heads = 3;
  const auto branch = [](const char* op) {
    return contract::Branch{"main", op, std::nullopt, std::nullopt, 1, 1};
  };
  c.blocks.clear();
  c.blocks["encode"] = {contract::Residual::sequential, 1, {branch("encode"), branch("ffn")}};
  c.blocks["decode"] = {
      contract::Residual::sequential, 1, {branch("decode"), branch("cross"), branch("ffn")}};
  c.encoder = contract::Stack{{{{"encode"}, 2, false}}, "main", std::nullopt};
  c.decoder = contract::Stack{{{{"decode"}, 3, false}}, "main", std::nullopt};
  c.head.in_scale = 0.4;
  return c;
}

// The same with an embedding of the encoder's own: another vocabulary, positions, scale and norm.
inline Contract two_embeddings_contract() {
  Contract c = encoder_decoder_contract(false);
  contract::EncoderEmbedding own{{40, 2.0, std::nullopt, 0, "main", false, false}, true, 57};
  own.embedding.positions =
      contract::PositionTable{contract::PositionTableKind::learned, 2050, 2, {}};
  c.encoder->embedding = own;
  return c;
}

// Decoders of the remaining options, for Reference and run_all as tiny_contract()'s variants.
inline std::vector<Variant> option_variants() {
  std::vector<Variant> variants;
  const auto add = [&](const char* name, const std::function<void(Contract&)>& change) {
    variants.push_back({name, tiny_contract()});
    change(variants.back().contract);
  };
  add("clipped q, k, v; norms of each head", [](Contract& c) {
    attention_of(c).clip_qkv = 0.8;
    c.norms["heads"] = {contract::NormKind::layer_norm, 1e-5, true, true, 0.5,
                        contract::Accumulate::f32};
    attention_of(c).qk_norm = contract::QkNorm{"heads", contract::QkNormOver::each_head};
  });
  add("bias by distance in a decoder, of each layer", [](Contract& c) {
    attention_of(c).relative_bias = relative_bias(false, true);
    attention_of(c).mask.window = 300;
  });
  add("clamped gate, shifted up", [](Contract& c) {
    c.ops["ffn"].ffn->clamp = 0.9;
    c.ops["ffn"].ffn->up_offset = 1;
    c.ops["ffn"].ffn->activation = contract::Activation::gelu_quick;
  });
  add("prefix mask", [](Contract& c) { attention_of(c).mask.kind = contract::MaskKind::prefix; });
  add("token types, projected embedding", [](Contract& c) {
    c.embedding = {24, 1.0, std::nullopt, 2, "main", true, false};
    c.head.tied = false;
  });
  return variants;
}

}  // namespace quern::tests
