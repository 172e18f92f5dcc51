// Tokens that no output is asked of end with the stack's last keys: what the others get is the same, bit for bit.
#include "catch.hpp"
#include "model/run_model.hpp"
#include "model/sparse_variants.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

namespace {

using model::Want;

std::vector<Variant> decoders() {
  std::vector<Variant> variants = all_variants();
  for (const Variant& variant : option_variants()) variants.push_back(variant);
  for (const Variant& variant : sparse_variants()) variants.push_back(variant);
  variants.push_back({"encoder-decoder", encoder_decoder_contract(true)});
  return variants;
}

// A few sequences of one model, step by step; rows of logits are collected by sequence.
struct Sequences {
  Sequences(const model::Model& model_, std::size_t n_threads)
      : model(model_),
        pool(n_threads, n_threads),
        cache(model, {kernels::CacheType::int8, kernels::CacheType::int8, kSequences, kTokens}),
        runner(model, cache, pool, kSequences * kTokens, kTokens),
        logits(kSequences) {
    runner.set_deterministic(true);
    for (std::size_t s = 0; s < kSequences; ++s)
      ids.push_back(random_ids(kTokens, model.contract.vocab_size, static_cast<std::uint32_t>(s)));
    if (!model.encoder) return;
    std::vector<model::Slice> sources;
    for (std::size_t s = 0; s < kSequences; ++s) sources.push_back({s, std::span(ids[s]).first(9 + 30 * s), Want::none});
    runner.encode(sources);
  }

  struct Piece {
    std::size_t sequence, n;
    Want want;
  };
  void step(const std::vector<Piece>& pieces) {
    std::vector<model::Slice> slices;
    for (const Piece& p : pieces)
      slices.push_back({p.sequence, std::span(ids[p.sequence]).subspan(cache.length(p.sequence), p.n), p.want});
    runner.forward(slices);
    std::size_t row = 0;
    for (const Piece& p : pieces)
      for (std::size_t i = 0; i < (p.want == Want::all ? p.n : p.want == Want::last ? 1 : 0); ++i, ++row)
        logits[p.sequence].insert(logits[p.sequence].end(), runner.logits(row), runner.logits(row) + runner.n_outputs());
    CHECK(runner.n_logits() == row);
  }

  static constexpr std::size_t kSequences = 4, kTokens = 400;
  const model::Model& model;
  base::ThreadPool pool;
  model::KvCache cache;
  model::Runner runner;
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<float>> logits;
};

std::vector<float> rows_of(const std::vector<float>& all, std::size_t width, std::initializer_list<std::size_t> rows) {
  std::vector<float> result;
  for (const std::size_t row : rows)
    result.insert(result.end(), all.begin() + static_cast<std::ptrdiff_t>(row * width),
                  all.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  return result;
}

}  // namespace

TEST_CASE("what is asked of some tokens does not depend on the others being asked", "[wanted]") {
  for (const Variant& variant : decoders())
    for (const char* format : {"f32", "q4"})
      for (const std::size_t n_threads : {1, 2}) {
        INFO(variant.name << ", " << format << ", " << n_threads << " threads");
        const TinyModel tiny = make_model(variant.contract, format);
        Sequences all(*tiny.model, n_threads), some(*tiny.model, n_threads);
        all.step({{0, 380, Want::all}, {1, 380, Want::all}, {2, 380, Want::all}, {3, 380, Want::all}});
        // Long and short pieces, mixed; a step of which nothing is asked; steps that only ask for last ones.
        some.step({{0, 300, Want::none}, {1, 64, Want::last}, {2, 40, Want::all}, {3, 1, Want::last}});
        some.step({{1, 100, Want::none}, {3, 300, Want::none}});
        some.step({{2, 300, Want::last}, {0, 10, Want::last}, {3, 5, Want::last}});
        some.step({{0, 3, Want::last}, {1, 1, Want::last}, {3, 1, Want::last}});
        const std::size_t width = all.runner.n_outputs();
        CHECK(same_bits(some.logits[0], rows_of(all.logits[0], width, {309, 312})));
        CHECK(same_bits(some.logits[1], rows_of(all.logits[1], width, {63, 164})));
        std::vector<float> third = all.logits[2];
        third.resize(40 * width);
        const std::vector<float> last = rows_of(all.logits[2], width, {339});
        third.insert(third.end(), last.begin(), last.end());
        CHECK(same_bits(some.logits[2], third));
        CHECK(same_bits(some.logits[3], rows_of(all.logits[3], width, {0, 305, 306})));
      }
}

TEST_CASE("the last branch with keys of its own is where unwanted tokens end", "[wanted]") {
  const auto last_store = [](const Contract& c) { return make_model(c, "f32").model->output_stack().last_store; };
  CHECK(last_store(tiny_contract()) == model::BranchPlace{2, 0});
  CHECK(last_store(encoder_decoder_contract(false)) == model::BranchPlace{2, 0});
  Contract shared = tiny_contract();
  shared_weights(shared);  // layers 2 and 3 read what layer 0 keeps
  CHECK(last_store(shared) == model::BranchPlace{1, 0});
  CHECK_FALSE(last_store(encoder_contract()));
}

TEST_CASE("unwanted tokens meet no experts behind the last keys", "[wanted]") {
  Contract c = moe_contract();
  const TinyModel tiny = make_model(c, "f32");
  Sequences some(*tiny.model, 2);
  some.step({{0, 100, Want::last}, {1, 50, Want::none}, {2, 7, Want::all}});
  some.step({{0, 10, Want::none}});
  const auto rows = [&](std::size_t layer) {
    const std::vector<std::uint64_t>& loads = some.runner.expert_loads()[layer];
    return std::accumulate(loads.begin(), loads.end(), std::uint64_t{0});
  };
  const std::size_t top_k = c.ops.at("moe").moe->top_k, n_layers = some.runner.expert_loads().size();
  REQUIRE(n_layers > 1);
  CHECK(rows(0) == 167 * top_k);
  CHECK(rows(n_layers - 1) == 8 * top_k);
}

}  // namespace quern::tests
