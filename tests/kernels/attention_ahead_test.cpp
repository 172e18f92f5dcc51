// What decode asks memory for: every line of the next tile once, nothing else.
#include "kernels/ops/attention_ahead.hpp"

#include <algorithm>
#include <vector>

#include "catch.hpp"

namespace quern::kernels {
namespace {

// Keeps what it is asked for.
struct Recorder {
  static inline std::vector<const std::byte*> asked;
  static void prefetch_stream(const std::byte* p) { asked.push_back(p); }
};

// All steps of a tile, in their order.
void attend_tile(const AttendArgs& args, std::size_t n_rows) {
  AttentionAhead<Recorder> ahead(args, n_rows);
  for (std::size_t b = 0; b < args.n_blocks; ++b) ahead.ask(AttentionAhead<Recorder>::kScores);
  for (std::size_t r = 0; r < n_rows; ++r) ahead.ask(AttentionAhead<Recorder>::kSoftmax);
  for (std::size_t b = 0; b < args.n_blocks; ++b) ahead.ask(AttentionAhead<Recorder>::kValues);
}

}  // namespace

TEST_CASE("decode asks for every line of the next tile once") {
  for (const CacheType type : {CacheType::int8, CacheType::f32, CacheType::int4})
    for (const std::size_t n_rows : {1u, 3u, 8u, 16u})
      for (const std::size_t n_blocks : {1u, 8u})
        for (const std::size_t n_next : {0u, 1u, 5u, 8u}) {
          const CacheLayout layout = make_cache_layout(type, type, 64, 64);
          std::vector<std::byte> memory(2 * kTileBlocks * layout.block_bytes);
          std::vector<const std::byte*> next, expected;
          for (std::size_t b = 0; b < n_next; ++b) {
            next.push_back(memory.data() + (2 * b + 1) * layout.block_bytes);
            for (std::size_t line = 0; line < layout.block_bytes; line += 64) expected.push_back(next.back() + line);
          }
          AttendArgs args{};
          args.layout = &layout;
          args.n_blocks = n_blocks;
          args.n_queries = n_rows;
          args.next_blocks = next.data();
          args.n_next_blocks = n_next;
          Recorder::asked.clear();
          attend_tile(args, n_rows);
          INFO(n_rows << " rows, " << n_blocks << " blocks, " << n_next << " next");
          CHECK(Recorder::asked == expected);
        }
}

TEST_CASE("calls of many rows ask for nothing: a block's lines are spread over much work") {
  const CacheLayout layout = make_cache_layout(CacheType::int8, CacheType::int8, 64, 64);
  const std::vector<std::byte> memory(layout.block_bytes);
  const std::byte* const next = memory.data();
  AttendArgs args{};
  args.layout = &layout;
  args.n_blocks = 8;
  args.n_queries = 17;
  args.next_blocks = &next;
  args.n_next_blocks = 1;
  Recorder::asked.clear();
  attend_tile(args, 16);
  CHECK(Recorder::asked.empty());
}

}  // namespace quern::kernels
