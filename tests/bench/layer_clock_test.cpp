#include "bench/layer_clock.hpp"

#include <initializer_list>

#include "bench/layer_bytes.hpp"
#include "catch.hpp"
#include "model/run_model.hpp"
#include "model/sparse_variants.hpp"

namespace quern::bench {
namespace {

using model::Part;

double sum_of(const PartTime& time) {
  return time.alone + time.busy + time.late + time.waiting;
}

// Three steps of one token behind a short prompt.
LayerClock watched_steps(const tests::TinyModel& tiny, base::ThreadPool& pool,
                         model::KvCache& cache) {
  const std::vector<std::int32_t> ids = tests::random_ids(43, tiny.model->contract.vocab_size);
  model::Runner runner(*tiny.model, cache, pool, 64, 100);
  const model::Slice prompt{0, std::span(ids).first(40), model::Want::none};
  runner.forward({&prompt, 1});
  LayerClock clock(tiny.model->decoder->layers.size());
  runner.set_part_watch([&](Part part) { clock.begin(part); });
  pool.set_watch([&](const base::LoopTimes& times) { clock.loop(times); });
  for (std::size_t i = 40; i < ids.size(); ++i) {
    const model::Slice token{0, std::span(ids).subspan(i, 1), model::Want::last};
    runner.forward({&token, 1});
  }
  runner.set_part_watch({});
  pool.set_watch({});
  const model::Slice unwatched{0, std::span(ids).first(1), model::Want::last};
  runner.forward({&unwatched, 1});
  return clock;
}

TEST_CASE("every layer of a step has its parts, whose pieces are their time") {
  const tests::TinyModel tiny = tests::make_model(tests::tiny_contract(), "q8");
  for (const std::size_t threads : {1u, 2u}) {
    base::ThreadPool pool(threads, threads);
    model::KvCache cache(*tiny.model, {kernels::CacheType::int8, kernels::CacheType::int8, 1, 100});
    const LayerClock clock = watched_steps(tiny, pool, cache);
    REQUIRE(clock.n_steps() == 3);
    REQUIRE(clock.n_layers() == 3);
    for (std::size_t step = 0; step < clock.n_steps(); ++step) {
      for (std::size_t layer = 0; layer < clock.n_layers(); ++layer)
        for (const Part part :
             {Part::qkv, Part::place, Part::attend, Part::o, Part::gate_up, Part::down}) {
          const PartTime& time = clock.at(step, layer, part);
          CHECK(time.wall > 0);
          CHECK(time.alone >= 0);
          CHECK(sum_of(time) == Approx(time.wall));
          CHECK((time.busy > 0) == (threads > 1 && part != Part::place));
        }
      for (const Part part : {Part::embedding, Part::final_norm, Part::head})
        CHECK(clock.at(step, clock.n_layers(), part).wall > 0);
      CHECK(clock.at(step, 0, Part::head).wall == 0);
    }
  }
}

TEST_CASE("what is told outside of steps is of none") {
  LayerClock clock(1);
  const auto tell = [&](std::initializer_list<Part> parts) {
    for (const Part part : parts) clock.begin(part);
  };
  tell({Part::layer, Part::qkv, Part::layer, Part::final_norm, Part::head, Part::end});
  CHECK(clock.n_steps() == 0);
  tell({Part::embedding, Part::layer, Part::qkv, Part::final_norm, Part::head, Part::end});
  tell({Part::layer, Part::qkv, Part::end});
  REQUIRE(clock.n_steps() == 1);
  CHECK(clock.at(0, 0, Part::down).wall == 0);
  tell({Part::embedding, Part::layer, Part::down});  // stopped
  tell({Part::embedding, Part::layer, Part::qkv, Part::final_norm, Part::end});
  REQUIRE(clock.n_steps() == 2);
  CHECK(clock.at(1, 0, Part::down).wall == 0);
}

TEST_CASE("the parts' bytes are those of the layers, and have a time in which they are read") {
  std::vector<tests::Variant> variants = tests::all_variants();
  for (tests::Variant& variant : tests::sparse_variants()) variants.push_back(std::move(variant));
  for (const tests::Variant& variant : variants) {
    INFO(variant.name);
    const tests::TinyModel tiny = tests::make_model(variant.contract, "q8");
    base::ThreadPool pool(1);
    model::KvCache cache(*tiny.model, {kernels::CacheType::int8, kernels::CacheType::int8, 1, 100});
    const LayerClock clock = watched_steps(tiny, pool, cache);
    double bytes = linear_bytes(tiny.model->head.logits);
    for (std::size_t layer = 0; layer < clock.n_layers(); ++layer)
      for (std::size_t part = 0; part < model::kParts; ++part) {
        const auto which = static_cast<Part>(part);
        const double read = part_bytes(tiny.model->decoder->layers[layer], which, cache, 0);
        CHECK((read == 0 || clock.at(0, layer, which).wall > 0));
        bytes += read;
      }
    CHECK(bytes == static_cast<double>(engine::weight_bytes_per_token(*tiny.model)));
  }
}

TEST_CASE("a cache is read in blocks, no further back than the window") {
  contract::Contract c = tests::tiny_contract();
  const tests::TinyModel tiny = tests::make_model(c, "q8");
  const model::KvCache cache(*tiny.model,
                             {kernels::CacheType::int8, kernels::CacheType::int8, 1, 200});
  const model::Layer& layer = tiny.model->decoder->layers[0];
  const double block = part_bytes(layer, Part::attend, cache, 1);
  CHECK(block == static_cast<double>(2 * cache.layout(0).block_bytes));  // of two KV heads
  CHECK(part_bytes(layer, Part::attend, cache, 32) == block);
  CHECK(part_bytes(layer, Part::attend, cache, 33) == 2 * block);
  tests::attention_of(c).mask.window = 40;
  const tests::TinyModel windowed = tests::make_model(c, "q8");
  CHECK(part_bytes(windowed.model->decoder->layers[0], Part::attend, cache, 190) == 2 * block);
}

}  // namespace
}  // namespace quern::bench
