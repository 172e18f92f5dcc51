// Cross-field rules: one row per rule, the error names the key.
#include <functional>
#include <limits>

#include "catch.hpp"
#include "contract/limits.hpp"
#include "contract/tensors.hpp"
#include "random_contract.hpp"

namespace quern::contract {
namespace {

struct Row {
  std::string path;
  std::function<void(Contract&)> damage;
};

Attention& attn(Contract& contract) {
  return *contract.ops["attn"].attention;
}
Rope& rope(Contract& contract) {
  return contract.ropes["main"];
}
Branch& branch(Contract& contract, std::size_t i) {
  return contract.blocks["block"].branches[i];
}

void check_rows(const Contract& good, const std::vector<Row>& rows) {
  REQUIRE_NOTHROW(validate(good, "m"));
  for (const Row& row : rows) {
    Contract bad = good;
    row.damage(bad);
    std::string text;
    try {
      validate(bad, "m");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::input);
      text = error.what();
    }
    INFO(row.path << ": \"" << text << "\"");
    CHECK(text.find("m: " + row.path + ":") == 0);
    CHECK(text.find('\n') == std::string::npos);
  }
}

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

Moe moe_of(std::size_t n_experts, std::size_t d_ff) {
  Moe out{};
  out.n_experts = n_experts;
  out.top_k = 1;
  out.expert = gated_ffn(d_ff, Activation::silu);
  out.router.n_groups = out.router.top_groups = 1;
  out.router.scale = 1;
  return out;
}

Contract good_contract() {
  Contract out = gated_decoder({100, 64, 4, 4, 2, 16, 96, true, false});
  out.tokens.bos = 1;
  out.tokens.eos = {2};
  return out;
}

}  // namespace

TEST_CASE("rules of widths, heads and positions") {
  check_rows(
      good_contract(),
      {{"vocab_size", [](Contract& c) { c.vocab_size = 0; }},
       {"vocab_size", [](Contract& c) { c.vocab_size = kMaxVocab + 1; }},
       {"d_model", [](Contract& c) { c.d_model = 0; }},
       {"d_model", [](Contract& c) { c.d_model = std::size_t{1} << 40; }},
       {"max_positions", [](Contract& c) { c.max_positions = 0; }},
       {"embedding.d_embed", [](Contract& c) { c.embedding.d_embed = 32; }},
       {"embedding.scale", [](Contract& c) { c.embedding.scale = 0; }},
       {"embedding.norm", [](Contract& c) { c.embedding.norm = "rsm"; }},
       {"embedding.positions.rows",
        [](Contract& c) {
          c.embedding.positions = PositionTable{PositionTableKind::learned, 4097, 2, std::nullopt};
        }},
       {"ops.attn.n_heads", [](Contract& c) { attn(c).n_heads = 0; }},
       {"ops.attn.n_kv_heads", [](Contract& c) { attn(c).n_kv_heads = 0; }},
       {"ops.attn.n_kv_heads", [](Contract& c) { attn(c).n_kv_heads = 3; }},
       {"ops.attn.n_kv_heads", [](Contract& c) { attn(c).n_kv_heads = 8; }},
       {"ops.attn.d_k", [](Contract& c) { attn(c).d_k = 17; }},
       {"ops.attn.d_k", [](Contract& c) { attn(c).d_k = kMaxWidth / 2; }},
       {"ops.attn.d_v", [](Contract& c) { attn(c).d_v = 0; }},
       {"ops.attn.scale", [](Contract& c) { attn(c).scale = kNan; }},
       {"ops.attn.scale", [](Contract& c) { attn(c).scale = 1e-300; }},
       {"ops.attn.rope", [](Contract& c) { attn(c).d_k = 8; }},
       {"ops.attn.rope", [](Contract& c) { attn(c).rope = "mian"; }},
       {"ops.attn.qk_norm.norm",
        [](Contract& c) {
          attn(c).qk_norm = QkNorm{"x", QkNormOver::head};
        }},
       {"ops.attn.softcap", [](Contract& c) { attn(c).softcap = -1; }},
       {"ops.attn.mask.kind", [](Contract& c) { attn(c).mask.kind = MaskKind::bidirectional; }},
       {"ops.attn.mask.window", [](Contract& c) { attn(c).mask.window = 0; }},
       {"ops.attn.mask.sinks", [](Contract& c) { attn(c).mask.sinks = 4; }},
       {"ops.attn.alibi.slopes",
        [](Contract& c) {
          attn(c).alibi = Alibi{{1, 2}, false};
        }},
       {"ops.attn.alibi.slopes[3]",
        [](Contract& c) {
          attn(c).alibi = Alibi{{1, 2, 3, std::numeric_limits<float>::infinity()}, false};
        }},
       {"ops.attn.kind", [](Contract& c) { c.ops["attn"].ffn = Ffn{}; }},
       {"ops.ffn.d_ff", [](Contract& c) { c.ops["ffn"].ffn->d_ff = 0; }},
       {"ops.a-b", [](Contract& c) { c.ops["a-b"] = c.ops["ffn"]; }}});
}

TEST_CASE("rules of norms and ropes") {
  check_rows(
      good_contract(),
      {{"norms.rms.eps", [](Contract& c) { c.norms["rms"].eps = 0; }},
       {"norms.rms.eps", [](Contract& c) { c.norms["rms"].eps = kNan; }},
       {"norms.rms.eps", [](Contract& c) { c.norms["rms"].eps = 1e-60; }},
       {"norms.rms.weight_offset", [](Contract& c) { c.norms["rms"].weight_offset = kInfinity; }},
       {"norms.rms.weight_offset",
        [](Contract& c) { c.norms["rms"].weight = false, c.norms["rms"].weight_offset = 1; }},
       {"norms.shared", [](Contract& c) { c.norms["shared"] = c.norms["rms"]; }},
       {"ropes.main.dims", [](Contract& c) { rope(c).dims = 0; }},
       {"ropes.main.dims", [](Contract& c) { rope(c).dims = 15; }},
       {"ropes.main.base", [](Contract& c) { rope(c).base = 0; }},
       {"ropes.main.base", [](Contract& c) { rope(c).base = kNan; }},
       {"ropes.main.rule", [](Contract& c) { rope(c).rule = "yarm"; }},
       {"ropes.main.mscale", [](Contract& c) { rope(c).mscale = 0; }},
       {"ropes.main.inv_freq", [](Contract& c) { rope(c).inv_freq.pop_back(); }},
       {"ropes.main.inv_freq[2]", [](Contract& c) { rope(c).inv_freq[2] = -1; }},
       {"ropes.main.inv_freq[0]", [](Contract& c) { rope(c).inv_freq[0] = std::nanf(""); }},
       {"ropes.main.switch.original_length",
        [](Contract& c) {
          rope(c).switch_rule = RopeSwitch{RopeSwitchKind::dynamic_ntk, 0, 1e4, 2, {}, 1};
        }},
       {"ropes.main.switch.factor",
        [](Contract& c) {
          rope(c).switch_rule = RopeSwitch{RopeSwitchKind::dynamic_ntk, 8, 1e4, 0.5, {}, 1};
        }},
       {"ropes.main.switch.base",
        [](Contract& c) {
          rope(c).switch_rule = RopeSwitch{RopeSwitchKind::dynamic_ntk, 8, 0, 2, {}, 1};
        }},
       {"ropes.main.switch.long_inv_freq", [](Contract& c) {
          rope(c).switch_rule = RopeSwitch{RopeSwitchKind::longrope, 8, 0, 0, {1, 2}, 1};
        }}});
}

TEST_CASE("rules of blocks and stacks") {
  check_rows(
      good_contract(),
      {{"blocks.block.branches[0].op", [](Contract& c) { branch(c, 0).op = "atn"; }},
       {"blocks.block.branches[0].norm_in", [](Contract& c) { branch(c, 0).norm_in = "none"; }},
       {"blocks.block.branches[1].norm_in",
        [](Contract& c) { branch(c, 1).norm_in = kSharedNorm; }},
       {"blocks.block.branches[0].norm_in",
        [](Contract& c) {
          c.blocks["block"].residual = Residual::parallel;
          branch(c, 0).norm_in = kSharedNorm;
        }},
       {"blocks.block.branches[1].norm_in",
        [](Contract& c) {
          c.blocks["block"].residual = Residual::parallel;
          branch(c, 0).norm_in.reset();
          branch(c, 1).norm_in = kSharedNorm;
        }},
       {"blocks.block.branches[1].in_scale",
        [](Contract& c) {
          c.blocks["block"].residual = Residual::parallel;
          branch(c, 1).norm_in = kSharedNorm;
          branch(c, 1).in_scale = 2;
        }},
       {"blocks.block.branches[1].norm_in",
        [](Contract& c) {
          c.blocks["block"].residual = Residual::normed;
          branch(c, 1).norm_in.reset();
        }},
       {"blocks.block.branches[1].norm_out", [](Contract& c) { branch(c, 1).norm_out = "x"; }},
       {"blocks.block.branches[1].out_scale",
        [](Contract& c) { branch(c, 1).out_scale = kInfinity; }},
       {"blocks.block.skip_scale", [](Contract& c) { c.blocks["block"].skip_scale = 0; }},
       {"blocks.block.branches", [](Contract& c) { c.blocks["block"].branches.clear(); }},
       {"decoder", [](Contract& c) { c.decoder.reset(); }},
       {"decoder.layers", [](Contract& c) { c.decoder->layers.clear(); }},
       {"decoder.layers[0].repeat", [](Contract& c) { c.decoder->layers[0].repeat = 1000000000; }},
       {"decoder.layers[0].repeat", [](Contract& c) { c.decoder->layers[0].repeat = 0; }},
       {"decoder.layers[0].pattern", [](Contract& c) { c.decoder->layers[0].pattern.clear(); }},
       {"decoder.layers[0].pattern[0]",
        [](Contract& c) { c.decoder->layers[0].pattern[0] = "blok"; }},
       {"decoder.layers[1]",
        [](Contract& c) {
          c.decoder->layers.push_back({{"block", "block"}, kMaxLayers / 2, false});
        }},
       {"decoder.final_norm", [](Contract& c) { c.decoder->final_norm = "x"; }},
       {"head.softcap", [](Contract& c) { c.head.softcap = 0; }},
       {"head.logit_scale", [](Contract& c) { c.head.logit_scale = kNan; }},
       {"encoder", [](Contract& c) { c.encoder = c.decoder; }},
       {"decoder.layers",
        [](Contract& c) {  // 64 layers of 4096 experts: more tensors than a file may have
          c.ops["ffn"] = op_of(moe_of(4096, 4));
          c.decoder->layers[0].repeat = 64;
        }},
       {"d_model", [](Contract& c) {
          c.d_model = c.embedding.d_embed = kMaxWidth;
          c.ops["ffn"].ffn->d_ff = kMaxWidth;
          c.decoder->layers[0].repeat = 1024;
        }}});
}

TEST_CASE("rules of layers that read another layer's cache") {
  Contract good = good_contract();
  good.ops["reader"] = good.ops["attn"];
  good.ops["reader"].attention->kv_from = 1;
  good.blocks["tail"] = good.blocks["block"];
  good.blocks["tail"].branches[0].op = "reader";
  good.decoder->layers.push_back({{"tail"}, 2, false});
  const auto reader = [](Contract& c) -> Attention& { return *c.ops["reader"].attention; };
  const std::string path = "ops.reader.kv_from";
  check_rows(good, {{path, [&](Contract& c) { reader(c).kv_from = 4; }},
                    {path, [&](Contract& c) { reader(c).kv_from = 1000000; }},
                    {path, [&](Contract& c) { c.decoder->layers[0].pattern[0] = "tail"; }},
                    {path, [&](Contract& c) { reader(c).n_kv_heads = 4; }},
                    {path, [&](Contract& c) { reader(c).d_v = 8; }},
                    {path, [&](Contract& c) { reader(c).rope.reset(); }},
                    {path, [&](Contract& c) { c.blocks["block"].branches[0].op = "ffn"; }},
                    {"ops.reader.bias", [&](Contract& c) { reader(c).bias_k = true; }}});
}

TEST_CASE("rules of tokens, generation, tokenizer and counts") {
  check_rows(
      good_contract(),
      {{"tokens.bos", [](Contract& c) { c.tokens.bos = 100; }},
       {"tokens.pad", [](Contract& c) { c.tokens.pad = -1; }},
       {"tokens.unk", [](Contract& c) { c.tokens.unk = 1 << 30; }},
       {"tokens.eos[1]",
        [](Contract& c) {
          c.tokens.eos = {2, 100};
        }},
       {"tokens.add_bos", [](Contract& c) { c.tokens.bos.reset(), c.tokens.add_bos = true; }},
       {"tokens.add_eos", [](Contract& c) { c.tokens.eos.clear(), c.tokens.add_eos = true; }},
       {"generation.temperature", [](Contract& c) { c.generation.temperature = -1; }},
       {"generation.top_k", [](Contract& c) { c.generation.top_k = -1; }},
       {"generation.top_p", [](Contract& c) { c.generation.top_p = 1.5; }},
       {"generation.min_p", [](Contract& c) { c.generation.min_p = kNan; }},
       {"generation.repetition_penalty", [](Contract& c) { c.generation.repetition_penalty = 0; }},
       {"generation.max_new_tokens", [](Contract& c) { c.generation.max_new_tokens = 0; }},
       {"tokenizer.model", [](Contract& c) { c.tokenizer.model = ""; }},
       {"tokenizer.unk_id", [](Contract& c) { c.tokenizer.unk_id = 100; }},
       {"tokenizer.prefix_ids[0]", [](Contract& c) { c.tokenizer.prefix_ids = {100}; }},
       {"tokenizer.prefix_types", [](Contract& c) { c.tokenizer.prefix_ids = {1}; }},
       {"tokenizer.text_type", [](Contract& c) { c.tokenizer.text_type = -1; }},
       {"tokenizer.score_sum", [](Contract& c) { c.tokenizer.score_sum = "f16"; }},
       {"tokenizer.user_defined", [](Contract& c) { c.tokenizer.user_defined = {100}; }},
       {"tokenizer.decoders[0]", [](Contract& c) { c.tokenizer.decoders = {""}; }},
       {"tokenizer.pair.middle_types",
        [](Contract& c) {
          c.tokenizer.pair.emplace();
          c.tokenizer.pair->middle_ids = {3};
        }},
       {"tokenizer.normalizers[0]", [](Contract& c) { c.tokenizer.normalizers = {""}; }},
       {"tokenizer.added[0].id",
        [](Contract& c) {
          c.tokenizer.added = {{"x", -1, true, false, false, false, false}};
        }},
       {"tokenizer.added[0].content",
        [](Contract& c) {
          c.tokenizer.added = {{"", 1, true, false, false, false, false}};
        }},
       {"chat.builtin", [](Contract& c) { c.chat.builtin = "x"; }},
       {"counts.parameters_by_formula", [](Contract& c) { c.counts.parameters_by_formula = 5; }},
       {"counts.parameters_in_tensors", [](Contract& c) { c.counts.parameters_in_tensors = 5; }}});
}

TEST_CASE("rules of latent attention, indexer and experts") {
  const auto mla = [](Contract& c) -> Mla& { return *c.ops["attn"].mla; };
  const auto moe = [](Contract& c) -> Moe& { return *c.ops["moe"].moe; };
  const auto index = [=](Contract& c) -> Indexer& { return *mla(c).indexer; };
  check_rows(
      sample("latent.json"),
      {{"ops.attn.n_heads", [=](Contract& c) { mla(c).n_heads = 0; }},
       {"ops.attn.n_heads", [=](Contract& c) { mla(c).d_nope = kMaxWidth / 2; }},
       {"ops.attn.n_heads",
        [=](Contract& c) { mla(c).n_heads = kMaxWidth / 32, mla(c).kv_rank = 1024; }},
       {"ops.attn.q_rank", [=](Contract& c) { mla(c).q_rank = 0; }},
       {"ops.attn.kv_rank", [=](Contract& c) { mla(c).kv_rank = 0; }},
       {"ops.attn.d_nope", [=](Contract& c) { mla(c).d_nope = 0; }},
       {"ops.attn.d_v", [=](Contract& c) { mla(c).d_v = 0; }},
       {"ops.attn.scale", [=](Contract& c) { mla(c).scale = 0; }},
       {"ops.attn.rope", [=](Contract& c) { mla(c).rope = "x"; }},
       {"ops.attn.rope", [=](Contract& c) { mla(c).d_rope = 6; }},
       {"ops.attn.q_norm", [=](Contract& c) { mla(c).q_norm = "x"; }},
       {"ops.attn.kv_norm", [=](Contract& c) { mla(c).kv_norm = "x"; }},
       {"ops.attn.mask.kind",
        [=](Contract& c) { mla(c).mask.kind = MaskKind::prefix, mla(c).indexer.reset(); }},
       {"ops.attn_lite.q_norm", [](Contract& c) { c.ops["attn_lite"].mla->q_norm = "rms"; }},
       {"ops.attn.indexer", [=](Contract& c) { mla(c).q_rank.reset(), mla(c).q_norm.reset(); }},
       {"ops.attn.indexer", [=](Contract& c) { mla(c).mask.window = 8; }},
       {"ops.attn.indexer.n_heads", [=](Contract& c) { index(c).n_heads = 0; }},
       {"ops.attn.indexer.d_k", [=](Contract& c) { index(c).d_k = kMaxWidth; }},
       {"ops.attn.indexer.top_k", [=](Contract& c) { index(c).top_k = 0; }},
       {"ops.attn.indexer.scale", [=](Contract& c) { index(c).scale = kNan; }},
       {"ops.attn.indexer.k_norm", [=](Contract& c) { index(c).k_norm = "x"; }},
       {"ops.attn.indexer.rope", [=](Contract& c) { index(c).rope = "x"; }},
       {"ops.attn.indexer.rope", [=](Contract& c) { index(c).d_k = 6; }},
       {"ops.moe.n_experts", [=](Contract& c) { moe(c).n_experts = 0; }},
       {"ops.moe.n_experts", [=](Contract& c) { moe(c).n_experts = kMaxExperts + 1; }},
       {"ops.moe.n_experts",
        [=](Contract& c) { moe(c).n_experts = kMaxExperts, moe(c).expert.d_ff = kMaxWidth; }},
       {"ops.moe.top_k", [=](Contract& c) { moe(c).top_k = 9; }},
       {"ops.moe.expert.d_ff", [=](Contract& c) { moe(c).expert.d_ff = 0; }},
       {"ops.moe.shared.d_ff", [=](Contract& c) { moe(c).shared->ffn.d_ff = 0; }},
       {"ops.moe.router.n_groups", [=](Contract& c) { moe(c).router.n_groups = 3; }},
       {"ops.moe.router.n_groups", [=](Contract& c) { moe(c).router.n_groups = 16; }},
       {"ops.moe.router.top_groups", [=](Contract& c) { moe(c).router.top_groups = 5; }},
       {"ops.moe.router.top_groups", [=](Contract& c) { moe(c).router.top_groups = 1; }},
       {"ops.moe.router.group_score", [=](Contract& c) { moe(c).router.n_groups = 8; }},
       {"ops.moe.router.normalize_eps", [=](Contract& c) { moe(c).router.normalize_eps = 2; }},
       {"ops.moe.router.scale", [=](Contract& c) { moe(c).router.scale = 0; }},
       {"ops.moe_plain.expert.clamp",
        [](Contract& c) { c.ops["moe_plain"].moe->expert.clamp = 7; }},
       {"ops.ffn.clamp", [](Contract& c) { c.ops["ffn"].ffn->clamp = 0; }},
       {"ops.ffn.up_offset", [](Contract& c) { c.ops["ffn"].ffn->up_offset = kNan; }}});
}

TEST_CASE("rules of native sparse attention and prefix masks") {
  const auto nsa = [](Contract& c) -> Nsa& { return *c.ops["attn"].nsa; };
  check_rows(
      sample("sparse.json"),
      {{"ops.attn.n_kv_heads", [=](Contract& c) { nsa(c).n_kv_heads = 3; }},
       {"ops.attn.d_k", [=](Contract& c) { nsa(c).d_k = 15; }},
       {"ops.attn.rope", [=](Contract& c) { nsa(c).rope = "x"; }},
       {"ops.attn.compress_block", [=](Contract& c) { nsa(c).compress_block = 0; }},
       {"ops.attn.compress_block",
        [=](Contract& c) { nsa(c).compress_block = 4096, nsa(c).d_v = 1024; }},
       {"ops.attn.compress_stride", [=](Contract& c) { nsa(c).compress_stride = 3; }},
       {"ops.attn.compress_stride", [=](Contract& c) { nsa(c).compress_stride = 9; }},
       {"ops.attn.compress_stride", [=](Contract& c) { nsa(c).select_block = 18; }},
       {"ops.attn.compress_hidden", [=](Contract& c) { nsa(c).compress_hidden = 0; }},
       {"ops.attn.select_block", [=](Contract& c) { nsa(c).select_block = 0; }},
       {"ops.attn.n_selected", [=](Contract& c) { nsa(c).n_selected = 2; }},
       {"ops.attn.n_local", [=](Contract& c) { nsa(c).n_local = 0; }},
       {"ops.attn.window", [=](Contract& c) { nsa(c).window = 0; }},
       {"ops.prefix.mask.window", [](Contract& c) { c.ops["prefix"].attention->mask.window = 8; }},
       {"ops.prefix.clip_qkv", [](Contract& c) { c.ops["prefix"].attention->clip_qkv = -1; }},
       {"ops.prefix.relative_bias.starts",
        [](Contract& c) {
          c.ops["prefix"].attention->relative_bias = RelativeBias{false, {}, true};
        }},
       {"ops.prefix.relative_bias.starts[0]",
        [](Contract& c) {
          c.ops["prefix"].attention->relative_bias = RelativeBias{false, {1}, true};
        }},
       {"ops.prefix.relative_bias.starts[2]", [](Contract& c) {
          c.ops["prefix"].attention->relative_bias = RelativeBias{false, {0, 4, 3}, true};
        }}});
}

TEST_CASE("rules of encoders, cross-attention and the encoder's embedding") {
  const auto read = [](Contract& c) -> Attention& { return *c.ops["read"].attention; };
  const auto look = [](Contract& c) -> Attention& { return *c.ops["look"].attention; };
  const auto own = [](Contract& c) -> EncoderEmbedding& { return *c.encoder->embedding; };
  check_rows(
      sample("encoder_decoder.json"),
      {{"encoder", [](Contract& c) { c.encoder.reset(); }},
       {"decoder", [](Contract& c) { c.decoder.reset(); }},
       {"encoder.embedding", [](Contract& c) { c.kind = ModelKind::decoder; }},
       {"ops.read.source",
        [=](Contract& c) {
          c.encoder->layers[0].pattern[0] = "decoder_block";
          c.ops["write"].attention->mask.kind = MaskKind::bidirectional;
        }},
       {"ops.read.source",
        [=](Contract& c) {
          c.ropes = good_contract().ropes, read(c).d_k = 16, read(c).rope = "main";
        }},
       {"ops.read.source",
        [=](Contract& c) {
          read(c).alibi = Alibi{{1, 1, 1, 1}, false};
        }},
       {"ops.read.source", [=](Contract& c) { read(c).relative_bias = look(c).relative_bias; }},
       {"ops.read.mask", [=](Contract& c) { read(c).mask.kind = MaskKind::causal; }},
       {"ops.read.mask", [=](Contract& c) { read(c).mask.window = 4; }},
       {"ops.read.kv_from",
        [=](Contract& c) { read(c).kv_from = 0, read(c).bias_k = read(c).bias_v = false; }},
       {"ops.write.mask.kind",
        [](Contract& c) { c.ops["write"].attention->mask.kind = MaskKind::bidirectional; }},
       {"ops.look.mask.kind", [=](Contract& c) { look(c).mask.kind = MaskKind::causal; }},
       {"ops.look.mask.sinks",
        [=](Contract& c) { look(c).mask.window = 8, look(c).mask.sinks = 2; }},
       {"ops.look.kv_from", [=](Contract& c) { look(c).kv_from = 0; }},
       {"ops.look2.relative_bias",
        [=](Contract& c) {
          c.ops["look2"] = c.ops["look"];
          c.ops["look2"].attention->relative_bias->starts.pop_back();
          c.blocks["encoder_block"].branches.push_back(c.blocks["encoder_block"].branches[0]);
          c.blocks["encoder_block"].branches.back().op = "look2";
        }},
       {"embedding.positions.order", [](Contract& c) { c.embedding.positions->order.reset(); }},
       {"embedding.positions.pad", [](Contract& c) { c.embedding.positions->pad = 1; }},
       {"embedding.positions.after_project",
        [](Contract& c) { c.embedding.positions->after_project = true; }},
       {"embedding.positions.rows",
        [](Contract& c) { c.max_positions = 1 << 25, c.embedding.positions->rows = 1 << 25; }},
       {"encoder.embedding.vocab_size", [=](Contract& c) { own(c).vocab_size = 0; }},
       {"encoder.embedding.vocab_size", [=](Contract& c) { own(c).own_tokens = false; }},
       {"encoder.embedding.d_embed",
        [=](Contract& c) { own(c).own_tokens = false, own(c).vocab_size = c.vocab_size; }},
       {"encoder.embedding.project_bias",
        [=](Contract& c) { own(c).embedding.d_embed = 64, own(c).embedding.project_in = false; }},
       {"encoder.embedding.positions.order",
        [=](Contract& c) { own(c).embedding.positions->order = SinusoidOrder::halves; }},
       {"encoder.embedding.positions.rows",
        [=](Contract& c) { own(c).embedding.positions->rows = 257; }},
       {"tokens.decoder_start", [](Contract& c) { c.tokens.decoder_start = 320; }},
       {"generation.min_new_tokens", [](Contract& c) { c.generation.min_new_tokens = -1; }},
       {"generation.max_length", [](Contract& c) { c.generation.max_length = 0; }},
       {"generation.min_length", [](Contract& c) { c.generation.min_length = -1; }},
       {"generation.n_beams", [](Contract& c) { c.generation.n_beams = 0; }},
       {"generation.n_beams", [](Contract& c) { c.generation.n_beams = kMaxBeams + 1; }},
       {"generation.length_penalty", [](Contract& c) { c.generation.length_penalty = kNan; }},
       {"generation.early_stopping", [](Contract& c) { c.generation.early_stopping = "maybe"; }},
       {"generation.no_repeat_ngram", [](Contract& c) { c.generation.no_repeat_ngram = -1; }},
       {"generation.forced_bos", [](Contract& c) { c.generation.forced_bos = 320; }},
       {"generation.forced_eos", [](Contract& c) { c.generation.forced_eos = -1; }},
       {"generation.suppress[1]", [](Contract& c) { c.generation.suppress[1] = 320; }},
       {"generation.begin_suppress[0]", [](Contract& c) { c.generation.begin_suppress[0] = -2; }},
       {"generation.bad_words[0]", [](Contract& c) { c.generation.bad_words[0].clear(); }},
       {"generation.bad_words[1][0]", [](Contract& c) { c.generation.bad_words[1][0] = 320; }}});
}

TEST_CASE("rules of embeddings and heads") {
  const auto encoder_only = [](Contract& c) {
    c.encoder->embedding = EncoderEmbedding{c.embedding, true, 10};
  };
  check_rows(
      sample("encoder.json"),
      {{"encoder.embedding", encoder_only},
       {"ops.attn.kind",
        [](Contract& c) {
          c.ropes["main"] = sample("latent.json").ropes["main"];
          c.norms["rms"] = sample("latent.json").norms["rms"];
          c.ops["attn"] = sample("latent.json").ops["attn_lite"];
        }},
       {"embedding.token_types", [](Contract& c) { c.embedding.token_types = 1 << 20; }},
       {"embedding.d_embed", [](Contract& c) { c.embedding.project_in = false; }},
       {"head.tied", [](Contract& c) { c.head.tied = true; }},
       {"head.tied", [](Contract& c) { c.head = lm_head(true); }},
       {"head.transform.d_out", [](Contract& c) { c.head.transform->d_out = 0; }},
       {"head.transform.norm", [](Contract& c) { c.head.transform->norm = "x"; }},
       {"head.pool_pad", [](Contract& c) { c.head.pool_pad = 1; }},
       {"head.pool_pad", [](Contract& c) { c.head.pool = Pool::last, c.head.pool_pad = c.vocab_size; }},
       {"pooling.dense", [](Contract& c) { c.pooling->dense.assign(9, c.pooling->dense[0]); }},
       {"pooling.dense[1].norm", [](Contract& c) { c.pooling->dense[1].norm = "x"; }},
       {"pooling.dense[0].d_out", [](Contract& c) { c.pooling->dense[0].d_out = 0; }},
       {"pooling.max_tokens", [](Contract& c) { c.pooling->max_tokens = 0; }},
       {"head.labels", [](Contract& c) { c.head.labels.clear(); }},
       {"head.labels", [](Contract& c) { c.head.labels[0] = std::string(5000, 'x'); }},
       {"head.labels", [](Contract& c) { c.head.kind = HeadKind::lm; }},
       {"head.labels", [](Contract& c) { c.head = lm_head(false), c.head.pool = Pool::mean; }},
       {"head.kind",
        [](Contract& c) {
          c.head = lm_head(false);
          c.head.kind = HeadKind::none;
          c.head.bias = true;
        }},
       {"head.kind", [](Contract& c) {
          c.head = lm_head(false);
          c.head.kind = HeadKind::none;
          c.head.logit_scale = 2;
        }}});
}

TEST_CASE("the largest contract the limits allow still counts without overflow") {
  // The largest blocks, as many as the limit of parameters allows.
  Contract contract =
      gated_decoder({kMaxVocab, kMaxWidth, 96, 2, 2, kMaxWidth / 2, kMaxWidth, false, true});
  contract.ropes["main"].dims = 2;
  contract.ropes["main"].inv_freq = {1};
  REQUIRE_NOTHROW(validate(contract, "huge"));
  const double parameters = 96.0 * (4 + 3) * 0x1p40 + 2 * 0x1p44;
  const auto formula = static_cast<double>(parameters_by_formula(contract));
  CHECK(formula == Approx(parameters).epsilon(1e-3));
  CHECK(cache_values_per_token(contract) == std::uint64_t{96} * 2 * kMaxWidth);
  // Above it the sum does not wrap around: all branches of the largest experts.
  contract.ops["ffn"] = op_of(moe_of(kMaxExperts, kMaxExpertsWidth / kMaxExperts));
  contract.decoder->layers[0].repeat = kMaxLayers;
  CHECK(static_cast<double>(parameters_by_formula(contract)) ==
        Approx(16384.0 * (3 * 0x1p44 + 4 * 0x1p40) + 2 * 0x1p44).epsilon(1e-3));
}

}  // namespace quern::contract
