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
          c.embedding.positions = PositionTable{PositionTableKind::learned, 4097, 2};
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
          attn(c).qk_norm = QkNorm{"x", false};
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
       {"encoder", [](Contract& c) { c.encoder = c.decoder; }}});
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

TEST_CASE("the largest contract the limits allow still counts without overflow") {
  Contract contract = gated_decoder(
      {kMaxVocab, kMaxWidth, kMaxLayers, 2, 2, kMaxWidth / 2, kMaxWidth, false, true});
  contract.ropes["main"].dims = 2;
  contract.ropes["main"].inv_freq = {1};
  REQUIRE_NOTHROW(validate(contract, "huge"));
  const double parameters = 16384.0 * (4 + 3) * 0x1p40 + 2 * 0x1p44;
  const auto formula = static_cast<double>(parameters_by_formula(contract));
  CHECK(formula == Approx(parameters).epsilon(1e-3));
  CHECK(cache_values_per_token(contract) == std::uint64_t{16384} * 2 * kMaxWidth);
}

}  // namespace quern::contract
