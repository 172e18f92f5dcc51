// Slopes, bucket starts and tables that a rule gives.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "catch.hpp"
#include "convert/derive.hpp"
#include "convert/made_tensor.hpp"
#include "memory_checkpoint.hpp"

namespace base = quern::base;
namespace convert = quern::convert;
using base::Json;
using convert::SlopeOrder;

TEST_CASE("ALiBi slopes are those of the paper and of the reference implementations") {
  const std::vector<float> twelve = convert::alibi_slopes(12, 8, SlopeOrder::powers_first);
  const float want[] = {.5F,       .25F,       .125F,      .0625F,     .03125F,    .015625F,
                        .0078125F, .00390625F, .70710677F, .35355338F, .17677668F, .088388339F};
  REQUIRE(twelve.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(twelve[i] == Approx(want[i]).epsilon(1e-6));
  // Every other slope of eight heads first: 2, 4, 6, 8, then 1, 3.
  const std::vector<float> six = convert::alibi_slopes(6, 8, SlopeOrder::interleaved);
  CHECK(six == std::vector<float>{.25F, .0625F, .015625F, .00390625F, .5F, .125F});
  CHECK(convert::alibi_slopes(4, 8, SlopeOrder::interleaved) ==
        convert::alibi_slopes(4, 8, SlopeOrder::powers_first));
  CHECK(convert::alibi_slopes(2, 4, SlopeOrder::powers_first) == std::vector<float>{.25F, .0625F});
  CHECK(convert::alibi_slopes(1, 8, SlopeOrder::powers_first) == std::vector<float>{.00390625F});
}

TEST_CASE("buckets of distances begin where the reference implementation's do") {
  const std::vector<std::uint32_t> causal = convert::bucket_starts(32, 128, "t");
  const std::uint32_t logarithmic[] = {16, 19, 21, 24, 27, 31, 35, 40,
                                       46, 52, 59, 67, 77, 87, 99, 113};
  REQUIRE(causal.size() == 32);
  for (std::uint32_t i = 0; i < 16; ++i) {
    CHECK(causal[i] == i);
    CHECK(causal[16 + i] == logarithmic[i]);
  }
  const std::vector<std::uint32_t> both = convert::bucket_starts(16, 128, "t");
  CHECK(std::vector<std::uint32_t>(both.begin() + 8, both.end()) ==
        std::vector<std::uint32_t>{8, 12, 16, 23, 32, 46, 64, 91});
  CHECK_THROWS_AS(convert::bucket_starts(32, 16, "t"), base::Error);
  // More buckets than distances to fill them: as the reference's formula, float32, some stay empty.
  for (const auto& [n, longest] : {std::pair<std::size_t, std::size_t>{34, 20}, {33, 20}, {4000, 2001}, {32, 128}}) {
    const std::vector<std::uint32_t> starts = convert::bucket_starts(n, longest, "t");
    REQUIRE(starts.size() == n);
    const std::size_t exact = n / 2;
    const auto range = static_cast<float>(std::log(static_cast<double>(longest) / static_cast<double>(exact)));
    for (std::size_t d = exact; d < 2 * longest; ++d) {
      const auto log = static_cast<float>(std::log(static_cast<double>(static_cast<float>(d) / static_cast<float>(exact))));
      const std::size_t want = std::min(exact + static_cast<std::size_t>(log / range * static_cast<float>(n - exact)), n - 1);
      REQUIRE(static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), d) - starts.begin()) == want + 1);
    }
  }
}

TEST_CASE("rules in an op become numbers, anything else is an input error") {
  Json op =
      Json::parse(R"({"n_heads": 2, "alibi": {"rule": "power2", "before_scale": true, "times": 2},
    "relative_bias": {"buckets": 8, "max_distance": 20, "bidirectional": true, "per_layer": false}})");
  convert::derive_attention(op, "t");
  CHECK(op["alibi"]["slopes"] == Json::parse("[0.125, 0.0078125]"));
  CHECK(op["alibi"]["round"].is_null());
  Json rounded = Json::parse(
      R"({"n_heads": 3, "alibi": {"rule": "power2", "before_scale": true, "times": 2, "round": "bf16"}})");
  convert::derive_attention(rounded, "ops.a");
  CHECK(rounded["alibi"]["slopes"] == Json::parse("[0.125, 0.0078125, 0.5]"));
  CHECK(rounded["alibi"]["round"] == "bf16");
  CHECK(op["relative_bias"]["starts"].size() == 4);
  for (
      const char* text :
      {R"({"n_heads": 2, "alibi": {"rule": "power3", "before_scale": true}})",
       R"({"alibi": {"rule": "power2", "before_scale": true}})",
       R"({"n_heads": 2, "alibi": {"rule": "power2"}})",
       R"({"relative_bias": {"buckets": 7, "max_distance": 20, "bidirectional": true, "per_layer": false}})",
       R"({"relative_bias": {"buckets": 1e9}})"}) {
    CAPTURE(text);
    Json broken = Json::parse(text);
    CHECK_THROWS_AS(convert::derive_attention(broken, "t"), base::Error);
  }
}

TEST_CASE("vectors of their own are put together as rows") {
  quern::test::MemoryCheckpoint source(quern::checkpoint::SourceKind::hugging_face, "{}");
  source.add("a.0", {3}, 1);
  source.add("a.1", {3}, 2);
  source.add("a.2", {4}, 3);
  const auto stacked = convert::stacked_rows({source.find("a.0"), source.find("a.1")}, "t");
  CHECK(stacked->tensor.shape == std::vector<std::uint64_t>{2, 3});
  CHECK(convert::is_made(stacked->tensor));
  CHECK(stacked->values == std::vector<float>{1, 1, 1, 2, 2, 2});
  CHECK_THROWS_AS(convert::stacked_rows({source.find("a.0"), source.find("a.2")}, "t"),
                  base::Error);
}

TEST_CASE("a table's rows times the matrix that follows it") {
  quern::test::MemoryCheckpoint source(quern::checkpoint::SourceKind::hugging_face, "{}");
  const float table[] = {1, 2, 3, 4}, matrix[] = {1, 0, 0, 1, 1, 1};
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values), sizeof values);
  };
  source.add("table", quern::checkpoint::DType::f32, {2, 2}, bytes(table));
  source.add("matrix", quern::checkpoint::DType::f32, {3, 2}, bytes(matrix));
  source.add("wide", {3, 4}, 1);
  const auto product = convert::projected_rows(*source.find("table"), *source.find("matrix"), "t");
  CHECK(product->tensor.shape == std::vector<std::uint64_t>{2, 3});
  CHECK(product->values == std::vector<float>{1, 2, 3, 3, 4, 7});
  CHECK_THROWS_AS(convert::projected_rows(*source.find("table"), *source.find("wide"), "t"),
                  base::Error);
}

TEST_CASE("labels are the configuration's names in order, or numbered") {
  const auto labels = [](const char* text) {
    Json head = {{"labels", Json::parse(text)}};
    convert::derive_labels(head, "t");
    return head["labels"];
  };
  CHECK(labels(R"({"names": {"1": "b", "0": "a", "10": "x"}, "count": 3})") ==
        Json::parse(R"(["a", "b", "LABEL_2"])"));
  CHECK(labels(R"({"names": null, "count": 2})") == Json::parse(R"(["LABEL_0", "LABEL_1"])"));
  CHECK(labels(R"(["kept"])") == Json::parse(R"(["kept"])"));
  CHECK_THROWS_AS(labels(R"({"names": null, "count": 0})"), base::Error);
  CHECK_THROWS_AS(labels(R"({"names": null, "count": 1000000000})"), base::Error);
}
