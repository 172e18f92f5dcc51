// Contract -> the exact list of tensors the weight file must hold: no more, no less.
//
// Names: "embedding.tokens", "embedding.positions", "embedding.token_types", "embedding.norm.weight",
// "embedding.project.weight"; per layer "decoder.{i}.{branch}.{part}" where {branch} is the branch's index
// in the block and {part} one of: norm_in.weight, norm_in.bias, norm_out.*, norm_after.*,
// q.weight k.weight v.weight o.weight (+ .bias), q_norm.weight k_norm.weight, sink_logits,
// gate.weight up.weight down.weight (+ .bias); "decoder.final_norm.weight|bias"; "head.weight",
// "head.bias". Shapes are [rows = out, columns = in]; vectors are [1, n].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/contract.hpp"

namespace quern::contract {

// What a tensor is for: decides its number format (convert/policy) and its line in `inspect`.
enum class TensorRole { embedding, positions, norm, attention_q, attention_k, attention_v, attention_o,
                        ffn_gate, ffn_up, ffn_down, head, bias, other };

struct TensorSpec {
  std::string name;
  std::size_t rows, columns;
  TensorRole role;
  bool matrix;        // multiplied with activations (stored in panels), else a plain float table
  std::uint64_t parameters() const { return std::uint64_t{rows} * columns; }
};

// In the order of the forward pass, which is the order of the sections in the file.
std::vector<TensorSpec> expected_tensors(const Contract& contract);

// "decoder.3.0." : the prefix of layer and branch.
std::string branch_prefix(std::string_view stack, std::size_t layer, std::size_t branch);

// Number of parameters from the architecture alone (arithmetic on widths, not a sum over
// expected_tensors: the two are compared at conversion and by `verify`).
std::uint64_t parameters_by_formula(const Contract& contract);

// Values (K and V) the cache gains per token: sum over the layers that own a cache of n_kv_heads * (d_k + d_v).
std::uint64_t cache_values_per_token(const Contract& contract);

}  // namespace quern::contract
