// The tensor list and the formula: independent of each other, equal to published counts.
#include <set>

#include "catch.hpp"
#include "contract/tensors.hpp"
#include "random_contract.hpp"

namespace quern::contract {
namespace {

std::uint64_t sum_of(const std::vector<TensorSpec>& tensors) {
  std::uint64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.parameters();
  return sum;
}

std::vector<std::string> names_of(const Contract& contract) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : expected_tensors(contract)) names.push_back(tensor.name);
  return names;
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
    std::uint64_t values = 0;
    for (const LayerRef& layer : unroll(contract, *contract.decoder))
      for (const Branch& branch : layer.block->branches)
        if (const auto& op = contract.ops.at(branch.op).attention; op && !op->kv_from)
          values += op->n_kv_heads * (op->d_k + op->d_v);
    REQUIRE(values == cache_values_per_token(contract));
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
