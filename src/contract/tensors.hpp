// Contract -> the exact list of tensors the weight file must hold: no more, no less.
//
// Names (weight and bias where the contract says so):
//   embedding.{tokens, positions, token_types}, embedding.norm.*, embedding.project.*
//   encoder.embedding.*: the same, where the encoder has an embedding of its own
//   {encoder|decoder}.relative_bias [buckets, n_heads]: one table for the stack
//   {encoder|decoder}.{i}.{branch}.{part}, {branch} the branch's index in its block, {part} one of
//     norm_in.* norm_out.* norm_after.*
//     attention  q.* k.* v.* o.*, q_norm.* k_norm.*, sink_logits, relative_bias (per layer)
//     mla        q.* or q_a.* q_a_norm.* q_b.weight; kv_a.* [kv_rank + d_rope], kv_a_norm.*,
//                k_b.weight [n_heads * d_nope, kv_rank], v_b.weight [n_heads * d_v, kv_rank], o.*;
//                indexer.{q, k, weights}.weight, indexer.k_norm.*
//     nsa        q.weight, {compress, select, window}.{k, v}.weight, gates.* [3 * n_heads],
//                compress.{k, v}_position [block, width], compress.{k, v}_{in, out}.* (phi), o.weight
//     ffn        gate.* up.* down.*
//     moe        router.*, router.select_bias, expert.{e}.{gate, up, down}.*,
//                shared.{gate, up, down}.*, shared.router.weight
//   {encoder|decoder}.final_norm.*
//   head.transform.*, head.transform.norm.*, head.*
//   pooling.{i}.*, pooling.{i}.norm.*: the layers behind the pooling
// Shapes are [rows = out, columns = in]; vectors are [1, n].
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/contract.hpp"

namespace quern::contract {

// What a tensor is for: decides its number format (convert/policy) and its line in `inspect`.
// latent: k_b and v_b of mla, used in two orders (absorbed and expanded), so kept in a float format;
// router: kept in f32.
enum class TensorRole { embedding, positions, norm, attention_q, attention_k, attention_v, attention_o, latent,
                        ffn_gate, ffn_up, ffn_down, router, head, bias, other };

std::string_view role_name(TensorRole role);  // for people: "attention q"

struct TensorSpec {
  std::string name;
  std::size_t rows, columns;
  TensorRole role;
  bool matrix;        // multiplied with activations (stored in panels), else a plain float table
  bool computed = false;  // made by the converter from the contract (sinusoids), no parameter
  std::uint64_t parameters() const { return std::uint64_t{rows} * columns; }
};

// In the order of the forward pass, which is the order of the sections in the file.
std::vector<TensorSpec> expected_tensors(const Contract& contract);

std::size_t n_buckets(const RelativeBias& bias);
std::size_t head_outputs(const Contract& contract);  // width of the logits
std::size_t head_inputs(const Contract& contract);   // width of the output matrix
std::size_t vector_width(const Contract& contract);  // of the vector that `quern embed` makes of a text
// The relative bias of a stack's common table, and its heads; nullptr and 0 without one.
const RelativeBias* stack_relative_bias(const Contract& contract, const Stack& stack);
std::size_t stack_bias_heads(const Contract& contract, const Stack& stack);

// "decoder.3.0." : the prefix of layer and branch.
std::string branch_prefix(std::string_view stack, std::size_t layer, std::size_t branch);

// Number of parameters from the architecture alone (arithmetic on widths, not a sum over
// expected_tensors: the two are compared at conversion and by `verify`).
std::uint64_t parameters_by_formula(const Contract& contract);

// Values the decoder's cache gains per token: sum over the layers that own one of n_kv_heads * (d_k + d_v)
// (attention), kv_rank + d_rope + indexer d_k (mla), 3 * n_kv_heads * (d_k + d_v) (nsa: K and V of each
// branch). Cross-attention adds nothing per token: its cache grows with the encoder's input, by
// cache_values_per_encoder_token.
std::uint64_t cache_values_per_token(const Contract& contract);
std::uint64_t cache_values_per_encoder_token(const Contract& contract);

}  // namespace quern::contract
