// The tensor list and the formula: independent of each other, equal to published counts.
#include <set>

#include "catch.hpp"
#include "contract/tensors.hpp"
#include "random_contract.hpp"

namespace quern::contract {
namespace {

std::uint64_t sum_of(const std::vector<TensorSpec>& tensors) {
  std::uint64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.computed ? 0 : tensor.parameters();
  return sum;
}

std::vector<std::string> names_of(const Contract& contract) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : expected_tensors(contract)) names.push_back(tensor.name);
  return names;
}

// Cache values per token, layer by layer.
std::uint64_t cache_values_of(const Contract& contract) {
  std::uint64_t values = 0;
  if (!contract.decoder) return 0;
  for (const LayerRef& layer : unroll(contract, *contract.decoder))
    for (const Branch& branch : layer.block->branches) {
      const Op& op = contract.ops.at(branch.op);
      if (op.attention && !op.attention->kv_from && op.attention->source == AttentionSource::self)
        values += op.attention->n_kv_heads * (op.attention->d_k + op.attention->d_v);
      if (op.mla) values += op.mla->kv_rank + op.mla->d_rope;
      if (op.mla && op.mla->indexer) values += op.mla->indexer->d_k;
      if (op.nsa) values += 3 * op.nsa->n_kv_heads * (op.nsa->d_k + op.nsa->d_v);
    }
  return values;
}

}  // namespace

TEST_CASE("published parameter counts, by formula and by tensors") {
  struct Row {
    std::string name;
    Contract contract;
    std::uint64_t parameters;
  };
  // Counts of the published checkpoints.
  const std::vector<Row> rows = {
      {"7B, 32 heads", gated_decoder({32000, 4096, 32, 32, 32, 128, 11008, false, false}),
       6738415616},
      {"8B, 8 KV heads", gated_decoder({128256, 4096, 32, 32, 8, 128, 14336, false, false}),
       8030261248},
      {"7B with q, k, v bias", gated_decoder({152064, 3584, 28, 28, 4, 128, 18944, false, true}),
       7615616512},
      {"0.5B tied with q, k, v bias", gated_decoder({151936, 896, 24, 14, 2, 64, 4864, true, true}),
       494032768},
      {"135M tied", gated_decoder({49152, 576, 30, 9, 3, 64, 1536, true, false}), 134515008},
      {"124M with positions", gpt2_small(), 124439808}};
  for (const Row& row : rows) {
    INFO(row.name);
    validate(row.contract, row.name);
    CHECK(parameters_by_formula(row.contract) == row.parameters);
    CHECK(sum_of(expected_tensors(row.contract)) == row.parameters);
  }
  CHECK(cache_values_per_token(rows[0].contract) == 262144);
  CHECK(cache_values_per_token(rows[4].contract) == 11520);
}

TEST_CASE("the list of the samples, name by name in the order of the forward pass") {
  CHECK(names_of(sample("gpt2.json")) == std::vector<std::string>{"embedding.tokens",
                                                                  "embedding.positions",
                                                                  "embedding.norm.weight",
                                                                  "embedding.norm.bias",
                                                                  "decoder.0.0.norm_in.weight",
                                                                  "decoder.0.0.norm_in.bias",
                                                                  "decoder.0.0.q.weight",
                                                                  "decoder.0.0.q.bias",
                                                                  "decoder.0.0.k.weight",
                                                                  "decoder.0.0.k.bias",
                                                                  "decoder.0.0.v.weight",
                                                                  "decoder.0.0.v.bias",
                                                                  "decoder.0.0.o.weight",
                                                                  "decoder.0.0.o.bias",
                                                                  "decoder.0.1.up.weight",
                                                                  "decoder.0.1.up.bias",
                                                                  "decoder.0.1.down.weight",
                                                                  "decoder.0.1.down.bias",
                                                                  "decoder.0.1.norm_after.weight",
                                                                  "decoder.0.1.norm_after.bias",
                                                                  "decoder.final_norm.weight",
                                                                  "decoder.final_norm.bias",
                                                                  "head.bias"});
  const std::vector<std::string> names = names_of(sample("llama.json"));
  const auto from = std::find(names.begin(), names.end(), "decoder.2.0.norm_in.weight");
  CHECK(std::vector<std::string>(from, from + 7) ==
        std::vector<std::string>{"decoder.2.0.norm_in.weight", "decoder.2.0.q.weight",
                                 "decoder.2.0.q.bias", "decoder.2.0.o.weight",
                                 "decoder.2.1.gate.weight", "decoder.2.1.up.weight",
                                 "decoder.2.1.down.weight"});
  const auto first = std::find(names.begin(), names.end(), "decoder.0.0.q_norm.weight");
  CHECK(std::vector<std::string>(first, first + 5) ==
        std::vector<std::string>{"decoder.0.0.q_norm.weight", "decoder.0.0.k_norm.weight",
                                 "decoder.0.0.sink_logits", "decoder.0.0.o.weight",
                                 "decoder.0.0.norm_out.weight"});
  CHECK(names.back() == "head.weight");
}

TEST_CASE("the list of every other kind of op, of the encoder's ends and of heads") {
  const auto part = [](const std::vector<std::string>& names, const std::string& prefix) {
    std::vector<std::string> out;
    for (const std::string& name : names)
      if (name.find(prefix) == 0) out.push_back(name.substr(prefix.size()));
    return out;
  };
  using Names = std::vector<std::string>;
  const Names latent = names_of(sample("latent.json"));
  CHECK(part(latent, "decoder.0.0.") ==
        Names{"norm_in.weight", "q_a.weight", "q_a.bias", "q_a_norm.weight", "q_b.weight",
              "kv_a.weight", "kv_a.bias", "kv_a_norm.weight", "k_b.weight", "v_b.weight",
              "indexer.q.weight", "indexer.k.weight", "indexer.k_norm.weight",
              "indexer.k_norm.bias", "indexer.weights.weight", "o.weight", "o.bias"});
  CHECK(part(latent, "decoder.3.0.") == Names{"norm_in.weight", "q.weight", "kv_a.weight",
                                              "kv_a_norm.weight", "k_b.weight", "v_b.weight",
                                              "o.weight"});
  CHECK(part(latent, "decoder.1.1.expert.7.") ==
        Names{"gate.weight", "up.weight", "down.weight", "down.bias"});
  CHECK(part(latent, "decoder.1.1.router") == Names{".weight", ".bias", ".select_bias"});
  CHECK(part(latent, "decoder.1.1.shared.") ==
        Names{"gate.weight", "up.weight", "down.weight", "router.weight"});
  CHECK(part(latent, "decoder.3.1.expert.5.") == Names{"up.weight", "down.weight"});
  CHECK(part(names_of(sample("sparse.json")), "decoder.0.0.") == Names{"norm_in.weight",
                                                                       "q.weight",
                                                                       "compress.k.weight",
                                                                       "compress.v.weight",
                                                                       "select.k.weight",
                                                                       "select.v.weight",
                                                                       "window.k.weight",
                                                                       "window.v.weight",
                                                                       "compress.k_position",
                                                                       "compress.k_in.weight",
                                                                       "compress.k_in.bias",
                                                                       "compress.k_out.weight",
                                                                       "compress.k_out.bias",
                                                                       "compress.v_position",
                                                                       "compress.v_in.weight",
                                                                       "compress.v_in.bias",
                                                                       "compress.v_out.weight",
                                                                       "compress.v_out.bias",
                                                                       "gates.weight",
                                                                       "gates.bias",
                                                                       "o.weight"});
  const Names both = names_of(sample("encoder_decoder.json"));
  CHECK(part(both, "embedding.") == Names{"tokens", "positions", "norm.weight"});
  CHECK(part(both, "encoder.embedding.") ==
        Names{"tokens", "positions", "norm.weight", "project.weight", "project.bias"});
  CHECK(part(both, "encoder.relative_bias") == Names{""});
  CHECK(part(both, "decoder.1.0.relative_bias") == Names{""});
  CHECK(part(both, "decoder.1.1.k") == Names{".weight", ".bias"});
  CHECK(part(both, "head.") == Names{"bias"});
  const Names encoder = names_of(sample("encoder.json"));
  CHECK(part(encoder, "embedding.") == Names{"tokens", "positions", "token_types", "norm.weight",
                                             "norm.bias", "project.weight", "project.bias"});
  CHECK(part(encoder, "head.") == Names{"transform.weight", "transform.bias",
                                        "transform.norm.weight", "transform.norm.bias", "weight",
                                        "bias"});
  // Sinusoids are made by the converter: tensors, but no parameters.
  for (const TensorSpec& tensor : expected_tensors(sample("encoder.json")))
    CHECK(tensor.computed == (tensor.name == "embedding.positions"));
  CHECK(cache_values_per_encoder_token(sample("encoder_decoder.json")) == 88);
}

TEST_CASE("formula = sum of the tensors, names unique, cache values add up, on random contracts") {
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    const Contract contract = RandomContract(seed).make();
    INFO("seed " << seed);
    REQUIRE_NOTHROW(validate(contract, "random"));
    const std::vector<TensorSpec> tensors = expected_tensors(contract);
    REQUIRE(sum_of(tensors) == parameters_by_formula(contract));
    std::set<std::string> names;
    for (const TensorSpec& tensor : tensors) {
      REQUIRE(names.insert(tensor.name).second);
      REQUIRE((tensor.rows > 0 && tensor.columns > 0));
    }
    REQUIRE(cache_values_per_token(contract) == cache_values_of(contract));
    const std::string text = write_contract(contract);
    const Contract back = read_contract(text, "random");
    REQUIRE(write_contract(back) == text);
    REQUIRE(structural_hash(back) == structural_hash(contract));
  }
}

TEST_CASE("unroll repeats patterns and points shared repetitions at the first") {
  Contract contract = gated_decoder({100, 64, 1, 4, 2, 16, 96, true, false});
  contract.blocks["local"] = contract.blocks["block"];
  contract.decoder->layers = {{{"block"}, 2, false}, {{"local", "block"}, 3, true}};
  const std::vector<LayerRef> layers = unroll(contract, *contract.decoder);
  std::string text;
  for (const LayerRef& layer : layers) text += base::cat(*layer.block_name, layer.weights_of, " ");
  CHECK(text == "block0 block1 local2 block3 local2 block3 local2 block3 ");
  // Sharing leaves the cache per layer and counts the weights once.
  CHECK(cache_values_per_token(contract) == 8 * 2 * (16 + 16));
  Contract plain = contract;
  plain.decoder->layers = {{{"block"}, 4, false}};
  CHECK(parameters_by_formula(contract) == parameters_by_formula(plain));
}

}  // namespace quern::contract
