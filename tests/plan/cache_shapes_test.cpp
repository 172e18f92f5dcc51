// Cache bytes by formula: the published figures, the report of `inspect`, and where the cache equals the weights.
#include "plan/cache_shapes.hpp"

#include "catch.hpp"
#include "contract/report.hpp"
#include "contract/samples.hpp"
#include "kernels/select.hpp"
#include "plan/shape_model.hpp"

namespace quern::tests {

namespace {

using kernels::CacheType;

const plan::CacheShape& named(const std::vector<plan::CacheShape>& shapes, const std::string& name) {
  for (const plan::CacheShape& shape : shapes)
    if (shape.name == name) return shape;
  FAIL("no shape " << name);
  return shapes.front();
}

std::optional<CacheType> type_of(const std::string& name) {
  if (name == "f32") return CacheType::f32;
  if (name == "bf16") return CacheType::bf16;
  if (name == "f16") return CacheType::f16;
  if (name == "int8") return CacheType::int8;
  if (name == "fp8_e4m3") return CacheType::fp8_e4m3;
  if (name == "fp8_e5m2") return CacheType::fp8_e5m2;
  if (name == "int4") return CacheType::int4;
  return std::nullopt;
}

}  // namespace

TEST_CASE("32 layers of 32 heads of 128 at two bytes, 7e9 parameters at two bytes", "[plan]") {
  const std::vector<plan::CacheShape> shapes = plan::cache_shapes({32, 32, 32, 128});
  const plan::CacheTypes types{CacheType::f16, CacheType::f16};
  const struct {
    const char* name;
    std::uint64_t per_token, equal_at;
    double gib;
  } cases[] = {{"MHA", 512 * 1024, 26703, 62.5}, {"GQA-8", 128 * 1024, 106812, 15.625}, {"MQA", 16 * 1024, 854492, 1.953125}};
  for (const auto& expected : cases) {
    const plan::CacheShape& shape = named(shapes, expected.name);
    CHECK(plan::cache_per_token(shape, types).payload == expected.per_token);
    CHECK(plan::cache_per_token(shape, types).scales == 0);
    CHECK(static_cast<double>(plan::cache_formula(shape, types, 128000).total()) == expected.gib * 1024 * 1024 * 1024);
    CHECK(plan::tokens_equal(shape, types, 14'000'000'000) == expected.equal_at);
  }
}

TEST_CASE("the model's own cache is that of the report, for every kind of attention and type", "[plan]") {
  for (const std::string& name : contract::kSamples) {
    INFO(name);
    const contract::Contract contract = contract::sample(name);
    const std::vector<contract::CacheCost> costs = contract::cache_costs(contract);
    convert::ConvertOptions options;
    options.type = "q8";
    const plan::ShapeModel shapes = plan::shapes_of(contract, options, kernels::select_kernels(""), name);
    const std::vector<plan::CacheShape> caches = plan::cache_shapes(*shapes.model);
    if (!contract.decoder) {
      CHECK(caches.empty());
      continue;
    }
    for (const contract::CacheCost& cost : costs) {
      const auto type = type_of(cost.type);
      REQUIRE(type);
      const plan::CacheFormula some = plan::cache_formula(caches.front(), {*type, *type}, 1024);
      CHECK(some.payload == cost.payload_bytes_1024);
      CHECK(some.scales == cost.scale_bytes_1024);
      const plan::CacheFormula one = plan::cache_per_token(caches.front(), {*type, *type});
      CHECK(one.payload == cost.payload_bytes);
      CHECK(one.scales == cost.scale_bytes);
    }
  }
}

TEST_CASE("a bounded cache never equals large weights", "[plan]") {
  plan::CacheShape shape;
  shape.layers = {{1, 64, 64, 100, 0}};
  const plan::CacheTypes types{CacheType::f32, CacheType::f32};
  CHECK(plan::cache_formula(shape, types, 1000).total() == 100 * 128 * 4);
  CHECK_FALSE(plan::tokens_equal(shape, types, 1'000'000));
  CHECK(plan::tokens_equal(shape, types, 50 * 128 * 4) == 50);
}

}  // namespace quern::tests
