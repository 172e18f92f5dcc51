// Searches of a session: shared cache blocks, one encoded source for all beams, limits.
#include "base/error.hpp"
#include "catch.hpp"
#include "engine/beam_search.hpp"
#include "engine/report.hpp"
#include "engine/session.hpp"
#include "model/run_model.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

namespace {

using Ids = std::vector<std::int32_t>;

// Computes every beam from its first token on, in a session of its own: nothing is shared.
class FreshModel : public engine::BeamModel {
 public:
  FreshModel(const model::Model& model, const Ids& source, const Ids& prompt, std::size_t n_beams)
      : model_(model), source_(source), sequences_(n_beams, prompt) {}

  std::span<const float> logits(std::size_t beam) override {
    base::ThreadPool pool(1);
    engine::SessionOptions options;
    options.cache.max_tokens = 300;
    options.total_length = 300;
    options.source_length = source_.size();
    engine::Session session(model_, pool, options);
    if (!source_.empty()) session.encode(source_);
    session.evaluate(sequences_[beam], [&](std::size_t, const float* row) {
      row_.assign(row, row + model_.contract.vocab_size);
    });
    return row_;
  }
  void advance(std::span<const std::size_t> parents, std::span<const std::int32_t> ids) override {
    std::vector<Ids> next;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      next.push_back(sequences_[parents[i]]);
      next.back().push_back(ids[i]);
    }
    sequences_ = next;
  }

 private:
  const model::Model& model_;
  Ids source_;
  std::vector<Ids> sequences_;
  std::vector<float> row_;
};

struct Searched {
  Ids source, prompt;
  engine::BeamOptions options;
};

void check_search(const Contract& contract, const Searched& s) {
  const TinyModel tiny = make_model(contract, "q8");
  const std::size_t vocab_size = tiny.model->contract.vocab_size;
  sampling::TokenRules rules({}, vocab_size);
  FreshModel fresh(*tiny.model, s.source, s.prompt, s.options.n_beams);
  const std::vector<engine::Hypothesis> expected = beam_search(fresh, s.prompt, rules, s.options);
  for (const std::size_t n_threads : {1, 2}) {
    base::ThreadPool pool(n_threads, n_threads);
    engine::SessionOptions options;
    options.cache.max_tokens = 300;
    options.total_length = 300;
    options.prefill_chunk = 16;
    options.source_length = s.source.size();
    options.n_beams = s.options.n_beams;
    engine::Session session(*tiny.model, pool, options);
    for (int repeat = 0; repeat < 2; ++repeat) {
      if (!s.source.empty()) session.encode(s.source);
      const engine::Session::SearchResult found = session.search(s.prompt, rules, s.options);
      REQUIRE(found.hypotheses.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(found.hypotheses[i].ids == expected[i].ids);
        CHECK(found.hypotheses[i].score == expected[i].score);  // the same bits
      }
      CHECK(session.times().prefill_tokens == s.prompt.size());
      CHECK(session.times().encode_tokens == s.source.size());
      CHECK(session.times().decode_tokens == session.times().token_seconds.size());
    }
  }
}

engine::BeamOptions beams(std::size_t n, std::size_t max_length) {
  engine::BeamOptions options;
  options.n_beams = options.n_return = n;
  options.max_length = max_length;
  options.ends = {5, 17};
  return options;
}

}  // namespace

TEST_CASE("a search over shared cache blocks gives the bits of computing every beam alone",
          "[search]") {
  check_search(tiny_contract(), {{}, random_ids(30, 101), beams(4, 75)});
  Contract windowed = tiny_contract();
  attention_of(windowed).mask.window = 33;
  check_search(windowed, {{}, random_ids(50, 101), beams(3, 100)});
}

TEST_CASE("all beams of an encoder-decoder read the one encoded source", "[search]") {
  check_search(encoder_decoder_contract(false), {random_ids(40, 101, 3), {1}, beams(4, 45)});
  check_search(two_embeddings_contract(), {random_ids(21, 57, 4), {1, 2}, beams(2, 30)});
}

TEST_CASE("the cache of a search holds what beams share once", "[search]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(2);
  engine::SessionOptions options;
  options.cache.max_tokens = 200;
  options.n_beams = 4;
  engine::Session session(*tiny.model, pool, options);
  sampling::TokenRules rules({}, 101);
  session.search(random_ids(128, 101), rules, beams(4, 133));
  const std::uint64_t token = 3 * 2 * (12 + 20);  // layers, KV heads, d_k + d_v
  CHECK(session.cache().bytes().payload >= 128 * token);
  CHECK(session.cache().bytes().payload <= (128 + 4 * 32) * token);
}

TEST_CASE("greedy decoding of an encoder-decoder is a search with one beam", "[search]") {
  const TinyModel tiny = make_model(encoder_decoder_contract(true), "q8");
  base::ThreadPool pool(2);
  engine::SessionOptions options;
  options.cache.max_tokens = 64;
  options.source_length = 30;
  engine::Session session(*tiny.model, pool, options);
  const Ids source = random_ids(30, 101, 8);
  session.encode(source);
  sampling::SamplerOptions greedy;
  greedy.temperature = 0;
  sampling::Sampler sampler(greedy, 101);
  Ids ids;
  engine::GenerateOptions generate;
  generate.max_new_tokens = 20;
  session.generate(Ids{1}, sampler, generate, [&](std::int32_t id) {
    ids.push_back(id);
    return true;
  });
  session.encode(source);
  sampling::TokenRules rules({}, 101);
  engine::BeamOptions one;
  one.max_length = 21;
  CHECK(session.search(Ids{1}, rules, one).hypotheses.front().ids == ids);
  const std::string report = engine::timings_text(engine::collect_timings(*tiny.model, session));
  CHECK(report.find("encode") != std::string::npos);
}

TEST_CASE("sources and models that cannot be are refused", "[search]") {
  base::ThreadPool pool(1);
  engine::SessionOptions options;
  options.cache.max_tokens = 32;
  options.source_length = 8;
  const TinyModel both = make_model(two_embeddings_contract(), "q8");
  engine::Session session(*both.model, pool, options);
  CHECK_THROWS_AS(session.encode({}), base::Error);
  CHECK_THROWS_AS(session.encode(random_ids(9, 57)), base::Error);
  CHECK_THROWS_AS(session.encode(Ids{57}), base::Error);  // the encoder's own vocabulary
  sampling::TokenRules rules({}, 101);
  CHECK_THROWS_AS(session.search(Ids{1}, rules, beams(1, 9)), base::Error);  // nothing encoded

  options.source_length = 2049;  // one more than the position table has
  engine::Session longer(*both.model, pool, options);
  CHECK_THROWS_AS(longer.encode(random_ids(2049, 57)), base::Error);

  const TinyModel decoder = make_model(tiny_contract(), "q8");
  engine::Session plain(*decoder.model, pool, options);
  CHECK_THROWS_AS(plain.encode(Ids{1}), base::Error);
  CHECK_THROWS_AS(plain.search(random_ids(33, 101), rules, beams(1, 90)), base::Error);
}

}  // namespace quern::tests
