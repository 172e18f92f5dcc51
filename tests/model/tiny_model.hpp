// Small random models for tests: a contract, its tensors as floats, and the same tensors encoded
// and bound.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "contract/json.hpp"
#include "contract/tensors.hpp"
#include "kernels/select.hpp"
#include "model/bind.hpp"
#include "model/model.hpp"
#include "quant/formats.hpp"

namespace quern::tests {

using contract::Contract;

inline contract::Ffn feed_forward(contract::Activation activation, bool gated, bool bias_in = false,
                                  bool bias_out = false) {
  return {72, activation, gated, std::nullopt, 0, bias_in, bias_out};
}

// A llama-like decoder with odd widths: three layers, grouped queries, partial rotation.
inline Contract tiny_contract() {
  Contract c;
  c.name = "tiny";
  c.family = "test";
  c.kind = contract::ModelKind::decoder;
  c.vocab_size = 101;
  c.d_model = 40;
  c.max_positions = 2048;
  c.embedding = {40, 1.0, std::nullopt, 0, std::nullopt, false, false};
  c.norms["main"] = {contract::NormKind::rms_norm, 1e-5, true, false, 0, contract::Accumulate::f32};
  contract::Rope rope{};
  rope.dims = 8;
  rope.layout = contract::RopeLayout::half;
  for (int i = 0; i < 4; ++i)
    rope.inv_freq.push_back(static_cast<float>(std::pow(10000.0, -i / 4.0)));
  rope.mscale = 1;
  rope.rule = "default";
  rope.base = 10000;
  c.ropes["main"] = rope;
  contract::Attention attention{};
  attention.n_heads = 6;
  attention.n_kv_heads = 2;
  attention.d_k = 12;
  attention.d_v = 20;
  attention.scale = 1 / std::sqrt(12.0);
  attention.rope = "main";
  attention.mask = {contract::MaskKind::causal, std::nullopt, 0};
  c.ops["attn"] = {contract::OpKind::attention, attention, {}, {}, {}, {}};
  c.ops["ffn"] = {contract::OpKind::ffn, {}, {}, {}, feed_forward(contract::Activation::silu, true), {}};
  const contract::Branch attn{"main", "attn", std::nullopt, std::nullopt, 1, 1};
  const contract::Branch ffn{"main", "ffn", std::nullopt, std::nullopt, 1, 1};
  c.blocks["block"] = {contract::Residual::sequential, 1, {attn, ffn}};
  c.decoder = contract::Stack{{{{"block"}, 3, false}}, "main", std::nullopt};
  c.head = {contract::HeadKind::lm, true, false, 1, 1, {}, {}, {}, {}, {}};
  c.tokenizer.model = "none";
  return c;
}

inline contract::Attention& attention_of(Contract& c) {
  return *c.ops["attn"].attention;
}

// One contract for each mechanism of the vocabulary; the name says which.
struct Variant {
  std::string name;
  Contract contract;
};
std::vector<Variant> all_variants();

// Random tensors of a contract (by name, row-major), scaled so that activations stay near one.
using FloatTensors = std::map<std::string, std::vector<float>>;
inline FloatTensors random_tensors(const Contract& c, std::uint32_t seed) {
  FloatTensors tensors;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  for (const contract::TensorSpec& spec : contract::expected_tensors(c)) {
    std::vector<float>& values = tensors[spec.name];
    values.resize(spec.rows * spec.columns);
    const bool factor = spec.role == contract::TensorRole::norm && spec.name.ends_with("weight");
    const float spread = spec.matrix ? 1.3F / std::sqrt(static_cast<float>(spec.columns)) : 0.3F;
    for (float& value : values) value = (factor ? 1.0F : 0.0F) + spread * normal(random);
  }
  return tensors;
}

// A bound model whose tensors live in memory; `decoded` has the values its weights stand for.
struct TinyModel {
  std::unique_ptr<model::Model> model;
  std::deque<base::Buffer<std::byte>> memory;
  std::vector<weights::TensorView> views;
  FloatTensors decoded;
};

inline void encode_tensor(TinyModel& tiny, const contract::TensorSpec& spec,
                          const quant::FormatTraits& matrix_format,
                          const std::vector<float>& values) {
  const quant::FormatTraits& format =
      spec.matrix ? matrix_format : *quant::find_format(quant::FormatId::rows_f32);
  base::Buffer<std::byte>& bytes =
      tiny.memory.emplace_back(quant::tensor_bytes(format, spec.rows, spec.columns));
  tiny.views.push_back({spec.name, &format, spec.rows, spec.columns, {bytes.data(), bytes.size()}});
  std::vector<float>& decoded = tiny.decoded[spec.name];
  decoded = values;
  if (!spec.matrix) {
    std::memcpy(bytes.data(), values.data(), values.size() * sizeof(float));
    return;
  }
  std::vector<float> panel(quant::kPanelRows * spec.columns);
  for (std::size_t row = 0; row < spec.rows; row += quant::kPanelRows) {
    const std::size_t n = std::min(quant::kPanelRows, spec.rows - row);
    std::fill(panel.begin(), panel.end(), 0.0F);
    std::copy_n(values.data() + row * spec.columns, n * spec.columns, panel.data());
    std::byte* out =
        bytes.data() + row / quant::kPanelRows * quant::panel_bytes(format, spec.columns);
    quant::encode_panel(format, panel.data(), spec.columns, spec.columns, nullptr, out);
    for (std::size_t r = 0; r < n; ++r)
      quant::decode_row(format, out, r, spec.columns, decoded.data() + (row + r) * spec.columns);
  }
}

// As the converter's policy has it.
inline bool stays_float(const contract::TensorSpec& spec) {
  return spec.role == contract::TensorRole::router || spec.role == contract::TensorRole::latent;
}

inline TinyModel make_model(const Contract& c, std::string_view format, std::uint32_t seed = 1,
                            const kernels::Kernels& kernels = kernels::select_kernels()) {
  TinyModel tiny;
  tiny.model = std::make_unique<model::Model>();
  tiny.model->contract = c;
  tiny.model->kernels = &kernels;
  const FloatTensors tensors = random_tensors(c, seed);
  for (const contract::TensorSpec& spec : contract::expected_tensors(c))
    encode_tensor(tiny, spec, *quant::find_format(stays_float(spec) ? "f32" : format), tensors.at(spec.name));
  contract::validate(tiny.model->contract, "tiny");
  model::bind(*tiny.model, tiny.views, "tiny");
  return tiny;
}

inline std::vector<std::int32_t> random_ids(std::size_t n, std::size_t vocab_size,
                                            std::uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> ids(n);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % vocab_size);
  return ids;
}

// ---- the variants
// ---------------------------------------------------------------------------------------

inline void like_gpt2(Contract& c) {
  c.norms["main"] = {contract::NormKind::layer_norm, 1e-5, true, true, 0,
                     contract::Accumulate::f64};
  c.ropes.clear();
  c.embedding.positions = contract::PositionTable{contract::PositionTableKind::learned, 700, 2, {}};
  c.embedding.norm = "main";
  contract::Attention& a = attention_of(c);
  a.rope.reset();
  a.n_kv_heads = a.n_heads;
  a.bias_q = a.bias_k = a.bias_v = a.bias_o = true;
  c.ops["ffn"].ffn = feed_forward(contract::Activation::gelu_tanh, false, true, true);
  c.head.tied = false;
  c.head.bias = true;
  c.max_positions = 698;
}

inline void like_falcon(Contract& c) {
  c.norms["main"] = {contract::NormKind::layer_norm, 1e-5, true, true, 0,
                     contract::Accumulate::f32};
  contract::Block& block = c.blocks["block"];
  block.residual = contract::Residual::parallel;
  block.branches[1].norm_in = contract::kSharedNorm;
  attention_of(c).n_kv_heads = 1;
  c.ops["ffn"].ffn = feed_forward(contract::Activation::gelu_erf, false, false, true);
}

inline void like_gemma(Contract& c) {
  c.norms["main"].weight_offset = 1;
  c.norms["qk"] = c.norms["main"];
  c.embedding.scale = std::sqrt(40.0);
  attention_of(c).softcap = 5.0;
  attention_of(c).qk_norm = contract::QkNorm{"qk", contract::QkNormOver::head};
  c.ops["local"] = c.ops["attn"];
  c.ops["local"].attention->mask.window = 33;
  contract::Block& block = c.blocks["block"];
  for (contract::Branch& branch : block.branches) branch.norm_out = "main";
  c.blocks["local"] = block;
  c.blocks["local"].branches[0].op = "local";
  c.decoder->layers = {{{"local", "block"}, 2, false}};
  c.head.softcap = 3.0;
  c.head.logit_scale = 2.0;
  c.ops["ffn"].ffn->activation = contract::Activation::gelu_tanh;
}

inline void post_norm(Contract& c) {
  contract::Block& block = c.blocks["block"];
  block.skip_scale = 0.75;
  for (contract::Branch& branch : block.branches) {
    branch.norm_in.reset();
    branch.norm_after = "main";
    branch.in_scale = 0.5;
    branch.out_scale = 1.25;
  }
  c.decoder->final_norm.reset();
  c.head.in_scale = 0.25;
  attention_of(c).qk_norm = contract::QkNorm{"main", contract::QkNormOver::all};
}

inline void shared_weights(Contract& c) {
  c.ops["reader"] = c.ops["attn"];
  c.ops["reader"].attention->kv_from = 0;
  c.blocks["reader"] = c.blocks["block"];
  c.blocks["reader"].branches[0].op = "reader";
  c.decoder->layers = {{{"block"}, 2, true}, {{"reader"}, 2, false}};
}

inline std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  const auto add = [&](const char* name, const std::function<void(Contract&)>& change) {
    variants.push_back({name, tiny_contract()});
    change(variants.back().contract);
  };
  add("grouped queries", [](Contract&) {});
  add("rotation in pairs, own norms in a parallel block", [](Contract& c) {
    c.ropes["main"].layout = contract::RopeLayout::pairs;
    c.ropes["main"].mscale = 1.25;
    c.blocks["block"].residual = contract::Residual::parallel;
    c.blocks["block"].skip_scale = 0.5;
  });
  add("branches added to their normed input", [](Contract& c) {
    c.blocks["block"].residual = contract::Residual::normed;
    c.blocks["block"].skip_scale = 0.75;
    c.blocks["block"].branches[1].in_scale = 0.5;
  });
  add("learned positions, biases, layer norm", like_gpt2);
  add("parallel block with a shared norm", like_falcon);
  add("soft caps, norms of outputs, alternating windows", like_gemma);
  add("window with sinks", [](Contract& c) {
    attention_of(c).mask.window = 50;
    attention_of(c).mask.sinks = 3;
  });
  add("alibi after the scale", [](Contract& c) {
    attention_of(c).rope.reset();
    c.ropes.clear();
    attention_of(c).alibi = contract::Alibi{{0.5F, 0.25F, 0.125F, 0.0625F, 0.03125F, 0.7F}, false};
  });
  add("alibi before the scale, learned sinks", [](Contract& c) {
    attention_of(c).alibi = contract::Alibi{{0.5F, 0.25F, 0.125F, 0.0625F, 0.03125F, 0.7F}, true};
    attention_of(c).sink_logits = true;
  });
  add("alibi rounded to bf16", [](Contract& c) {
    attention_of(c).rope.reset();
    c.ropes.clear();
    attention_of(c).alibi = contract::Alibi{
        {0.5F, 0.25F, 0.8359375F, 0.0625F, 0.03125F, 0.69921875F}, true, contract::BiasRound::bf16};
  });
  add("positions after the projection", [](Contract& c) {
    like_gpt2(c);
    c.embedding.d_embed = 40;
    c.embedding.project_in = c.embedding.project_bias = true;
    c.embedding.norm.reset();
    c.embedding.positions->after_project = true;
    c.head.tied = false;
  });
  add("norms after the sum, scales", post_norm);
  add("shared weights, shared cache", shared_weights);
  return variants;
}

}  // namespace quern::tests
