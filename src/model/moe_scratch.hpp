// Memory of the mixtures of experts of one Runner, and the loads it has seen. A "slot" is one of a
// token's top_k experts, a "row" the place of a slot among all slots sorted by expert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/rows.hpp"

namespace quern::model {

class Model;

struct MoeScratch {
  MoeScratch() = default;
  MoeScratch(const Model& model, std::size_t max_chunk, std::size_t n_threads);

  RowBuffer scores, shared_scores;        // [tokens, n_experts], [tokens, 1]
  LazyArray<std::uint32_t> experts;       // [tokens, top_k], ascending
  LazyArray<float> weights;               // [tokens, top_k]
  LazyArray<std::uint32_t> row_of;        // [tokens, top_k]: the row of a slot
  LazyArray<std::uint32_t> token_of;      // [rows]
  std::vector<std::uint32_t> first_row;   // [n_experts + 1]
  std::vector<std::uint32_t> active;      // experts with rows, ascending
  RowBuffer input, gate, up, out;         // [rows, width]
  std::vector<QuantizedInput> quantized;  // of input, then of up; one per activation group
  LazyArray<float> choice;                // per thread: RouterScratch
  LazyArray<std::uint32_t> groups;
  std::size_t router_stride = 0;

  // Rows that each expert got, per layer with experts: [layer][expert].
  std::vector<std::vector<std::uint64_t>> loads;

  std::size_t bytes() const;
};

}  // namespace quern::model
