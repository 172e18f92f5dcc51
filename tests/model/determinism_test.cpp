// Same file, same bits: threads, chunks, batches, roll-backs (reliability J1-J3).
#include "catch.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

namespace {

constexpr std::size_t kTokens = 300;

void check_invariant(const model::Model& model, kernels::CacheType cache, const std::string& name) {
  const std::vector<std::int32_t> ids = random_ids(kTokens, model.contract.vocab_size);
  const std::vector<float> once = run_all(model, ids, {1, 0, cache});
  for (const std::size_t n_threads : {1, 2, 3}) {
    for (const std::size_t chunk : {1, 7, 64, 0}) {
      INFO(name << ", " << n_threads << " threads, chunks of " << chunk);
      CHECK(same_bits(run_all(model, ids, {n_threads, chunk, cache}), once));
    }
  }
}

}  // namespace

TEST_CASE("bits do not depend on threads and chunks, for every mechanism", "[determinism]") {
  for (const Variant& variant : all_variants()) {
    const TinyModel tiny = make_model(variant.contract, "f32");
    check_invariant(*tiny.model, kernels::CacheType::f32, variant.name);
  }
}

TEST_CASE("bits do not depend on threads and chunks, for every weight format", "[determinism]") {
  for (const quant::FormatTraits& format : quant::all_formats()) {
    const TinyModel tiny = make_model(tiny_contract(), format.name);
    check_invariant(*tiny.model, kernels::CacheType::int8, std::string(format.name));
  }
}

TEST_CASE("bits do not depend on threads and chunks, for every cache type", "[determinism]") {
  using kernels::CacheType;
  Contract c = tiny_contract();
  attention_of(c).mask.window = 70;
  attention_of(c).mask.sinks = 2;
  const TinyModel tiny = make_model(c, "q8");
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16, CacheType::int8,
                               CacheType::fp8_e4m3, CacheType::fp8_e5m2, CacheType::int4})
    check_invariant(*tiny.model, type, "cache type " + std::to_string(static_cast<int>(type)));
}

TEST_CASE("decode over many tiles has the same bits for any number of threads", "[determinism]") {
  // Two sequences of 8 and 3 tiles, two KV heads: threads take pairs whole, in parts and out of order.
  Contract c = tiny_contract();
  for (const bool window : {false, true}) {
    if (window) attention_of(c).mask.window = 900;
    const TinyModel tiny = make_model(c, "q8");
    const std::size_t lengths[] = {1900, 700};
    constexpr std::size_t kSteps = 6;
    std::vector<float> first;
    for (const std::size_t n_threads : {1, 2, 3, 4, 7}) {
      base::ThreadPool pool(n_threads, n_threads);
      model::KvCache cache(*tiny.model, {kernels::CacheType::int8, kernels::CacheType::int8, 2, 2000});
      model::Runner runner(*tiny.model, cache, pool, 2000, 2000);
      std::vector<std::vector<std::int32_t>> ids;
      for (std::size_t s = 0; s < 2; ++s) {
        ids.push_back(random_ids(lengths[s] + kSteps, c.vocab_size, static_cast<std::uint32_t>(s)));
        const model::Slice prompt{s, std::span(ids[s]).first(lengths[s]), model::Want::none};
        runner.forward({&prompt, 1});
      }
      std::vector<float> logits;
      for (std::size_t step = 0; step < kSteps; ++step) {
        std::vector<model::Slice> slices;
        for (std::size_t s = 0; s < 2; ++s)
          if (s == 0 || step % 2 == 0) slices.push_back({s, std::span(ids[s]).subspan(cache.length(s), 1), model::Want::last});
        runner.forward(slices);
        for (std::size_t row = 0; row < runner.n_logits(); ++row)
          logits.insert(logits.end(), runner.logits(row), runner.logits(row) + c.vocab_size);
      }
      if (first.empty()) first = logits;
      INFO(n_threads << " threads, " << (window ? "a window" : "all keys"));
      CHECK(same_bits(logits, first));
    }
  }
}

TEST_CASE("a sequence in a batch has the bits it has alone", "[determinism]") {
  for (const char* format : {"f32", "q4"}) {
    Contract c = tiny_contract();
    attention_of(c).mask.window = 40;
    const TinyModel tiny = make_model(c, format);
    constexpr std::size_t kSequences = 5;
    std::vector<std::vector<std::int32_t>> ids;
    std::vector<std::vector<float>> alone, together(kSequences);
    for (std::size_t s = 0; s < kSequences; ++s) {
      ids.push_back(random_ids(50 + 41 * s, c.vocab_size, static_cast<std::uint32_t>(s)));
      alone.push_back(run_all(*tiny.model, ids[s], {1, 0, kernels::CacheType::int8}));
    }
    base::ThreadPool pool(2);
    model::KvCache cache(*tiny.model,
                         {kernels::CacheType::int8, kernels::CacheType::int8, kSequences, 300});
    model::Runner runner(*tiny.model, cache, pool, 64, 300);
    // Every step mixes prefill pieces and single tokens: sequence s advances by 1 + (step + s) % 9
    // tokens.
    std::vector<std::size_t> done(kSequences, 0);
    for (std::size_t step = 0; done != std::vector<std::size_t>{50, 91, 132, 173, 214}; ++step) {
      std::vector<model::Slice> slices;
      for (std::size_t i = 0; i < kSequences; ++i) {
        const std::size_t s = (i + step) % kSequences;
        const std::size_t n = std::min(1 + (step + s) % 9, ids[s].size() - done[s]);
        if (n > 0) slices.push_back({s, std::span(ids[s]).subspan(done[s], n), model::Want::all});
      }
      runner.forward(slices);
      std::size_t row = 0;
      for (const model::Slice& slice : slices) {
        done[slice.sequence] += slice.ids.size();
        for (std::size_t i = 0; i < slice.ids.size(); ++i, ++row)
          together[slice.sequence].insert(together[slice.sequence].end(), runner.logits(row),
                                          runner.logits(row) + c.vocab_size);
      }
    }
    for (std::size_t s = 0; s < kSequences; ++s) CHECK(same_bits(together[s], alone[s]));
  }
}

TEST_CASE("after a roll-back the same tokens give the same bits", "[determinism]") {
  const Contract c = tiny_contract();
  const TinyModel tiny = make_model(c, "q8");
  const std::vector<std::int32_t> ids = random_ids(100, c.vocab_size);
  const std::vector<std::int32_t> others = random_ids(100, c.vocab_size, 99);
  const std::vector<float> expected = run_all(*tiny.model, ids, {1, 0, kernels::CacheType::int8});
  base::ThreadPool pool(2);
  model::KvCache cache(*tiny.model, {kernels::CacheType::int8, kernels::CacheType::int8, 1, 200});
  model::Runner runner(*tiny.model, cache, pool, 200, 100);
  for (const std::size_t keep : {0, 1, 31, 32, 33, 99}) {
    cache.clear(0);
    const model::Slice first{0, std::span(ids).first(keep), model::Want::none};
    const model::Slice wrong{0, others, model::Want::none};
    const model::Slice rest{0, std::span(ids).subspan(keep), model::Want::last};
    runner.forward({&first, 1});
    runner.forward({&wrong, 1});
    REQUIRE(cache.truncate(0, keep));
    runner.forward({&rest, 1});
    const std::vector<float> row(runner.logits(0), runner.logits(0) + c.vocab_size);
    INFO("kept " << keep);
    CHECK(same_bits(row,
                    {expected.end() - static_cast<std::ptrdiff_t>(c.vocab_size), expected.end()}));
  }
}

TEST_CASE("all instruction sets give the same bits", "[determinism][isa]") {
  const std::vector<std::int32_t> ids = random_ids(70, 101);
  for (const char* format : {"f32", "bf16", "q8", "q4", "q5_1"}) {
    std::vector<float> first;
    for (const kernels::IsaInfo& isa : kernels::all_isas()) {
      if (!isa.supported) continue;
      const TinyModel tiny = make_model(tiny_contract(), format, 1, *isa.kernels);
      const std::vector<float> logits = run_all(*tiny.model, ids, {1, 0, kernels::CacheType::int8});
      if (first.empty()) first = logits;
      INFO(isa.name << ", " << format);
      CHECK(same_bits(logits, first));
    }
  }
}

}  // namespace quern::tests
