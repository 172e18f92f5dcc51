// Memory of the native sparse attention of one Runner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/rows.hpp"

namespace quern::model {

class Model;
struct CacheExtent;

// Per thread, for the choice of one token and KV head.
struct NsaThread {
  std::size_t stride = 0;        // compressed rows of the longest sequence
  LazyArray<float> scores, sum;  // [heads of a group, stride], [stride]
  LazyArray<float> blocks, sorted;
  LazyArray<std::uint32_t> chosen;
  LazyArray<float> kernel;
};

struct NsaScratch {
  NsaScratch() = default;
  NsaScratch(const Model& model, const CacheExtent& extent, std::size_t max_chunk,
             std::size_t n_threads);

  std::array<RowBuffer, 3> k, v;      // [tokens, n_kv_heads * width] of each branch
  RowBuffer gates;                    // [tokens, 3 * n_heads]
  std::array<RowBuffer, 2> attended;  // [tokens, n_heads * d_v] of the last two branches
  RowBuffer flat_k, flat_v;           // [blocks, compress_block * width]
  RowBuffer hidden, row_k, row_v;     // [blocks, compress_hidden], [blocks, width]
  LazyArray<std::uint32_t> bits;      // [tokens, n_kv_heads, words]: the chosen keys
  std::size_t words = 0;
  std::vector<NsaThread> threads;

  std::size_t bytes() const;
};

}  // namespace quern::model
