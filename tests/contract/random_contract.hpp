// Random valid contracts: every mechanism of the vocabulary in random combination, from a seed.
#pragma once

#include <algorithm>
#include <random>

#include "samples.hpp"

namespace quern::contract {

class RandomContract {
 public:
  explicit RandomContract(std::uint32_t seed) : random_(seed) {}

  Contract make() {
    Contract out{};
    out.name = out.family = "random";
    out.kind = static_cast<ModelKind>(below(3));
    out.vocab_size = 300 + below(500);
    out.d_model = 8 * (1 + below(12));
    out.max_positions = 1 + below(300);
    add_norms(out);
    add_ropes(out);
    out.embedding = embedding(out);
    add_ops(out);
    add_stacks(out);
    add_head(out);
    if (coin()) out.pooling = pooling();
    out.tokens.eos = {2};
    if (coin()) out.tokens.mask = 3;
    if (coin()) out.tokens.decoder_start = 0;
    add_generation(out.generation);
    out.tokenizer.model = "none";
    return out;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool coin() { return (random_() & 1u) != 0; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(below(values.size())));
  }
  double real() {
    return std::ldexp(1 + static_cast<double>(below(1000)) / 1000, static_cast<int>(below(7)) - 3);
  }
  std::optional<double> maybe_real() { return coin() ? std::optional(real()) : std::nullopt; }
  std::string norm() { return "n" + std::to_string(below(n_norms_)); }
  std::optional<std::string> maybe_norm() { return coin() ? std::optional(norm()) : std::nullopt; }
  Activation activation() {
    return one_of({Activation::relu, Activation::silu, Activation::gelu_erf, Activation::gelu_tanh,
                   Activation::gelu_quick, Activation::tanh});
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
  Embedding embedding(const Contract& contract) {
    Embedding out{};
    out.project_in = coin();
    out.project_bias = out.project_in && coin();
    out.d_embed = out.project_in ? 1 + below(64) : contract.d_model;
    out.scale = real();
    out.token_types = below(3);
    out.norm = maybe_norm();
    if (coin()) return out;
    PositionTable table{};
    table.kind = coin() ? PositionTableKind::learned : PositionTableKind::sinusoidal;
    table.offset = below(3);
    table.rows = contract.max_positions + table.offset + below(9);
    if (table.kind == PositionTableKind::sinusoidal)
      table.order = coin() ? SinusoidOrder::halves : SinusoidOrder::interleaved;
    table.after_project = out.project_in && coin();
    if (contract.kind == ModelKind::encoder && table.offset > 0 && coin())
      table.pad = below(contract.vocab_size);
    out.positions = table;
    return out;
  }

  // ---- ops
  RelativeBias relative_bias(bool per_layer) {
    RelativeBias out{coin(), {0}, per_layer};
    for (std::size_t i = below(6); i > 0; --i)
      out.starts.push_back(out.starts.back() + 1 + static_cast<std::uint32_t>(below(9)));
    return out;
  }
  Attention attention(MaskKind mask) {
    Attention op{};
    op.n_kv_heads = 1 + below(3);
    op.n_heads = op.n_kv_heads * (1 + below(3));
    op.d_k = 8 + 2 * below(8);
    op.d_v = 1 + below(20);
    op.scale = real();
    op.bias_q = coin(), op.bias_k = coin(), op.bias_v = coin(), op.bias_o = coin();
    if (coin())
      op.qk_norm =
          QkNorm{norm(), one_of({QkNormOver::head, QkNormOver::all, QkNormOver::each_head})};
    if (coin()) op.rope = coin() ? "local" : "global";
    op.mask = {mask, std::nullopt, 0};
    if (mask != MaskKind::prefix && coin()) op.mask.window = 1 + below(100);
    if (mask == MaskKind::causal && op.mask.window) op.mask.sinks = below(5);
    op.softcap = maybe_real();
    if (coin()) {
      op.alibi = Alibi{std::vector<float>(op.n_heads, 0.125f), coin()};
      if (coin()) op.alibi->round = BiasRound::bf16;
    }
    if (coin()) op.relative_bias = relative_bias(true);
    op.clip_qkv = maybe_real();
    op.sink_logits = coin();
    return op;
  }
  Attention cross_attention() {
    Attention op = attention(MaskKind::prefix);
    op.source = AttentionSource::encoder;
    op.mask.kind = MaskKind::bidirectional;
    op.rope.reset(), op.alibi.reset(), op.relative_bias.reset();
    return op;
  }
  Mla mla(const Contract& contract) {
    Mla op{};
    op.n_heads = 1 + below(4);
    if (coin()) op.q_rank = 1 + below(40);
    op.kv_rank = 1 + below(40);
    op.d_nope = 1 + below(20);
    op.rope = coin() ? "local" : "global";
    op.d_rope = contract.ropes.at(op.rope).dims;
    op.d_v = 1 + below(20);
    op.scale = real();
    op.bias_a = coin(), op.bias_o = coin();
    if (op.q_rank) op.q_norm = maybe_norm();
    op.kv_norm = norm();
    op.mask = {MaskKind::causal, std::nullopt, 0};
    if (op.q_rank && coin()) {
      op.indexer = Indexer{1 + below(3), 8 + below(9), 1 + below(30), real(), norm(), std::nullopt};
      if (coin()) op.indexer->rope = "local";
    }
    return op;
  }
  Nsa nsa() {
    Nsa op{};
    op.n_kv_heads = 1 + below(3);
    op.n_heads = op.n_kv_heads * (1 + below(3));
    op.d_k = 8 + 2 * below(8);
    op.d_v = 1 + below(20);
    op.scale = real();
    if (coin()) op.rope = "global";
    op.compress_stride = 1 + below(4);
    op.compress_block = op.compress_stride * (1 + below(3));
    op.compress_hidden = 1 + below(20);
    op.select_block = op.compress_stride * (1 + below(4));
    op.n_initial = below(3);
    op.n_local = 1 + below(2);
    op.n_selected = op.n_initial + op.n_local + below(4);
    op.window = 1 + below(50);
    return op;
  }
  Ffn ffn() {
    Ffn op{1 + below(90), activation(), coin(), std::nullopt, 0, coin(), coin()};
    if (op.gated) op.clamp = maybe_real();
    if (op.gated && coin()) op.up_offset = 1;
    return op;
  }
  Moe moe() {
    Moe op{};
    const std::size_t group = 2 + below(3);
    Router& router = op.router;
    router.n_groups = 1 + below(3);
    router.top_groups = 1 + below(router.n_groups);
    op.n_experts = group * router.n_groups;
    op.top_k = 1 + below(group * router.top_groups);
    op.expert = ffn();
    router.score =
        one_of({RouterScore::softmax, RouterScore::softmax_selected, RouterScore::sigmoid});
    router.bias = coin(), router.select_bias = coin();
    router.group_score = coin() ? GroupScore::max : GroupScore::top2_sum;
    router.normalize = coin();
    router.normalize_eps = router.normalize && coin() ? 1e-20 : 0;
    router.scale = real();
    if (coin()) op.shared = SharedExpert{ffn(), coin()};
    return op;
  }
  void add_ops(Contract& out) {
    out.ops["look"] = op_of(attention(MaskKind::bidirectional));
    out.ops["a0"] = op_of(attention(MaskKind::causal));
    out.ops["a1"] = op_of(attention(coin() ? MaskKind::causal : MaskKind::prefix));
    Attention& first = *out.ops["a0"].attention;
    if (coin()) first.relative_bias = relative_bias(false);  // one table for the decoder
    Attention reader = first;  // reads layer 0, which the first block owns
    reader.kv_from = 0;
    reader.bias_k = reader.bias_v = false;
    out.ops["reader"] = op_of(reader);
    out.ops["cross"] = op_of(cross_attention());
    out.ops["mla"] = op_of(mla(out));
    out.ops["nsa"] = op_of(nsa());
    for (const char* name : {"f0", "f1"}) out.ops[name] = op_of(ffn());
    out.ops["moe"] = op_of(moe());
  }

  // ---- blocks and stacks
  Block block(const std::vector<std::string>& ops) {
    static constexpr Residual kKinds[] = {Residual::sequential, Residual::parallel, Residual::normed};
    Block out{kKinds[below(3)], real(), {}};
    for (const std::string& op : ops) {
      const bool parallel = out.residual == Residual::parallel;
      Branch branch{maybe_norm(), op,    maybe_norm(), parallel ? std::nullopt : maybe_norm(),
                    real(),       real()};
      if (parallel && !out.branches.empty() && out.branches.back().norm_in && coin()) {
        branch.norm_in = kSharedNorm;
        branch.in_scale = 1;
      }
      if (out.residual == Residual::normed && !branch.norm_in) branch.norm_in = norm();
      out.branches.push_back(branch);
    }
    return out;
  }
  LayerGroup group(const std::vector<std::string>& names) {
    LayerGroup out{{}, 1 + below(4), coin()};
    for (std::size_t j = 1 + below(4); j > 0; --j)
      out.pattern.push_back(names[below(names.size())]);
    return out;
  }
  void add_stacks(Contract& out) {
    if (out.kind != ModelKind::decoder) {
      out.blocks["e0"] = block({"look", "f0"});
      out.blocks["e1"] = block({"look", "moe"});
      Stack stack{{group({"e0", "e1"}), group({"e0"})}, maybe_norm(), std::nullopt};
      if (out.kind == ModelKind::encoder_decoder && coin()) {
        EncoderEmbedding own{embedding(out), coin(), out.vocab_size};
        if (own.own_tokens) own.vocab_size = 1 + below(900);
        if (!own.own_tokens) {
          own.embedding.d_embed = out.embedding.d_embed;
          own.embedding.project_in = out.embedding.project_in;
          own.embedding.project_bias = own.embedding.project_in && coin();
          if (own.embedding.positions) own.embedding.positions->after_project = own.embedding.project_in && coin();
        }
        stack.embedding = own;
      }
      out.encoder = stack;
    }
    if (out.kind == ModelKind::encoder) return;
    out.blocks["first"] = block({"a0", "f0"});
    out.blocks["b0"] = block({"a0", "f1"});
    out.blocks["b1"] = block({"a1", "moe", "f1"});
    out.blocks["b2"] = block({"reader", "f0"});
    out.blocks["b3"] = block({"mla", "moe"});
    out.blocks["b4"] = block({"nsa"});
    std::vector<std::string> names = {"b0", "b1", "b2", "b3", "b4"};
    if (out.kind == ModelKind::encoder_decoder) {
      out.blocks["b5"] = block({"a1", "cross", "f0"});
      names.push_back("b5");
    }
    Stack stack{{{{"first"}, 1 + below(2), coin()}}, maybe_norm(), std::nullopt};
    for (std::size_t i = below(4); i > 0; --i) stack.layers.push_back(group(names));
    out.decoder = stack;
  }

  // ---- ends
  void add_head(Contract& out) {
    Head& head = out.head = lm_head(false);
    head.kind = one_of({HeadKind::lm, HeadKind::lm, HeadKind::classify, HeadKind::none, HeadKind::multi_label,
                        HeadKind::regress});
    if (head.kind == HeadKind::none) return;
    head.bias = coin();
    head.in_scale = real(), head.logit_scale = real();
    head.softcap = maybe_real();
    if (coin()) {
      head.transform = HeadTransform{1 + below(90), std::nullopt, coin(), maybe_norm()};
      if (coin()) head.transform->activation = activation();
      if (coin()) head.transform->d_out = out.embedding.d_embed;
    }
    const std::size_t width = head.transform ? head.transform->d_out : out.d_model;
    if (head.kind == HeadKind::lm) head.tied = width == out.embedding.d_embed && coin();
    if (!has_labels(head.kind)) return;
    if (coin()) head.pool = one_of({Pool::first, Pool::last, Pool::mean});
    if (head.pool == Pool::last && coin()) head.pool_pad = below(out.vocab_size);
    head.labels = {"no", "yes", "perhaps"};
  }
  Pooling pooling() {
    Pooling out{.mode = one_of({Pool::first, Pool::last, Pool::mean}), .normalize = coin()};
    for (std::size_t n = below(3); n > 0; --n) {
      out.dense.push_back({1 + below(90), std::nullopt, coin(), maybe_norm()});
      if (coin()) out.dense.back().activation = activation();
    }
    return out;
  }
  void add_generation(Generation& out) {
    if (coin()) out.max_length = 1 + static_cast<std::int64_t>(below(100));
    if (coin()) out.n_beams = 1 + static_cast<std::int64_t>(below(8));
    if (coin()) out.length_penalty = real();
    if (coin()) out.early_stopping = one_of({"true", "false", "never"});
    if (coin()) out.no_repeat_ngram = 3;
    if (coin()) out.forced_eos = 2;
    if (coin()) out.suppress = {5, 6};
    if (coin()) out.bad_words = {{7}, {8, 9}};
    out.renormalize = coin();
  }

  std::mt19937 random_;
  std::size_t n_norms_ = 1;
};

}  // namespace quern::contract
