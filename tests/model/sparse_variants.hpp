// Tiny contracts of the sparse mechanisms: experts, latent attention, the indexer.
#pragma once

#include "model/tiny_model.hpp"

namespace quern::tests {

inline contract::Moe tiny_moe() {
  contract::Moe moe{};
  moe.n_experts = 6;
  moe.top_k = 2;
  moe.expert = feed_forward(contract::Activation::silu, true);
  moe.expert.d_ff = 24;
  moe.router = {contract::RouterScore::softmax, false, false, 1, 1,
                contract::GroupScore::max,      false, 0,     1};
  return moe;
}

inline Contract moe_contract() {
  Contract c = tiny_contract();
  c.ops["moe"] = {contract::OpKind::moe, {}, {}, {}, {}, tiny_moe()};
  c.blocks["experts"] = c.blocks["block"];
  c.blocks["experts"].branches[1].op = "moe";
  c.decoder->layers = {{{"block"}, 1, false}, {{"experts"}, 2, false}};
  return c;
}

inline contract::Moe& moe_of(Contract& c) {
  return *c.ops["moe"].moe;
}

inline contract::Mla tiny_mla() {
  contract::Mla mla{};
  mla.n_heads = 6;
  mla.q_rank = 28;
  mla.kv_rank = 36;
  mla.d_nope = 11;
  mla.d_rope = 8;
  mla.d_v = 13;
  mla.scale = 0.27;
  mla.q_norm = "main";
  mla.kv_norm = "main";
  mla.rope = "main";
  mla.mask = {contract::MaskKind::causal, std::nullopt, 0};
  return mla;
}

inline Contract mla_contract() {
  Contract c = tiny_contract();
  c.ropes["main"].layout = contract::RopeLayout::pairs;
  c.ops["attn"] = {contract::OpKind::mla, {}, tiny_mla(), {}, {}, {}};
  return c;
}

inline contract::Mla& mla_of(Contract& c) {
  return *c.ops["attn"].mla;
}

inline void with_indexer(Contract& c, std::size_t top_k) {
  c.norms["index"] = {contract::NormKind::layer_norm, 1e-6, true, true, 0,
                      contract::Accumulate::f32};
  c.ropes["index"] = c.ropes["main"];
  c.ropes["index"].layout = contract::RopeLayout::half;
  mla_of(c).indexer = contract::Indexer{3, 10, top_k, 0.2, "index", "index"};
}

inline Contract nsa_contract() {
  Contract c = tiny_contract();
  contract::Nsa nsa{};
  nsa.n_heads = 6;
  nsa.n_kv_heads = 2;
  nsa.d_k = 12;
  nsa.d_v = 20;
  nsa.scale = 0.3;
  nsa.rope = "main";
  nsa.compress_block = 8;
  nsa.compress_stride = 4;
  nsa.compress_hidden = 30;
  nsa.select_block = 12;
  nsa.n_selected = 5;
  nsa.n_initial = 1;
  nsa.n_local = 2;
  nsa.window = 21;
  c.ops["attn"] = {contract::OpKind::nsa, {}, {}, nsa, {}, {}};
  return c;
}

inline std::vector<Variant> sparse_variants() {
  std::vector<Variant> variants;
  const auto add = [&](const char* name, Contract c, const std::function<void(Contract&)>& change) {
    change(c);
    variants.push_back({name, std::move(c)});
  };
  add("experts, softmax over all", moe_contract(), [](Contract&) {});
  add("experts, softmax over the chosen, biases, clamped gate", moe_contract(), [](Contract& c) {
    moe_of(c).router.score = contract::RouterScore::softmax_selected;
    moe_of(c).router.bias = true;
    moe_of(c).expert.bias_in = moe_of(c).expert.bias_out = true;
    moe_of(c).expert.activation = contract::Activation::gelu_quick;
    moe_of(c).expert.clamp = 0.7;
    moe_of(c).expert.up_offset = 1;
  });
  add("experts, sigmoid, biased choice in groups, shared expert with a gate", moe_contract(),
      [](Contract& c) {
        moe_of(c).n_experts = 12;
        moe_of(c).top_k = 3;
        moe_of(c).router = {contract::RouterScore::sigmoid, false, true,  4,  2,
                            contract::GroupScore::top2_sum, true,  1e-20, 2.5};
        moe_of(c).shared =
            contract::SharedExpert{feed_forward(contract::Activation::silu, true, true), true};
      });
  add("experts, groups by their best, shared expert, plain feed-forward", moe_contract(),
      [](Contract& c) {
        moe_of(c).router = {contract::RouterScore::softmax, false, false, 3,  2,
                            contract::GroupScore::max,      true,  0,     1.5};
        moe_of(c).expert.gated = false;
        moe_of(c).expert.d_ff = 37;
        moe_of(c).shared =
            contract::SharedExpert{feed_forward(contract::Activation::relu, false), false};
      });
  add("latent attention", mla_contract(), [](Contract&) {});
  add("latent attention with plain queries, biases and a window", mla_contract(), [](Contract& c) {
    mla_of(c).q_rank.reset();
    mla_of(c).q_norm.reset();
    mla_of(c).bias_a = mla_of(c).bias_o = true;
    mla_of(c).mask.window = 70;
    mla_of(c).mask.sinks = 3;
  });
  add("latent attention over chosen keys", mla_contract(),
      [](Contract& c) { with_indexer(c, 40); });
  add("native sparse attention", nsa_contract(), [](Contract&) {});
  add("native sparse attention, blocks side by side", nsa_contract(), [](Contract& c) {
    contract::Nsa& nsa = *c.ops["attn"].nsa;
    nsa.compress_block = nsa.compress_stride = 6;
    nsa.n_initial = 0;
    nsa.n_local = 1;
    nsa.n_selected = 3;
    nsa.rope.reset();
  });
  return variants;
}

}  // namespace quern::tests
