// Operations and bytes of a token against counts by hand.
#include "plan/work.hpp"

#include "catch.hpp"
#include "contract/samples.hpp"
#include "engine/report.hpp"
#include "kernels/select.hpp"
#include "plan/memory.hpp"

namespace quern::tests {

namespace {

const plan::Work& part(const plan::PhaseWork& work, const std::string& name) {
  for (const plan::Work& one : work.parts)
    if (one.component == name) return one;
  FAIL("no component " << name);
  return work.parts.front();
}

// Every key is seen: no windows.
plan::ShapeModel shapes(const std::string& sample) {
  convert::ConvertOptions options;
  options.type = "q8";
  contract::Contract contract = contract::sample(sample);
  for (auto& [name, op] : contract.ops)
    if (op.attention) op.attention->mask.window.reset(), op.attention->mask.sinks = 0;
  return plan::shapes_of(contract, options, kernels::select_kernels(""), sample);
}

}  // namespace

TEST_CASE("decode: products follow the query heads, traffic the KV heads", "[plan]") {
  const plan::ShapeModel model = shapes("llama.json");
  const contract::Attention& spec = *model.model->contract.ops.at("attn").attention;
  const auto layers = static_cast<double>(model.model->decoder->layers.size());
  const plan::CacheTypes types{kernels::CacheType::f16, kernels::CacheType::f16};
  const plan::PhaseWork work = plan::decode_work(*model.model, {types, 1000, 512, 1, 0});
  const plan::Work &scores = part(work, "attention scores"), &values = part(work, "attention values");
  CHECK(scores.float_ops == 2.0 * static_cast<double>(spec.n_heads * spec.d_k) * 1000 * layers);
  CHECK(values.float_ops == 2.0 * static_cast<double>(spec.n_heads * spec.d_v) * 1000 * layers);
  // Every layer reads K and V, also one whose cache belongs to another.
  CHECK(scores.cache_bytes + values.cache_bytes ==
        2.0 * static_cast<double>(spec.n_kv_heads * (spec.d_k + spec.d_v)) * 1000 * layers);
  double weights = work.total().weight_bytes - part(work, "embedding").weight_bytes;
  CHECK(weights == static_cast<double>(engine::weight_bytes_per_token(*model.model)));
  // Four sequences share the weights, not the cache.
  const plan::PhaseWork four = plan::decode_work(*model.model, {types, 1000, 512, 4, 0});
  CHECK(part(four, "head").weight_bytes * 4 == part(work, "head").weight_bytes);
  CHECK(part(four, "attention scores").cache_bytes == scores.cache_bytes);
}

TEST_CASE("prefill: half the keys on average, weights shared by a chunk", "[plan]") {
  const plan::ShapeModel model = shapes("llama.json");
  const contract::Attention& spec = *model.model->contract.ops.at("attn").attention;
  const auto layers = static_cast<double>(model.model->decoder->layers.size());
  const plan::PhaseWork work = plan::prefill_work(*model.model, {{}, 1000, 500, 1, 0});
  // Behind the last keys only the last token goes on, in the second step.
  const auto whole = static_cast<double>(model.model->decoder->last_store->layer), rest = layers - whole;
  REQUIRE(rest >= 1);
  CHECK(part(work, "attention scores").float_ops ==
        Approx(2.0 * static_cast<double>(spec.n_heads * spec.d_k) * (500.5 * whole + 1000.0 / 1000 * rest)));
  const plan::PhaseWork decode = plan::decode_work(*model.model, {{}, 1000, 500, 1, 0});
  CHECK(part(work, "ffn").weight_bytes * layers == Approx(part(decode, "ffn").weight_bytes * (whole / 500 + rest / 1000)));
  CHECK(part(work, "ffn").ops() * layers == Approx(part(decode, "ffn").ops() * (whole + rest / 1000)));
}

TEST_CASE("a bound is the larger of compute and bandwidth", "[plan]") {
  plan::Work work;
  work.int8_ops = 1000;
  work.weight_bytes = 50;
  CHECK(plan::bound_time(work, {10, 100, 25}).bound == plan::Bound::compute);
  CHECK(plan::bound_time(work, {10, 100, 25}).seconds == 10);
  CHECK(plan::bound_time(work, {1, 100, 25}).bound == plan::Bound::bandwidth);
  CHECK(plan::bound_time(work, {1, 100, 25}).seconds == 50);
}

TEST_CASE("memory grows with context and sequences; what fits is the most that fits", "[plan]") {
  for (const std::string& name : contract::kSamples) {
    INFO(name);
    const plan::ShapeModel model = shapes(name);
    plan::RunOptions options;
    options.context = 100;
    const std::uint64_t one = plan::plan_memory(model, nullptr, options).peak();
    options.context = 200;
    const std::uint64_t two = plan::plan_memory(model, nullptr, options).peak();
    CHECK(one <= two);
    if (!model.model->decoder) continue;
    const auto longest = plan::longest_context(model, nullptr, options, two, 100'000);
    REQUIRE(longest);
    CHECK(*longest >= 200);
    options.context = *longest + 1;
    if (*longest < 100'000) CHECK(plan::plan_memory(model, nullptr, options).peak() > two);
    CHECK_FALSE(plan::longest_context(model, nullptr, options, 1000, 100));
  }
}

}  // namespace quern::tests
