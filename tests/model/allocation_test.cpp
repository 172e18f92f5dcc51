// Decode allocates nothing: the process's operator new is counted here.
#include <atomic>
#include <cstdlib>
#include <new>

#include "catch.hpp"
#include "model/run_model.hpp"
#include "model/sparse_variants.hpp"
#include "model/tiny_model.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace quern::tests {

TEST_CASE("no heap allocation in twenty decode steps", "[allocation]") {
  for (const char* format : {"f32", "q8", "q4"}) {
    std::vector<Variant> variants = all_variants();
    for (Variant& variant : sparse_variants()) variants.push_back(std::move(variant));
    for (const Variant& variant : variants) {
      const TinyModel tiny = make_model(variant.contract, format);
      const std::vector<std::int32_t> ids = random_ids(100, variant.contract.vocab_size);
      base::ThreadPool pool(2);
      model::KvCache cache(*tiny.model,
                           {kernels::CacheType::int8, kernels::CacheType::int8, 1, 200});
      model::Runner runner(*tiny.model, cache, pool, 64, 200);
      const model::Slice prompt{0, std::span(ids).first(50), model::Want::last};
      runner.forward({&prompt, 1});
      const std::size_t before = allocations.load();
      for (std::size_t i = 0; i < 20; ++i) {  // crosses a block boundary at 64
        const model::Slice token{0, std::span(ids).subspan(50 + i, 1), model::Want::last};
        runner.forward({&token, 1});
      }
      const std::size_t during = allocations.load() - before;
      INFO(variant.name << ", " << format);
      CHECK(during == 0);
    }
  }
  CHECK(allocations.load() > 0);  // the counter counts
}

TEST_CASE("scratch memory grows with the length of the cache, not with its square", "[allocation]") {
  std::vector<Variant> variants = all_variants();
  for (Variant& variant : sparse_variants()) variants.push_back(std::move(variant));
  for (const Variant& variant : variants) {
    const TinyModel tiny = make_model(variant.contract, "q8");
    base::ThreadPool pool(2);
    const auto scratch_at = [&](std::size_t max_tokens) {
      model::KvCache cache(*tiny.model, {kernels::CacheType::int8, kernels::CacheType::int8, 1, max_tokens});
      return model::Runner(*tiny.model, cache, pool, 64, 100).scratch_bytes();
    };
    const std::size_t short_one = scratch_at(1024), middle = scratch_at(16896), long_one = scratch_at(32768);
    INFO(variant.name << ": " << short_one << " bytes at 1,024 tokens, " << middle << ", " << long_one << " at 32,768");
    CHECK(short_one <= middle);
    CHECK(long_one - middle <= (middle - short_one) * 11 / 10 + 4096);
    // A row of scores of every token of a chunk, and a state per tile and head, are the most that a key may cost.
    CHECK(long_one - short_one <= (32768 - 1024) * (64 * sizeof(float) * 3 + 1024));
  }
}

}  // namespace quern::tests
