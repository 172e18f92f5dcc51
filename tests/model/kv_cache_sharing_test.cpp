// Sequences that begin alike share blocks: the bits of what follows, and the bytes.
#include "catch.hpp"
#include "model/kv_cache.hpp"
#include "model/run_model.hpp"
#include "model/sparse_variants.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

namespace {

using kernels::CacheType;

std::vector<Variant> variants() {
  std::vector<Variant> all = all_variants();
  for (std::vector<Variant> more : {option_variants(), sparse_variants()})
    for (Variant& variant : more) all.push_back(std::move(variant));
  return all;
}

void run(model::Runner& runner, std::size_t sequence, std::span<const std::int32_t> ids) {
  const model::Slice slice{sequence, ids, model::Want::last};
  runner.forward({&slice, 1});
}

std::vector<float> last_row(const model::Runner& runner) {
  return {runner.logits(0), runner.logits(0) + runner.n_outputs()};
}

}  // namespace

TEST_CASE("a sequence that begins with another's blocks goes on with the very bits", "[cache][sharing]") {
  for (const Variant& variant : variants()) {
    const TinyModel tiny = make_model(variant.contract, "q8");
    const std::vector<std::int32_t> text = random_ids(150, 101), other = random_ids(50, 101, 9);
    base::ThreadPool pool(1);
    model::KvCache cache(*tiny.model, {CacheType::int8, CacheType::int8, 3, 200, 200});
    model::Runner runner(*tiny.model, cache, pool, 200, 200);
    runner.set_deterministic(true);
    for (const std::size_t n : {1, 31, 32, 33, 64, 100, 149}) {
      INFO(variant.name << ", " << n << " tokens");
      for (std::size_t s = 0; s < 3; ++s) cache.clear(s);
      run(runner, 0, std::span(text).first(n));
      run(runner, 0, std::span(other).first(3));  // the other has gone on, in the same block or not
      REQUIRE(cache.share(0, 1, n));
      CHECK(cache.length(1) == n);
      run(runner, 1, std::span(text).subspan(n));
      const std::vector<float> shared = last_row(runner);
      run(runner, 2, text);
      CHECK(same_bits(shared, last_row(runner)));
      // The one that was shared from is as it was.
      run(runner, 0, std::span(other).subspan(3));
      const std::vector<float> first = last_row(runner);
      cache.clear(2);
      run(runner, 2, std::span(text).first(n));
      run(runner, 2, other);
      CHECK(same_bits(first, last_row(runner)));
    }
  }
}

TEST_CASE("what a windowed layer has forgotten cannot be shared, and nothing changes", "[cache][sharing]") {
  const std::vector<model::CacheLayerSpec> layers = {{2, 12, 20, {}, 0}, {1, 8, 8, 40, 2}};
  model::KvCache cache(layers, {CacheType::int8, CacheType::int8, 2, 400});
  cache.reserve(0, 300);
  cache.commit(0, 300);
  CHECK(cache.forgets());
  CHECK(cache.reaches(0, 300));
  CHECK_FALSE(cache.reaches(0, 100));
  const std::uint64_t before = cache.block_bytes();
  CHECK_FALSE(cache.share(0, 1, 100));
  CHECK(cache.length(1) == 0);
  CHECK(cache.share(0, 1, 299));
  CHECK(cache.block_bytes() == before);
  cache.clear(0);
  CHECK(cache.block_bytes() <= before);
  cache.clear(1);
  CHECK(cache.block_bytes() == 0);
}

TEST_CASE("block bytes and what a reservation adds to them", "[cache][sharing]") {
  const std::vector<model::CacheLayerSpec> layers = {{2, 12, 20, {}, 0}, {3, 64, 64, {}, 0}, {1, 8, 8, 40, 2}};
  model::KvCache cache(layers, {CacheType::int8, CacheType::f16, 3, 200});
  CHECK(cache.block_bytes() == 0);
  const auto grow = [&](std::size_t sequence, std::size_t n) {
    const std::uint64_t before = cache.block_bytes(), added = cache.reserve_bytes(sequence, n);
    cache.reserve(sequence, n);
    CHECK(cache.block_bytes() == before + added);
    CHECK(cache.reserve_bytes(sequence, n) == 0);
    cache.commit(sequence, n);
    return added;
  };
  CHECK(grow(0, 20) > 0);
  CHECK(grow(0, 12) == 0);
  CHECK(grow(0, 1) > 0);
  CHECK(cache.share(0, 1, 33));
  CHECK(grow(1, 1) > 0);   // a copy of the started block
  CHECK(grow(0, 1) == 0);  // which is now its own
  CHECK(cache.share(0, 2, 32));
  CHECK(grow(2, 1) > 0);
  const model::CacheBytes bytes = cache.bytes();
  CHECK(bytes.payload + bytes.scales + bytes.rounding == cache.block_bytes());
}

}  // namespace quern::tests
