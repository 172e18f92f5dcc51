// Recipes against checkpoints: every fixture resolves, and whatever is missing, unknown or surplus
// is named.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "contract/json.hpp"
#include "contract/tensors.hpp"
#include "convert/recipe.hpp"
#include "memory_checkpoint.hpp"
#include "recipe_cases.hpp"

namespace base = quern::base;
namespace checkpoint = quern::checkpoint;
namespace contract = quern::contract;
namespace convert = quern::convert;
using quern::test::config_of;
using quern::test::contains;
using quern::test::copy_of_fixture;
using quern::test::error_of;
using quern::test::MemoryCheckpoint;
using quern::test::recipes;

namespace {

const char* const kDecoders[] = {"llama2",
                                 "llama3",
                                 "llama-wide",
                                 "llama-linear-pi",
                                 "llama-dynamic-ntk",
                                 "mistral-swa",
                                 "gpt2",
                                 "opt",
                                 "starcoder2",
                                 "gpt-j",
                                 "gpt-neox",
                                 "phi",
                                 "stablelm",
                                 "falcon-mqa",
                                 "falcon-new",
                                 "bloom-alibi",
                                 "mpt",
                                 "qwen2",
                                 "qwen2-yarn",
                                 "qwen3",
                                 "glm",
                                 "glm4",
                                 "gemma",
                                 "gemma2",
                                 "gemma3",
                                 "phi3",
                                 "olmo2",
                                 "cohere",
                                 "granite",
                                 "smollm3-nope",
                                 "falcon-rw-alibi",
                                 "phi3-longrope",
                                 "mixtral",
                                 "qwen2-moe",
                                 "qwen3-moe",
                                 "gpt-oss-sinks",
                                 "deepseek-v2",
                                 "deepseek-v3",
                                 "deepseek-v3.2-dsa",
                                 "nsa",
                                 "ernie4_5",
                                 "glm4-moe",
                                 "falcon-alibi-12",
                                 "opt-projected",
                                 "bart-decoder",
                                 "bloom-normed"};

convert::Resolved resolve(const checkpoint::Checkpoint& source,
                          const convert::Adaptations& wishes = {}) {
  return convert::resolve(convert::match_recipe(recipes(), source, ""), source, wishes);
}

// The error after one change of a fixture's configuration (a merge patch: null removes).
std::string error_with(const std::string& fixture, const char* patch) {
  auto source = copy_of_fixture(fixture);
  base::Json config = config_of(*source);
  config.merge_patch(base::parse_json(patch, "patch"));
  source->set_config(config.dump());
  return error_of([&] { resolve(*source); });
}

const char* kGgufLlama = R"({
  "general.architecture": "llama", "general.name": "Tiny", "llama.block_count": 1, "llama.context_length": 64,
  "llama.embedding_length": 32, "llama.feed_forward_length": 48, "llama.attention.head_count": 4,
  "llama.attention.head_count_kv": 2, "llama.rope.freq_base": 10000.0,
  "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.dimension_count": 8})";

std::unique_ptr<MemoryCheckpoint> gguf_llama() {
  auto source = std::make_unique<MemoryCheckpoint>(checkpoint::SourceKind::gguf, kGgufLlama);
  source->add("token_embd.weight", {96, 32}, 1);
  for (const char* norm : {"attn_norm", "ffn_norm"})
    source->add(std::string("blk.0.") + norm + ".weight", {32});
  source->add("blk.0.attn_q.weight", {32, 32});
  source->add("blk.0.attn_k.weight", {16, 32});
  source->add("blk.0.attn_v.weight", {16, 32});
  source->add("blk.0.attn_output.weight", {32, 32});
  source->add("blk.0.ffn_gate.weight", {48, 32});
  source->add("blk.0.ffn_up.weight", {48, 32});
  source->add("blk.0.ffn_down.weight", {32, 48});
  source->add("output_norm.weight", {32});
  return source;
}

}  // namespace

TEST_CASE("every fixture resolves and its parameters add up") {
  for (const char* name : kDecoders) {
    CAPTURE(name);
    const auto source = checkpoint::open_checkpoint(quern::test::fixture_path(name));
    const convert::Resolved resolved = resolve(*source);
    const std::vector<contract::TensorSpec> specs = contract::expected_tensors(resolved.contract);
    std::uint64_t parameters = 0, stored = 0;
    for (const contract::TensorSpec& spec : specs) parameters += spec.parameters();
    for (const checkpoint::SourceTensor& tensor : source->tensors())
      if (std::find(resolved.ignored.begin(), resolved.ignored.end(), tensor.name) == resolved.ignored.end())
        stored += tensor.values;  // a decoder alone has no use for its cross-attention
    CHECK(parameters == contract::parameters_by_formula(resolved.contract));
    CHECK(parameters == stored);
    REQUIRE(resolved.tensors.size() == specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i)
      CHECK(resolved.tensors[i].canonical == specs[i].name);
    for (const std::string& notice : resolved.notices) UNSCOPED_INFO(notice);
    const bool said = std::string(name).starts_with("falcon") && resolved.contract.ropes.empty();  // twice or once: told
    CHECK(resolved.notices.size() == (said ? 1u : 0u));
    CHECK(resolved.unknown_keys.empty());
  }
}

TEST_CASE("a configuration alone gives the contract that the checkpoint gives") {
  for (const char* name : kDecoders) {
    CAPTURE(name);
    const auto source = checkpoint::open_checkpoint(quern::test::fixture_path(name));
    const convert::Recipe recipe = convert::match_recipe(recipes(), *source, "");
    const contract::Contract bare =
        convert::resolve_config(recipe, source->config_json(), source->where());
    CHECK(contract::write_contract(bare) == contract::write_contract(resolve(*source).contract));
  }
}

TEST_CASE("layers that differ become patterns, and a scale of each layer a block of each") {
  const contract::Contract gemma = resolve(*copy_of_fixture("gemma3")).contract;
  REQUIRE(gemma.decoder->layers.size() == 2);
  CHECK(gemma.decoder->layers[0].pattern == std::vector<std::string>{"sliding_attention"});
  CHECK(gemma.decoder->layers[0].repeat == 5);
  CHECK(gemma.ropes.at("main").rule == "linear");
  CHECK(gemma.ropes.at("local").rule == "default");
  CHECK(gemma.ops.at("local").attention->mask.window == 16U);
  CHECK(gemma.ops.at("attn").attention->scale == 1 / std::sqrt(24.0));

  auto source = copy_of_fixture("gpt2");
  base::Json config = config_of(*source);
  config["scale_attn_by_inverse_layer_idx"] = true;
  source->set_config(config.dump());
  const contract::Contract gpt = resolve(*source).contract;
  CHECK(gpt.ops.count("attn") == 0);
  CHECK(gpt.ops.at("attn_by_layer_1").attention->scale ==
        gpt.ops.at("attn_by_layer_0").attention->scale / 2);
}

TEST_CASE("a model inside a wrapper: its configuration, its prefix, what is left out") {
  auto source = copy_of_fixture("gemma3");
  base::Json config;
  config["architectures"] = {"Gemma3ForConditionalGeneration"};
  config["model_type"] = "gemma3";
  config["text_config"] = config_of(*source);
  config["text_config"].erase("architectures");
  config["vision_config"] = {{"hidden_size", 1152}};
  source->set_config(config.dump());
  const std::size_t n_tensors = source->tensors().size();
  for (const char* wrapper : {"language_model.", "model.language_model."}) {
    auto copy = copy_of_fixture("gemma3");
    copy->set_config(config.dump());
    copy->rename([&](const std::string& name) {
      return std::string(wrapper) +
             (wrapper[0] == 'm' ? name.substr(std::string("model.").size()) : name);
    });
    copy->add("vision_tower.vision_model.post_layernorm.weight", {4});
    const convert::Resolved resolved = resolve(*copy);
    CHECK(resolved.tensors.size() == n_tensors);
    CHECK(resolved.ignored.size() == 1);
    CHECK(resolved.unknown_keys.empty());
  }
}

TEST_CASE("the contract says what the configuration says") {
  const auto of = [](const char* name) { return resolve(*copy_of_fixture(name)).contract; };
  const contract::Contract llama = of("llama2");
  const contract::Attention& attention = *llama.ops.at("attn").attention;
  CHECK(llama.d_model == 64);
  CHECK(llama.max_positions == 256);
  CHECK_FALSE(llama.head.tied);
  CHECK(attention.d_k == 16);
  CHECK(attention.scale == 0.25);
  CHECK(attention.rope == "main");
  CHECK_FALSE(attention.mask.window);
  CHECK(llama.norms.at("rms").eps == 1e-6);
  CHECK(llama.ropes.at("main").layout == contract::RopeLayout::half);
  CHECK(llama.decoder->layers.at(0).repeat == 2);
  CHECK(llama.ops.at("ffn").ffn->activation == contract::Activation::silu);

  CHECK(of("llama3").head.tied);
  CHECK(of("llama3").ropes.at("main").rule == "llama3");
  CHECK(of("llama3").ropes.at("main").base == 5e5);
  CHECK(of("llama-wide").ops.at("attn").attention->d_k == 80);
  CHECK(of("llama-linear-pi").ropes.at("main").inv_freq[0] == 0.25F);
  CHECK(of("llama-dynamic-ntk").ropes.at("main").switch_rule->original_length == 32);
  CHECK(of("llama-dynamic-ntk").max_positions == 128);
  CHECK(of("mistral-swa").ops.at("attn").attention->mask.window == 16U);

  const contract::Contract gpt = of("gpt2");
  REQUIRE(gpt.embedding.positions);
  CHECK(gpt.embedding.positions->rows == 256);
  CHECK(gpt.norms.at("ln").bias);
  CHECK(gpt.ops.at("ffn").ffn->activation == contract::Activation::gelu_tanh);
  CHECK_FALSE(gpt.ops.at("ffn").ffn->gated);
  CHECK(gpt.ropes.empty());
  CHECK(gpt.head.tied);
}

TEST_CASE("a configuration alone gives the same contract") {
  const auto source = copy_of_fixture("llama3");
  const convert::Recipe recipe = convert::match_recipe(recipes(), *source, "");
  const contract::Contract alone =
      convert::resolve_config(recipe, source->config_json(), "config.json");
  CHECK(contract::parameters_by_formula(alone) ==
        contract::parameters_by_formula(resolve(*source).contract));
  CHECK(alone.ropes.at("main").inv_freq == resolve(*source).contract.ropes.at("main").inv_freq);
}

TEST_CASE("wrong configurations are refused by name") {
  CHECK(contains(error_with("llama2", R"({"hidden_size": null})"), "embed_tokens"));  // 4096 where it is left out
  CHECK(contains(error_with("transformer-halves", R"({"d_model": null})"), "embedding.tokens"));  // 1024
  CHECK(contains(error_with("llama2", R"({"hidden_act": "sillu"})"), "did you mean \"silu\"?"));
  CHECK(contains(error_with("llama2", R"({"rope_parameters": {"rope_type": "yarm"}})"),
                 "did you mean \"yarn\"?"));
  CHECK(contains(error_with("llama2", R"({"num_attention_heads": 3, "head_dim": null})"),
                 "multiple"));
  CHECK(contains(error_with("llama2", R"({"vocab_size": 321})"), "embed_tokens"));
  CHECK(contains(error_with("llama2", R"({"vocab_size": -1})"), "vocab_size"));
  CHECK(contains(error_with("llama2", R"({"hidden_size": 64.5})"), "d_model"));
  CHECK(contains(error_with("llama2", R"({"hidden_size": 0})"), "; from $hidden_size"));  // what the user wrote
  CHECK(contains(error_with("llama2", R"({"intermediate_size": -1})"), "; from $intermediate_size"));
  CHECK(contains(error_with("llama2", R"({"rms_norm_eps": 0})"), "; from $rms_norm_eps"));
  CHECK(contains(error_with("llama2", R"({"num_hidden_layers": 0})"), "; from $num_hidden_layers"));
  CHECK(contains(error_with("llama2", R"({"head_dim": 1000000})"), "; from $head_dim"));
  CHECK(contains(error_with("llama2", R"({"hidden_size": "64"})"), "64"));
  CHECK(contains(error_with("llama2", R"({"rms_norm_eps": "tiny"})"), "eps"));
  CHECK(contains(error_with("llama2", R"({"num_hidden_layers": 3})"), "missing tensor"));
  CHECK(contains(error_with("llama2", R"({"num_hidden_layers": 1})"), "neither used"));
  CHECK(contains(error_with("llama2", R"({"num_hidden_layers": 1000000000000})"), "number of layers"));
  CHECK(contains(error_with("llama2", R"({"attention_bias": true})"), "q_proj.bias"));
  CHECK(contains(error_with("llama2", R"({"num_key_value_heads": 3})"), "n_kv_heads"));
  CHECK(contains(error_with("llama2", R"({"architectures": ["LlamaForCausalLn"]})"),
                 "did you mean \"LlamaForCausalLM\"?"));
  const std::string strange =
      error_with("llama2", R"({"architectures": ["Zebra"], "model_type": "zebra", "stripes": 40})");
  CHECK(contains(strange, "nearest recipe: llama (unknown to it: configuration keys stripes)"));
  CHECK(contains(strange, "--arch-as"));
  CHECK_FALSE(contains(strange, "did you mean"));
  CHECK_FALSE(contains(error_with("llama2", R"({"architectures": ["ZebraForCausalLM"]})"), "did you mean"));
  // Keys of LLaMA over the tensors of another family: the tensors tell.
  const std::string masked = error_with("gpt2", R"({"architectures": ["Zebra"], "model_type": "zebra", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
      "rms_norm_eps": 1e-5, "rope_theta": 10000, "hidden_act": "silu", "head_dim": 16, "attention_bias": false})");
  CHECK(contains(masked, "nearest recipe: gpt2"));
  CHECK(contains(error_with("llama2", R"({"architectures": ["MambaForCausalLM"]})"),
                 "out of scope: state-space"));
  CHECK(contains(error_with("llama2", R"({"architectures": ["Qwen2VLForConditionalGeneration"]})"),
                 "vision"));
  CHECK(contains(error_with("llama2", R"({"architectures": null, "model_type": "rwkv7"})"),
                 "linear attention"));
  CHECK(contains(error_with("llama2", R"({"architectures": null, "model_type": null})"),
                 "architectures"));
  CHECK(contains(error_with("llama2", R"({"architectures": ["NovelForCausalLM"]})"), "--arch-as"));
}

TEST_CASE("tensors: missing, surplus, ignored, of the wrong shape") {
  auto source = copy_of_fixture("llama2");
  source->add("model.layers.0.self_attn.rotary_emb.inv_freq", {8});
  CHECK(resolve(*source).ignored.size() == 1);
  source->add("model.layers.0.extra.weight", {8, 8});
  CHECK(contains(error_of([&] { resolve(*source); }), "model.layers.0.extra.weight"));
  source->remove("model.layers.0.extra.weight");
  source->remove("model.norm.weight");
  CHECK(contains(error_of([&] { resolve(*source); }), "decoder.final_norm.weight"));
  source->add("model.norm.weight", {65});
  CHECK(contains(error_of([&] { resolve(*source); }), "[65]"));
  source->remove("model.norm.weight");
  source->add("model.norm.weight", {1, 1, 4, 64});
  CHECK(contains(error_of([&] { resolve(*source); }), "model.norm.weight"));
}

TEST_CASE("names with and without the base prefix") {
  auto source = copy_of_fixture("gpt2");
  source->add("transformer.h.0.attn.bias", {1, 1, 4, 4});
  source->add("transformer.h.1.attn.masked_bias", {});
  CHECK(resolve(*source).ignored.size() == 2);
  source->rename([](const std::string& name) {
    return name.compare(0, 12, "transformer.") == 0 ? name.substr(12) : name;
  });
  const convert::Resolved resolved = resolve(*source);
  CHECK(resolved.ignored.size() == 2);
  for (const convert::TensorSource& tensor : resolved.tensors)
    if (tensor.canonical == "decoder.1.0.k.bias") {
      CHECK(tensor.from == std::vector<std::string>{"h.1.attn.c_attn.bias"});
      CHECK(tensor.transforms == std::vector<std::string>{"transpose", "part 1 of 3"});
    }
}

TEST_CASE("the tensors decide whether the head is tied, not the configuration") {
  auto source = copy_of_fixture("llama3");
  REQUIRE(resolve(*source).contract.head.tied);
  const checkpoint::SourceTensor tokens = *source->find("model.embed_tokens.weight");
  source->add("lm_head.weight", tokens.type, tokens.shape,
              std::string(base::as_text(tokens.bytes)));
  const convert::Resolved equal = resolve(*source);
  CHECK(equal.contract.head.tied);
  CHECK(equal.notices.size() == 1);
  source->remove("lm_head.weight");
  std::string other(base::as_text(tokens.bytes));
  other[0] = static_cast<char>(other[0] ^ 1);
  source->add("lm_head.weight", tokens.type, tokens.shape, other);
  CHECK_FALSE(resolve(*source).contract.head.tied);
  source->remove("model.embed_tokens.weight");
  const convert::Resolved only_head = resolve(*source);
  CHECK(only_head.contract.head.tied);
  CHECK(only_head.tensors[0].from == std::vector<std::string>{"lm_head.weight"});
}

TEST_CASE("GGUF names and keys resolve through the same recipe") {
  auto source = gguf_llama();
  const convert::Resolved resolved = resolve(*source);
  const contract::Contract& model = resolved.contract;
  CHECK(model.name == "Tiny");
  CHECK(model.vocab_size == 96);
  CHECK(model.head.tied);
  CHECK(model.ropes.at("main").layout == contract::RopeLayout::pairs);
  CHECK(model.ropes.at("main").rule == "default");
  CHECK_FALSE(model.ops.at("attn").attention->bias_q);
  CHECK(resolved.notices.empty());

  source->add("rope_freqs.weight", {4}, 2);
  source->add("output.weight", {96, 32}, 0.5F);
  const contract::Contract divided = resolve(*source).contract;
  CHECK(divided.ropes.at("main").inv_freq[0] == 0.5F);
  CHECK(divided.ropes.at("main").rule == "llama3");
  CHECK_FALSE(divided.head.tied);

  for (const char* bias : {"attn_q", "attn_k", "attn_v"})
    source->add(std::string("blk.0.") + bias + ".bias", {bias[5] == 'q' ? 32U : 16U});
  const contract::Attention biased = *resolve(*source).contract.ops.at("attn").attention;
  CHECK(biased.bias_q);
  CHECK_FALSE(biased.bias_o);
}

TEST_CASE("a fused GGUF matrix is split by rows and needs no transpose") {
  MemoryCheckpoint source(checkpoint::SourceKind::gguf, R"({
      "general.architecture": "gpt2", "gpt2.block_count": 1, "gpt2.context_length": 16,
      "gpt2.embedding_length": 32, "gpt2.feed_forward_length": 64, "gpt2.attention.head_count": 4,
      "gpt2.attention.layer_norm_epsilon": 1e-5})");
  source.add("token_embd.weight", {40, 32}, 1);
  source.add("output.weight", {40, 32}, 1);
  source.add("position_embd.weight", {16, 32});
  const auto linear = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    source.add(name + ".weight", {rows, columns});
    source.add(name + ".bias", {rows});
  };
  for (const char* norm : {"blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"})
    for (const char* part : {".weight", ".bias"}) source.add(std::string(norm) + part, {32});
  linear("blk.0.attn_qkv", 96, 32);
  linear("blk.0.attn_output", 32, 32);
  linear("blk.0.ffn_up", 64, 32);
  linear("blk.0.ffn_down", 32, 64);
  const convert::Resolved resolved = resolve(source);
  CHECK(resolved.contract.vocab_size == 40);
  CHECK(resolved.contract.head.tied);
  CHECK(resolved.contract.embedding.positions->rows == 16);
  for (const convert::TensorSource& tensor : resolved.tensors)
    if (tensor.from.front().find("attn_qkv") != std::string::npos)
      CHECK(tensor.transforms.size() == 1);
}

TEST_CASE("GGUF scaling keys, windows and refusals") {
  const auto with = [](const char* patch) {
    auto source = gguf_llama();
    base::Json config = config_of(*source);
    config.merge_patch(base::parse_json(patch, "patch"));
    source->set_config(config.dump());
    return source;
  };
  CHECK(resolve(*with(R"({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0})"))
            .contract.ropes.at("main")
            .inv_freq[0] == 0.25F);
  CHECK(
      resolve(*with(R"({"llama.rope.scale_linear": 2.0})")).contract.ropes.at("main").inv_freq[0] ==
      0.5F);
  const contract::Contract yarn =
      resolve(*with(R"({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0,
      "llama.rope.scaling.original_context_length": 64})"))
          .contract;
  CHECK(yarn.ropes.at("main").rule == "yarn");
  CHECK(yarn.max_positions == 256);
  CHECK(resolve(*with(R"({"llama.attention.sliding_window": 16})"))
            .contract.ops.at("attn")
            .attention->mask.window == 16U);
  CHECK_FALSE(resolve(*with(R"({"llama.attention.sliding_window": 0})"))
                  .contract.ops.at("attn")
                  .attention->mask.window);
  // A mixture of experts by its keys: the tensors of a dense model are not enough for it.
  CHECK(contains(error_of([&] {
                   resolve(*with(R"({"llama.expert_count": 8, "llama.expert_used_count": 2})"));
                 }),
                 "ffn_gate_inp"));
  CHECK(contains(error_of([&] { resolve(*with(R"({"llama.rope.scaling.type": "twisted"})")); }),
                 "twisted"));
  CHECK(contains(error_of([&] { resolve(*with(R"({"general.architecture": "mamba"})")); }),
                 "state-space"));
  CHECK(contains(error_of([&] { resolve(*with(R"({"general.architecture": "llama\n"})")); }),
                 "llama\\x0a"));
  CHECK(resolve(*with(R"({"llama.logit_scale": 8.0})")).unknown_keys ==
        std::vector<std::string>{"llama.logit_scale"});
}

TEST_CASE("recipes: extends, and what a broken one says") {
  const convert::Recipe child = convert::parse_recipe(R"({
      "recipe": 1, "about": "as its parent, but for the norm", "extends": "llama",
      "match": {"hf": ["ChildForCausalLM"], "gguf": []},
      "contract": {"norms": {"rms": {"weight_offset": 1}}}})",
                                                      "dir/child.json");
  CHECK(child.name == "child");
  const convert::Resolved resolved = convert::resolve(child, *copy_of_fixture("llama2"), {});
  CHECK(resolved.contract.norms.at("rms").weight_offset == 1);
  CHECK(resolved.contract.family == "child");

  const auto broken = [](const std::string& text) {
    return error_of([&] { convert::parse_recipe(text, "r.json"); });
  };
  CHECK(contains(broken("{"), "JSON"));
  CHECK(contains(broken("[]"), "r.json"));
  CHECK(contains(broken(R"({"recipe": 2})"), "recipe"));
  CHECK(contains(broken(R"({"recipe": 1, "about": "", "extends": "nothing"})"), "nothing"));
  CHECK(contains(
      broken(
          R"~({"recipe": 1, "about": "", "extends": "llama", "contract": {"head": {"tied": "power($x)"}}})~"),
      "power"));
  CHECK(contains(
      broken(
          R"({"recipe": 1, "about": "", "extends": "llama", "sources": {"hf": {"tensor": {}}}})"),
      "tensor"));
  CHECK(contains(broken(R"({"recipe": 1, "about": "", "extends": "llama", "match": {"hf": "x"}})"),
                 "match.hf"));
  CHECK(contains(
      broken(
          R"({"recipe": 1, "about": "", "extends": "llama", "sources": {"hf": {"values": []}}})"),
      "values"));

  const auto wrong = [](const std::string& patch) {
    const convert::Recipe recipe = convert::parse_recipe(
        R"({"recipe": 1, "about": "", "extends": "llama", )" + patch + "}", "r.json");
    return error_of([&] { convert::resolve(recipe, *copy_of_fixture("llama2"), {}); });
  };
  CHECK(contains(wrong(R"("contract": {"ops": {"attn": {"n_head": 4}}})"), "n_head"));
  CHECK(contains(
      wrong(
          R"("contract": {"blocks": {"block": {"branches": [{"norm_in": "rns", "op": "attn"}]}}})"),
      "rns"));
  CHECK(contains(wrong(R"("contract": {"kind": "decodr"})"), "decodr"));
  CHECK(contains(wrong(R"("contract": {"decoder": {"layers": 3}})"), "layer groups"));
  CHECK(contains(wrong(R"("contract": {"blocks": 3})"), "blocks"));
  CHECK(contains(
      wrong(
          R"("sources": {"hf": {"tensors": {"decoder.{l}.0.q.*": {"from": "{p}layers.{l}.self_attn.q_proj.*", "then": ["rotate"]}}}})"),
      "rotate"));
  CHECK(contains(wrong(R"("sources": {"hf": {"tensors": {"decoder.{l}.0.q.*": 3}}})"), "q"));
}

TEST_CASE("every built-in recipe lists distinct names") {
  std::set<std::string> hf, gguf;
  for (const convert::Recipe& recipe : recipes()) {
    for (const std::string& name : recipe.hf_names) CHECK(hf.insert(name).second);
    for (const std::string& name : recipe.gguf_names) CHECK(gguf.insert(name).second);
  }
  CHECK(convert::out_of_scope().size() >= 5);
}

namespace {

const char* const kHostile[] = {
    "null",  "-1",   "0",  "1e300", "-0.5", "4611686018427387904", "18446744073709551615",  "true",
    "\"x\"", "\"\"", "[]", "[[]]",  "{}",   "{\"rope_type\": []}", "[\"LlamaForCausalLM\"]"};

// Every place inside a document, as pointers.
void collect_places(const base::Json& value, const std::string& at,
                    std::vector<std::string>& places) {
  places.push_back(at);
  if (value.is_object())
    for (const auto& [key, element] : value.items()) {
      std::string escaped;
      for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      collect_places(element, at + "/" + escaped, places);
    }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      collect_places(value[i], at + "/" + std::to_string(i), places);
}

// Replaces each place by each hostile value; `use` may succeed or throw base::Error, nothing else.
void try_every_change(const base::Json& document,
                      const std::function<void(const base::Json&)>& use) {
  std::vector<std::string> places;
  collect_places(document, "", places);
  for (const std::string& place : places)
    for (const char* hostile : kHostile) {
      base::Json changed = document;
      changed[base::Json::json_pointer(place)] = base::parse_json(hostile, "hostile");
      CAPTURE(place, hostile);
      try {
        use(changed);
      } catch (const base::Error& error) {
        CHECK(error.code() == base::ExitCode::input);
      }
    }
}

}  // namespace

TEST_CASE("any value at any place of a configuration resolves or is an input error") {
  for (const char* name : {"llama3", "llama-linear-pi", "gpt2", "mistral-swa", "gemma3", "opt",
                           "mpt", "falcon-new", "smollm3-nope", "phi3-longrope"}) {
    auto source = copy_of_fixture(name);
    try_every_change(config_of(*source), [&](const base::Json& changed) {
      source->set_config(changed.dump());
      resolve(*source);
    });
  }
  auto source = gguf_llama();
  try_every_change(config_of(*source), [&](const base::Json& changed) {
    source->set_config(changed.dump());
    resolve(*source);
  });
}

TEST_CASE("any value at any place of a recipe resolves or is an input error") {
  const auto source = copy_of_fixture("llama2");
  base::Json document;
  for (const convert::Recipe& recipe : recipes())
    if (recipe.name == "llama") document = recipe.document;
  try_every_change(document, [&](const base::Json& changed) {
    convert::resolve(convert::parse_recipe(changed.dump(), "r.json"), *source, {});
  });
}
