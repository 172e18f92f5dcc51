// The forward pass against a float64 one written straight from the contract, for every mechanism.
#include "catch.hpp"
#include "model/reference.hpp"
#include "model/run_model.hpp"
#include "model/stack_variants.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

namespace {

// Largest difference from the oracle, in standard deviations of the oracle's logits.
double difference(const std::vector<float>& logits, const Matrix& expected) {
  double sum = 0, square = 0, largest = 0, n = 0;
  std::size_t at = 0;
  for (const auto& row : expected) {
    for (const double value : row) {
      sum += value;
      square += value * value;
      n += 1;
      const double error = std::fabs(double{logits.at(at++)} - value);
      if (!(error <= largest)) largest = error;  // NaN stays
    }
  }
  REQUIRE(at == logits.size());
  return largest / std::sqrt(square / n - sum / n * sum / n);
}

}  // namespace

TEST_CASE("every mechanism agrees with a float64 forward pass", "[forward]") {
  for (const Variant& variant : all_variants()) {
    const TinyModel tiny = make_model(variant.contract, "f32");
    // Beyond two tiles of 256 keys, so that windows skip some and sinks keep the first.
    const std::vector<std::int32_t> ids = random_ids(530, variant.contract.vocab_size);
    const Matrix expected = Reference(variant.contract, tiny.decoded).run(ids);
    const double error = difference(run_all(*tiny.model, ids, {}), expected);
    INFO(variant.name << ": " << error);
    // ALiBi adds up to 0.7 * 530 to a score, of which float keeps 3e-5.
    CHECK(error < (variant.name.starts_with("alibi") ? 3e-4 : 3e-5));
  }
}

TEST_CASE("quantized weights compute what their decoded values and rounded inputs say",
          "[forward]") {
  for (const quant::FormatTraits& format : quant::all_formats()) {
    const Contract c = tiny_contract();
    const TinyModel tiny = make_model(c, format.name);
    // A rounded input near a tie may fall either way, and a tiny random net answers loudly: the best of
    // three texts counts. A wrong kernel is wrong on all of them.
    double error = 1e9;
    for (const unsigned seed : {1u, 2u, 3u}) {
      const std::vector<std::int32_t> ids = random_ids(40, c.vocab_size, seed);
      const Matrix expected = Reference(c, tiny.decoded, format.activation_group).run(ids);
      error = std::min(error, difference(run_all(*tiny.model, ids, {}), expected));
    }
    INFO(format.name << ": " << error);
    CHECK(error < (format.activation_group == 0 ? 3e-5 : 5e-3));
  }
}

TEST_CASE("small cache types stay near the exact cache", "[forward]") {
  using kernels::CacheType;
  const Contract c = tiny_contract();
  const TinyModel tiny = make_model(c, "f32");
  const std::vector<std::int32_t> ids = random_ids(300, c.vocab_size);
  const Matrix expected = Reference(c, tiny.decoded).run(ids);
  const std::pair<CacheType, double> bounds[] = {{CacheType::f16, 1e-1},
                                                 {CacheType::bf16, 1e-1},
                                                 {CacheType::int8, 3e-1},
                                                 {CacheType::fp8_e4m3, 1.0},
                                                 {CacheType::fp8_e5m2, 2.0},
                                                 {CacheType::int4, 2.0}};
  for (const auto& [type, bound] : bounds) {
    const double error = difference(run_all(*tiny.model, ids, {1, 0, type}), expected);
    INFO("cache type " << static_cast<int>(type) << ": " << error);
    CHECK(error < bound);
    CHECK(error > 0);
  }
}

TEST_CASE("wanted rows, hidden states and taps are those of the full run", "[forward]") {
  const Contract c = tiny_contract();
  const TinyModel tiny = make_model(c, "f32");
  const std::vector<std::int32_t> ids = random_ids(20, c.vocab_size);
  const std::vector<float> all = run_all(*tiny.model, ids, {});
  base::ThreadPool pool(1);
  model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, 32});
  model::Runner runner(*tiny.model, cache, pool, 32, ids.size());
  std::vector<std::string> seen;
  runner.set_tap([&](std::string_view name, const float*, std::size_t, std::size_t, std::size_t) {
    seen.emplace_back(name);
  });
  const model::Slice none{0, std::span(ids).first(5), model::Want::none};
  runner.forward({&none, 1});
  CHECK(runner.n_logits() == 0);
  const model::Slice last{0, std::span(ids).subspan(5), model::Want::last};
  runner.forward({&last, 1});
  REQUIRE(runner.n_logits() == 1);
  const std::vector<float> row(runner.logits(0), runner.logits(0) + c.vocab_size);
  CHECK(same_bits(row, {all.end() - static_cast<std::ptrdiff_t>(c.vocab_size), all.end()}));
  CHECK(std::find(seen.begin(), seen.end(), "decoder.2.1.norm_in") != seen.end());
  CHECK(seen.back() == "logits");
}

TEST_CASE("the parts of a step are told in order, and leave its bits alone", "[forward]") {
  const Contract c = tiny_contract();
  const TinyModel tiny = make_model(c, "f32");
  const std::vector<std::int32_t> ids = random_ids(3, c.vocab_size);
  base::ThreadPool pool(1);
  model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, 32});
  model::Runner runner(*tiny.model, cache, pool, 32, ids.size());
  std::vector<model::Part> seen;
  runner.set_part_watch([&](model::Part part) { seen.push_back(part); });
  const model::Slice slice{0, ids, model::Want::all};
  runner.forward({&slice, 1});
  using enum model::Part;
  std::vector<model::Part> expected{embedding};
  for (std::size_t i = 0; i < 3; ++i)
    for (const model::Part part : {layer, qkv, place, attend, o, gate_up, down})
      expected.push_back(part);
  for (const model::Part part : {final_norm, head, end}) expected.push_back(part);
  CHECK(seen == expected);
  const std::vector<float> all = run_all(*tiny.model, ids, {});
  CHECK(std::memcmp(runner.logits(0), all.data(), c.vocab_size * sizeof(float)) == 0);
}

TEST_CASE("the parts of an encoder's step are told where it is the model's own", "[forward]") {
  const std::vector<std::int32_t> ids = random_ids(3, tiny_contract().vocab_size);
  const model::Slice slice{0, ids, model::Want::all};
  for (const Contract& c : {encoder_contract(), encoder_decoder_contract(false)}) {
    const TinyModel tiny = make_model(c, "f32");
    base::ThreadPool pool(1);
    model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, 32});
    model::Runner runner(*tiny.model, cache, pool, 32, ids.size());
    std::vector<model::Part> seen;
    runner.set_part_watch([&](model::Part part) { seen.push_back(part); });
    using enum model::Part;
    std::vector<model::Part> block{layer, qkv, place, attend, o};
    if (tiny.model->decoder) {
      runner.encode({&slice, 1});
      CHECK(seen.empty());
      for (const model::Part part : {qkv, place, attend, o}) block.push_back(part);  // cross
    }
    runner.forward({&slice, 1});
    for (const model::Part part : {gate_up, down}) block.push_back(part);
    std::vector<model::Part> expected{embedding};
    for (std::size_t i = 0; i < 3; ++i) expected.insert(expected.end(), block.begin(), block.end());
    for (const model::Part part : {final_norm, head, end}) expected.push_back(part);
    CHECK(seen == expected);
  }
}

TEST_CASE("ids and positions outside the model are refused before the cache changes", "[forward]") {
  Contract c = tiny_contract();
  like_gpt2(c);
  const TinyModel tiny = make_model(c, "f32");
  base::ThreadPool pool(1);
  model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, 1000});
  model::Runner runner(*tiny.model, cache, pool, 1000, 0);
  for (const std::int32_t bad : {-1, 101, INT32_MAX}) {
    const std::vector<std::int32_t> ids{1, bad};
    const model::Slice slice{0, ids, model::Want::last};
    CHECK_THROWS_AS(runner.forward({&slice, 1}), base::Error);
  }
  const std::vector<std::int32_t> ids =
      random_ids(699, c.vocab_size);  // the table has 700 - 2 positions
  const model::Slice slice{0, ids, model::Want::last};
  CHECK_THROWS_AS(runner.forward({&slice, 1}), base::Error);
  CHECK(cache.length(0) == 0);
  const model::Slice fits{0, std::span(ids).first(698), model::Want::last};
  runner.forward({&fits, 1});
  CHECK(cache.length(0) == 698);
}

}  // namespace quern::tests
