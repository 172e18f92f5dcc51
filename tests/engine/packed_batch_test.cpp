// Ragged sequences packed into steps: every one has the bits it has alone.
#include "engine/packed_batch.hpp"

#include "base/error.hpp"
#include "catch.hpp"
#include "model/run_model.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

namespace {

using Ids = std::vector<std::int32_t>;

struct Rows {
  std::vector<float> hidden, logits;
};

std::vector<Rows> run(const model::Model& model, const std::vector<Ids>& inputs, std::size_t step,
                      bool logits = true) {
  base::ThreadPool pool(2);
  std::vector<engine::PackedSequence> sequences;
  for (const Ids& ids : inputs) sequences.push_back({ids, {}});
  std::vector<Rows> all;
  engine::PackOptions options;
  options.step_tokens = step;
  options.logits = logits;
  const bool done =
      engine::run_packed(model, pool, sequences, options, [&](const engine::PackedResult& r) {
        CHECK(r.index == all.size());
        Rows rows;
        const std::size_t n = inputs[r.index].size(), width = model.contract.d_model;
        for (std::size_t i = 0; i < n; ++i)
          rows.hidden.insert(rows.hidden.end(), r.runner.hidden(r.first_hidden + i),
                             r.runner.hidden(r.first_hidden + i) + width);
        for (std::size_t i = 0; logits && i < (model.head.pool ? 1 : n); ++i)
          rows.logits.insert(rows.logits.end(), r.runner.logits(r.first_logits + i),
                             r.runner.logits(r.first_logits + i) + r.runner.n_outputs());
        if (!logits) CHECK(r.runner.n_logits() == 0);
        all.push_back(rows);
      });
  CHECK(done);
  return all;
}

}  // namespace

TEST_CASE("a packed sequence has the bits it has alone, with and without a pool", "[packed]") {
  std::vector<Ids> inputs;
  for (std::uint32_t i = 0; i < 9; ++i) inputs.push_back(random_ids(1 + (i * 37) % 70, 101, i));
  for (const Contract& contract :
       {encoder_contract(), classifier_contract(contract::Pool::mean), tiny_contract()}) {
    const TinyModel tiny = make_model(contract, "q8");
    const std::vector<Rows> packed = run(*tiny.model, inputs, 128);
    REQUIRE(packed.size() == inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Rows alone = run(*tiny.model, {inputs[i]}, 1).front();
      CHECK(same_bits(packed[i].hidden, alone.hidden));
      CHECK(same_bits(packed[i].logits, alone.logits));
    }
    CHECK(same_bits(run(*tiny.model, inputs, 64, false)[3].hidden, packed[3].hidden));
  }
}

TEST_CASE("an encoder-decoder gets a text on both sides, shifted by one on the decoder's", "[packed]") {
  Contract contract = encoder_decoder_contract(false);
  contract.head = {contract::HeadKind::classify, false, true, 1, 1, {}, {}, contract::Pool::last, {}, {"a", "b", "c"}};
  contract.tokens.decoder_start = 7;
  const TinyModel tiny = make_model(contract, "f32");
  std::vector<Ids> inputs;
  for (std::uint32_t i = 0; i < 5; ++i) inputs.push_back(random_ids(1 + (i * 37) % 50, 101, i));
  const std::vector<Rows> packed = run(*tiny.model, inputs, 80);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Ids decoder = {7};
    decoder.insert(decoder.end(), inputs[i].begin(), inputs[i].end() - 1);
    base::ThreadPool pool(1);
    model::CacheOptions options;
    options.k_type = options.v_type = kernels::CacheType::f32;
    options.max_tokens = 64;
    model::KvCache cache(*tiny.model, options);
    model::Runner runner(*tiny.model, cache, pool, 64, 0);
    const model::Slice source{0, inputs[i], model::Want::none}, target{0, decoder, model::Want::last};
    runner.encode({&source, 1});
    runner.forward({&target, 1});
    CHECK(same_bits(packed[i].logits, std::vector<float>(runner.logits(0), runner.logits(0) + 3)));
  }
  contract.tokens.decoder_start.reset();
  const TinyModel without = make_model(contract, "f32");
  CHECK_THROWS_AS(run(*without.model, {{3}}, 8), base::Error);
}

TEST_CASE("a pool of the last token passes over padding at the end", "[packed]") {
  Contract contract = classifier_contract(contract::Pool::last);
  contract.head.pool_pad = 4;
  const TinyModel tiny = make_model(contract, "f32");
  contract.head.pool_pad.reset();
  contract.head.pool.reset();
  const TinyModel all = make_model(contract, "f32");
  const std::pair<Ids, std::size_t> rows[] = {
      {{9, 8, 7}, 2}, {{9, 8, 4, 4}, 1}, {{4, 9, 4, 8}, 3}, {{4, 4, 4}, 0}, {{4}, 0}, {{9, 4, 8, 4}, 2}};
  std::vector<Ids> inputs;
  for (const auto& [ids, row] : rows) inputs.push_back(ids);
  const std::vector<Rows> pooled = run(*tiny.model, inputs, 64);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Rows every = run(*all.model, {inputs[i]}, 64).front();
    const auto first = every.logits.begin() + static_cast<std::ptrdiff_t>(3 * rows[i].second);
    CHECK(same_bits(pooled[i].logits, std::vector<float>(first, first + 3)));
  }
}

TEST_CASE("packing refuses empty and too long sequences and stops when asked", "[packed]") {
  const TinyModel tiny = make_model(encoder_contract(), "q8");
  CHECK_THROWS_AS(run(*tiny.model, {random_ids(3, 101), {}}, 16), base::Error);
  CHECK_THROWS_AS(run(*tiny.model, {random_ids(701, 101)}, 16), base::Error);
  base::ThreadPool pool(1);
  const Ids ids = random_ids(10, 101);
  const std::vector<engine::PackedSequence> sequences(3, {ids, {}});
  std::size_t n = 0;
  engine::PackOptions options;
  options.step_tokens = 10;
  options.stop_requested = [&] { return n == 2; };
  CHECK_FALSE(engine::run_packed(*tiny.model, pool, sequences, options,
                                 [&](const engine::PackedResult&) { ++n; }));
  CHECK(n == 2);
}

}  // namespace quern::tests
