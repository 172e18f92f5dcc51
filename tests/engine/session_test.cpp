// Sessions: prefix reuse, stops, limits, teacher forcing; and the timing report.
#include "engine/session.hpp"

#include "catch.hpp"
#include "engine/limits.hpp"
#include "engine/report.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

namespace {

using engine::FinishReason;
using engine::GenerateOptions;
using sampling::Sampler;
using engine::Session;
using Ids = std::vector<std::int32_t>;

struct Fixture {
  TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool{2};
  sampling::SamplerOptions greedy;

  Fixture() { greedy.temperature = 0; }

  engine::SessionOptions options(std::size_t context) const {
    engine::SessionOptions o;
    o.cache.max_tokens = context;
    o.prefill_chunk = 16;
    return o;
  }

  Ids generate(Session& session, const Ids& prompt, const GenerateOptions& generate_options,
               FinishReason expected) {
    sampling::Sampler sampler(greedy, tiny.model->contract.vocab_size);
    Ids ids;
    CHECK(session.generate(prompt, sampler, generate_options, [&](std::int32_t id) {
      ids.push_back(id);
      return true;
    }) == expected);
    return ids;
  }
};

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Greedy continuation by whole prefills.
Ids expected_greedy(const model::Model& model, Ids ids, std::size_t n) {
  Ids out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::vector<float> logits = run_all(model, ids, {1, 0, kernels::CacheType::int8});
    const auto row = logits.end() - static_cast<std::ptrdiff_t>(model.contract.vocab_size);
    out.push_back(static_cast<std::int32_t>(std::max_element(row, logits.end()) - row));
    ids.push_back(out.back());
  }
  return out;
}

}  // namespace

TEST_CASE("generation continues greedily and reuses what the cache shares with the prompt",
          "[session]") {
  Fixture f;
  const Ids prompt = random_ids(40, 101);
  const Ids expected = expected_greedy(*f.tiny.model, prompt, 12);
  Session session(*f.tiny.model, f.pool, f.options(200));
  GenerateOptions o;
  o.max_new_tokens = 12;
  CHECK(f.generate(session, prompt, o, FinishReason::length) == expected);
  CHECK(session.times().prefill_tokens == 40);
  CHECK(session.times().decode_tokens == 11);
  CHECK(session.times().token_seconds.size() == 11);

  // The same again: all but the last id is held.
  CHECK(f.generate(session, prompt, o, FinishReason::length) == expected);
  CHECK(session.times().prefill_tokens == 1);

  // A conversation that goes on: the answer is held but for its last token.
  const Ids longer = joined(joined(prompt, expected), random_ids(5, 101, 3));
  CHECK(f.generate(session, longer, o, FinishReason::length) ==
        expected_greedy(*f.tiny.model, longer, 12));
  CHECK(session.times().prefill_tokens < 40);

  // A different beginning: nothing is kept.
  const Ids other = random_ids(30, 101, 9);
  CHECK(f.generate(session, other, o, FinishReason::length) ==
        expected_greedy(*f.tiny.model, other, 12));
}

TEST_CASE("generation ends at a stop id, at the limits and when the caller says so", "[session]") {
  Fixture f;
  const Ids prompt = random_ids(10, 101);
  Session session(*f.tiny.model, f.pool, f.options(64));
  GenerateOptions o;
  o.max_new_tokens = 20;
  const Ids free = f.generate(session, prompt, o, FinishReason::length);
  REQUIRE(free.size() == 20);

  const std::size_t first =
      static_cast<std::size_t>(std::find(free.begin(), free.end(), free[5]) - free.begin());
  o.stop_ids = {free[5]};
  CHECK(f.generate(session, prompt, o, FinishReason::stop) ==
        Ids(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(first)));
  o.ignore_eos = true;
  CHECK(f.generate(session, prompt, o, FinishReason::length) == free);

  o.max_new_tokens = 0;
  CHECK(f.generate(session, prompt, o, FinishReason::length).empty());
  o.max_new_tokens = 1000;
  CHECK(f.generate(session, prompt, o, FinishReason::length).size() == 64 - 10 + 1);
  CHECK(session.tokens().size() == 64);

  sampling::Sampler sampler(f.greedy, 101);
  std::size_t n = 0;
  CHECK(session.generate(prompt, sampler, o, [&](std::int32_t) { return ++n < 4; }) ==
        FinishReason::interrupted);
  CHECK(n == 4);
}

TEST_CASE("a prompt that does not fit is refused before any work", "[session]") {
  Fixture f;
  Session session(*f.tiny.model, f.pool, f.options(32));
  sampling::Sampler sampler(f.greedy, 101);
  const auto never = [](std::int32_t) { return true; };
  try {
    session.generate(random_ids(33, 101), sampler, {10, {}, false}, never);
    FAIL("no error");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    CHECK(std::string(error.what()).find("prompt has 33 tokens, context is 32") !=
          std::string::npos);
  }
  CHECK_THROWS_AS(session.generate({}, sampler, {10, {}, false}, never), base::Error);
  CHECK(session.tokens().empty());
}

TEST_CASE("a windowed model starts anew when the shared prefix was forgotten", "[session]") {
  Fixture f;
  Contract c = tiny_contract();
  attention_of(c).mask.window = 33;
  f.tiny = make_model(c, "q8");
  Session session(*f.tiny.model, f.pool, f.options(400));
  const Ids prompt = random_ids(300, 101);
  GenerateOptions o;
  o.max_new_tokens = 3;
  f.generate(session, prompt, o, FinishReason::length);
  const Ids shorter = joined(Ids(prompt.begin(), prompt.begin() + 100), {5, 6, 7});
  CHECK(f.generate(session, shorter, o, FinishReason::length) ==
        expected_greedy(*f.tiny.model, shorter, 3));
  CHECK(session.times().prefill_tokens == shorter.size());
}

TEST_CASE("teacher forcing gives every position's logits in order", "[session]") {
  Fixture f;
  const Ids ids = random_ids(50, 101);
  const std::vector<float> expected = run_all(*f.tiny.model, ids, {1, 0, kernels::CacheType::int8});
  Session session(*f.tiny.model, f.pool, f.options(64));
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<float> logits;
    session.evaluate(ids, [&](std::size_t position, const float* row) {
      CHECK(position * 101 == logits.size());
      logits.insert(logits.end(), row, row + 101);
    });
    CHECK(same_bits(logits, expected));
  }
}

TEST_CASE("the report states rates, percentiles and bytes", "[report]") {
  CHECK(engine::percentile({}, 0.5) == 0);
  CHECK(engine::percentile({3, 1, 2}, 0.5) == 2);
  CHECK(engine::percentile({3, 1, 2}, 0.95) == 3);
  CHECK(engine::percentile({3, 1, 2}, 0) == 1);

  Fixture f;
  std::uint64_t bytes = 0;  // tied head: every matrix once
  for (const weights::TensorView& view : f.tiny.views)
    if (view.format->id != quant::FormatId::rows_f32) bytes += view.bytes.size();
  CHECK(engine::weight_bytes_per_token(*f.tiny.model) == bytes);

  Session session(*f.tiny.model, f.pool, f.options(64));
  GenerateOptions o;
  o.max_new_tokens = 8;
  f.generate(session, random_ids(10, 101), o, FinishReason::length);
  engine::Timings timings = engine::collect_timings(*f.tiny.model, session);
  CHECK(timings.peak_rss_bytes > 0);
  CHECK(timings.cache.payload == 17 * 3 * 2 * (12 + 20));
  timings.read_bandwidth = 10e9;
  const std::string text = engine::timings_text(timings);
  for (const char* word :
       {"load", "tokenize", "prefill", "decode", "sampling", "GB/s", "peak RSS", "p95", "%"})
    CHECK(text.find(word) != std::string::npos);
  const std::string json = engine::timings_json(timings);
  CHECK(json.find("\"prefill_tokens\": 10,") != std::string::npos);
  CHECK(json.find("\"decode_tokens\": 7,") != std::string::npos);
}

TEST_CASE("the bandwidth probe measures something plausible", "[limits]") {
  base::ThreadPool pool(2);
  const double bandwidth = engine::measure_read_bandwidth(pool, 0.05);
  CHECK(bandwidth > 1e8);
  CHECK(bandwidth < 1e13);
}

}  // namespace quern::tests
