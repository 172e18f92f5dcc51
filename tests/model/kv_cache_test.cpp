// The paged cache without a forward pass: addresses, roll-back, windows, bytes.
#include <set>

#include "catch.hpp"
#include "model/kv_cache.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

namespace {

using kernels::CacheType;
using kernels::kBlockTokens;

using Layers = std::vector<model::CacheLayerSpec>;

void append(model::KvCache& cache, std::size_t sequence, std::size_t n) {
  cache.reserve(sequence, n);
  cache.commit(sequence, n);
}

std::uint64_t expected_payload(const Layers& layers, std::uint64_t tokens,
                               std::uint64_t value_bytes) {
  std::uint64_t values = 0;
  for (const auto& layer : layers) values += layer.n_kv_heads * (layer.d_k + layer.d_v);
  return tokens * values * value_bytes;
}

}  // namespace

TEST_CASE("blocks of different layers, heads, sequences and positions never overlap", "[cache]") {
  const Layers layers = {{2, 12, 20, {}, 0}, {3, 64, 64, {}, 0}, {1, 8, 8, 40, 2}};
  model::KvCache cache(layers, {CacheType::int8, CacheType::f16, 3, 100});
  std::vector<std::pair<std::byte*, std::byte*>> ranges;
  for (std::size_t sequence = 0; sequence < 3; ++sequence) cache.reserve(sequence, 100);
  for (std::size_t layer = 0; layer < 3; ++layer)
    for (std::size_t sequence = 0; sequence < 3; ++sequence)
      for (std::size_t head = 0; head < layers[layer].n_kv_heads; ++head)
        for (std::size_t position = 0; position < 100; position += kBlockTokens) {
          std::byte* block = cache.block(layer, sequence, head, position);
          CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
          CHECK(block == cache.block(layer, sequence, head, position + 3));
          ranges.emplace_back(block, block + cache.layout(layer).block_bytes);
        }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i - 1].second <= ranges[i].first);
}

TEST_CASE("cache bytes follow the formula for every type, batch and length", "[cache]") {
  const Layers layers = {{2, 12, 20, {}, 0}, {3, 64, 32, {}, 0}};
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16, CacheType::int8,
                               CacheType::fp8_e4m3, CacheType::fp8_e5m2, CacheType::int4}) {
    for (const std::size_t n_sequences : {1, 3}) {
      model::KvCache cache(layers, {type, type, n_sequences, 500});
      std::uint64_t tokens = 0;
      for (std::size_t s = 0; s < n_sequences; ++s) {
        append(cache, s, 33 + 100 * s);
        tokens += 33 + 100 * s;
      }
      const model::CacheBytes bytes = cache.bytes();
      CHECK(2 * bytes.payload == expected_payload(layers, tokens, kernels::cache_value_bits(type) / 4));
      const std::uint64_t scales = type == CacheType::int4            ? 2 * (2 * (1 + 1) + 3 * (2 + 1))
                                   : kernels::cache_has_scales(type) ? (2 + 3) * 2 * sizeof(float)
                                                                     : 0;
      CHECK(bytes.scales == tokens * scales);
      std::uint64_t blocks = 0;
      for (std::size_t s = 0; s < n_sequences; ++s) {
        const std::size_t n = (cache.length(s) + kBlockTokens - 1) / kBlockTokens;
        blocks += n * (2 * cache.layout(0).block_bytes + 3 * cache.layout(1).block_bytes);
      }
      CHECK(bytes.payload + bytes.scales + bytes.rounding == blocks);
      for (std::size_t s = 0; s < n_sequences; ++s) cache.clear(s);
      CHECK(cache.bytes().payload + cache.bytes().rounding == 0);
    }
  }
}

TEST_CASE("a windowed layer holds a bounded number of blocks and its sinks", "[cache]") {
  const std::size_t window = 50, sinks = 3;
  const Layers layers = {{1, 16, 16, window, sinks}};
  model::KvCache cache(layers, {CacheType::int8, CacheType::int8, 1, 10000});
  std::uint64_t largest = 0;
  std::set<std::byte*> addresses;
  std::byte* sink = nullptr;
  for (std::size_t position = 0; position < 5000; ++position) {
    cache.reserve(0, 1);
    addresses.insert(cache.block(0, 0, 0, position));
    if (position == 0) sink = cache.block(0, 0, 0, 0);
    cache.commit(0, 1);
    // All that the next query sees is held; no two of these blocks are the same.
    std::set<std::byte*> seen;
    const std::size_t begin = position + 2 > window ? position + 2 - window : 0;
    for (std::size_t key = begin / kBlockTokens * kBlockTokens; key <= position;
         key += kBlockTokens)
      seen.insert(cache.block(0, 0, 0, key));
    CHECK(seen.size() == position / kBlockTokens - begin / kBlockTokens + 1);
    const model::CacheBytes bytes = cache.bytes();
    largest = std::max(largest, bytes.payload + bytes.scales + bytes.rounding);
  }
  const std::size_t most =
      1 + 1 + window / kBlockTokens + 1;  // sinks, partly seen at both ends, the middle
  CHECK(largest <= most * cache.layout(0).block_bytes);
  CHECK(addresses.size() <= most + 1);
  CHECK(cache.block(0, 0, 0, 0) == sink);
}

TEST_CASE("a roll-back into forgotten positions is refused and changes nothing", "[cache]") {
  const Layers layers = {{1, 16, 16, 64, 0}, {1, 16, 16, {}, 0}};
  model::KvCache cache(layers, {CacheType::f32, CacheType::f32, 1, 1000});
  append(cache, 0, 500);
  std::size_t shortest = 500;
  for (std::size_t length = 499; length > 0; --length) {
    model::KvCache other(layers, {CacheType::f32, CacheType::f32, 1, 1000});
    append(other, 0, 500);
    std::byte* block = other.block(1, 0, 0, 499);
    if (other.truncate(0, length)) {
      CHECK(shortest == length + 1);
      shortest = length;
      CHECK(other.length(0) == length);
    } else {
      CHECK(other.length(0) == 500);
      CHECK(other.block(1, 0, 0, 499) == block);
    }
  }
  CHECK(shortest < 500);
  CHECK(shortest > 400);
  CHECK(cache.truncate(0, 0));
  append(cache, 0, 1000);
  CHECK_THROWS_AS(cache.reserve(0, 1), base::Error);
}

TEST_CASE("reordered sequences share blocks until they append, windows and all", "[cache]") {
  const Layers layers = {{2, 8, 8, {}, 0}, {1, 8, 16, 40, 0}};
  model::KvCache cache(layers, {CacheType::f32, CacheType::f32, 3, 200});
  const auto mark = [&](std::size_t sequence, std::size_t position, int value) {
    for (std::size_t layer = 0; layer < 2; ++layer)
      cache.block(layer, sequence, 0, position)[position % kBlockTokens] =
          static_cast<std::byte>(value);
  };
  const auto marked = [&](std::size_t sequence, std::size_t position) {
    const std::byte a = cache.block(0, sequence, 0, position)[position % kBlockTokens];
    CHECK(a == cache.block(1, sequence, 0, position)[position % kBlockTokens]);
    return static_cast<int>(a);
  };
  for (std::size_t position = 0; position < 70; ++position) {
    cache.reserve(0, 1);
    mark(0, position, 1 + static_cast<int>(position % 100));
    cache.commit(0, 1);
  }
  const std::uint64_t alone = cache.bytes().payload;
  cache.reorder(std::vector<std::size_t>{0, 0, 0});
  CHECK(cache.bytes().payload == alone);
  for (std::size_t s = 0; s < 3; ++s) {
    CHECK(cache.length(s) == 70);
    CHECK(cache.block(0, s, 1, 40) == cache.block(0, 0, 1, 40));
    cache.reserve(s, 1);
    mark(s, 70, 200 + static_cast<int>(s));
    cache.commit(s, 1);
  }
  for (std::size_t s = 0; s < 3;
       ++s) {  // the started block is each one's own, the full ones are shared
    CHECK(marked(s, 70) == 200 + static_cast<int>(s));
    CHECK(marked(s, 69) == 70);
    CHECK(cache.block(0, s, 0, 10) == cache.block(0, 0, 0, 10));
  }
  CHECK(cache.block(0, 1, 0, 70) != cache.block(0, 2, 0, 70));
  cache.reorder(std::vector<std::size_t>{2, 2, 1});
  CHECK(marked(0, 70) == 202);
  CHECK(marked(1, 70) == 202);
  CHECK(marked(2, 70) == 201);
  for (int step = 0; step < 100; ++step) {  // no block is lost: 3 x 7 are enough for 3 x 171 tokens
    for (std::size_t s = 0; s < 3; ++s) append(cache, s, 1);
    cache.reorder(std::vector<std::size_t>{1, 0, static_cast<std::size_t>(step % 3)});
  }
  CHECK(cache.length(2) == 171);
  for (std::size_t s = 0; s < 3; ++s) cache.clear(s);
  CHECK(cache.bytes().payload == 0);
  for (std::size_t s = 0; s < 3; ++s) append(cache, s, 200);
  CHECK(cache.bytes().payload == 3 * (200 * 2 * 16 * 4) + 3 * (40 * 24 * 4));  // blocks 5 and 6
}

}  // namespace quern::tests
