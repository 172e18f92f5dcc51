// Buckets by distance, and lines of biases filled bucket by bucket.
#include "model/relative_bias.hpp"
#include "catch.hpp"

namespace quern::tests {

TEST_CASE("a distance lies in the last bucket that starts at or before it", "[relative_bias]") {
  const contract::RelativeBias causal{false, {0, 1, 2, 5, 11}, false}, both{true, {0, 1, 4}, false};
  const std::pair<int, std::size_t> back[] = {{0, 0},  {-1, 1},  {-2, 2},  {-4, 2},
                                              {-5, 3}, {-10, 3}, {-11, 4}, {-999, 4}};
  for (const auto& [distance, bucket] : back)
    CHECK(model::relative_bucket(causal, distance) == bucket);
  CHECK(model::relative_bucket(causal, 7) ==
        0);  // keys after the query, which no causal mask shows
  const std::pair<int, std::size_t> either[] = {{0, 0}, {-3, 1}, {-4, 2}, {1, 4},
                                                {3, 4}, {4, 5},  {80, 5}};
  for (const auto& [distance, bucket] : either)
    CHECK(model::relative_bucket(both, distance) == bucket);
}

TEST_CASE("lines hold the bias of every distance", "[relative_bias]") {
  for (const bool bidirectional : {false, true}) {
    const contract::RelativeBias spec{bidirectional, {0, 1, 2, 3, 5, 9, 20}, false};
    constexpr std::size_t n_heads = 5, stride = 128;
    std::vector<float> table(spec.starts.size() * 2 * n_heads);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
    for (const int first : {-90, -40, -20, -1, 0, 1, 30}) {
      std::vector<float> lines(2 * stride, -1);
      model::fill_bias_lines({spec, table.data(), n_heads, 2, 2}, first, 100, lines.data(), stride);
      bool same = true;
      for (std::size_t head = 0; head < 2; ++head)
        for (int i = 0; i < 100; ++i)
          same = same && lines[head * stride + static_cast<std::size_t>(i)] ==
                             table[model::relative_bucket(spec, first + i) * n_heads + 2 + head];
      INFO(first);
      CHECK(same);
      CHECK(lines[100] == -1);
    }
  }
}

}  // namespace quern::tests
