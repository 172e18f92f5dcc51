// Encoders, encoder-decoders and the options of a request, against the float64 forward pass; what a
// position sees, bit for bit.
#include "catch.hpp"
#include "model/reference.hpp"
#include "model/run_model.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

namespace {

using Input = Reference::Input;

struct StackRun {
  std::size_t n_threads = 1, chunk = 0;  // chunk: of the decoder; 0: all at once
};

// Logits of one input, [rows, outputs].
std::vector<float> run_input(const model::Model& model, const Input& input,
                             const StackRun& options) {
  const std::size_t n = input.ids.size();
  const std::size_t chunk = options.chunk == 0 ? n : options.chunk;
  base::ThreadPool pool(options.n_threads, options.n_threads);
  model::KvCache cache(model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, n});
  const std::size_t step =
      model::chunk_for(model, {n, input.encoder_ids.size(), input.prefix_length}, chunk);
  model::Runner runner(model, cache, pool, step, n);
  if (!input.encoder_ids.empty()) {
    const model::Slice source{0, input.encoder_ids, model::Want::none};
    runner.encode({&source, 1});
  }
  std::vector<float> logits;
  for (std::size_t at = 0; at < n;) {
    const std::size_t room = model.decoder ? std::max(chunk, at == 0 ? input.prefix_length : 0) : n;
    model::Slice slice{0, std::span(input.ids).subspan(at, std::min(room, n - at)),
                       model::Want::all};
    if (!input.types.empty())
      slice.token_types = std::span(input.types).subspan(at, slice.ids.size());
    slice.prefix_length = input.prefix_length;
    runner.forward({&slice, 1});
    for (std::size_t row = 0; row < runner.n_logits(); ++row)
      logits.insert(logits.end(), runner.logits(row), runner.logits(row) + runner.n_outputs());
    at += slice.ids.size();
  }
  return logits;
}

double difference(const std::vector<float>& logits, const Matrix& expected) {
  double square = 0, largest = 0;
  std::size_t at = 0;
  for (const auto& row : expected)
    for (const double value : row) {
      square += value * value;
      const double error = std::fabs(double{logits.at(at++)} - value);
      if (!(error <= largest)) largest = error;  // NaN stays
    }
  REQUIRE(at == logits.size());
  return largest / std::sqrt(square / static_cast<double>(at));
}

std::vector<std::int32_t> random_types(std::size_t n, std::size_t n_types) {
  return random_ids(n, n_types, 11);
}

// Rows [first, end) of two results of the same shape.
bool same_rows(const std::vector<float>& a, const std::vector<float>& b, std::size_t first,
               std::size_t end, std::size_t width) {
  return std::memcmp(a.data() + first * width, b.data() + first * width,
                     (end - first) * width * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("an encoder agrees with a float64 forward pass", "[stack]") {
  const Contract contracts[] = {encoder_contract(), classifier_contract(contract::Pool::first),
                                classifier_contract(contract::Pool::last),
                                classifier_contract(contract::Pool::mean)};
  for (const Contract& c : contracts) {
    const TinyModel tiny = make_model(c, "f32");
    for (const std::size_t n : {1u, 31u, 32u, 300u}) {
      Input input{random_ids(n, c.vocab_size)};
      if (c.embedding.token_types > 0) input.types = random_types(n, c.embedding.token_types);
      const std::vector<float> logits = run_input(*tiny.model, input, {});
      INFO(c.head.labels.size() << " labels, " << n << " tokens");
      CHECK(difference(logits, Reference(c, tiny.decoded).run(input)) < 3e-5);
      CHECK(same_bits(logits, run_input(*tiny.model, input, {3})));
    }
  }
}

// Unscaled scores are several times larger than scaled ones: their rounding shows.
TEST_CASE("an encoder-decoder agrees with a float64 forward pass, in any chunks", "[stack]") {
  const Contract contracts[] = {encoder_decoder_contract(false), encoder_decoder_contract(true),
                                two_embeddings_contract()};
  for (const Contract& c : contracts) {
    const TinyModel tiny = make_model(c, "f32");
    const std::size_t source_vocab =
        c.encoder->embedding ? c.encoder->embedding->vocab_size : c.vocab_size;
    for (const std::size_t n_source : {1u, 40u, 530u}) {
      Input input{random_ids(290, c.vocab_size), {}, random_ids(n_source, source_vocab, 3)};
      const std::vector<float> logits = run_input(*tiny.model, input, {});
      CHECK(difference(logits, Reference(c, tiny.decoded).run(input)) < 1.5e-4);
      for (const StackRun& way : {StackRun{1, 1}, StackRun{3, 1}, StackRun{2, 37}})
        CHECK(same_bits(logits, run_input(*tiny.model, input, way)));
    }
  }
}

TEST_CASE("remaining options agree with a float64 forward pass, in any chunks", "[stack]") {
  for (const Variant& variant : option_variants()) {
    const Contract& c = variant.contract;
    const TinyModel tiny = make_model(c, "f32");
    Input input{random_ids(400, c.vocab_size)};
    if (c.embedding.token_types > 0) input.types = random_types(400, c.embedding.token_types);
    if (c.ops.at("attn").attention->mask.kind == contract::MaskKind::prefix)
      input.prefix_length = 290;
    const std::vector<float> logits = run_input(*tiny.model, input, {});
    INFO(variant.name);
    CHECK(difference(logits, Reference(c, tiny.decoded).run(input)) < 3e-5);
    for (const StackRun& way : {StackRun{1, 1}, StackRun{3, 64}})
      CHECK(same_bits(logits, run_input(*tiny.model, input, way)));
  }
}

TEST_CASE("packed sequences are those alone, bit for bit", "[stack]") {
  const Contract c = encoder_contract();
  const TinyModel tiny = make_model(c, "q8");
  base::ThreadPool pool(2);
  model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, 400});
  model::Runner runner(*tiny.model, cache, pool, 400, 400);
  std::vector<std::vector<std::int32_t>> texts;
  for (const std::size_t n : {5u, 33u, 1u, 280u, 64u})
    texts.push_back(random_ids(n, c.vocab_size, n));
  std::vector<model::Slice> slices;
  for (const auto& text : texts) slices.push_back({slices.size(), text, model::Want::all});
  runner.forward(slices);
  std::vector<float> packed, alone;
  for (std::size_t row = 0; row < runner.n_logits(); ++row)
    packed.insert(packed.end(), runner.logits(row), runner.logits(row) + runner.n_outputs());
  for (const auto& text : texts) {
    const std::vector<float> logits = run_input(*tiny.model, {text}, {});
    alone.insert(alone.end(), logits.begin(), logits.end());
  }
  CHECK(same_bits(packed, alone));
}

TEST_CASE("a position sees what its mask says and nothing else", "[stack]") {
  constexpr std::size_t n = 60;
  const auto changed_rows = [&](const Contract& c, std::size_t changed, std::size_t prefix) {
    const TinyModel tiny = make_model(c, "f32");
    Input input{random_ids(n, c.vocab_size)};
    input.prefix_length = prefix;
    const std::vector<float> before = run_input(*tiny.model, input, {});
    input.ids[changed] = (input.ids[changed] + 1) % static_cast<std::int32_t>(c.vocab_size);
    const std::vector<float> after = run_input(*tiny.model, input, {});
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < n; ++row)
      if (!same_rows(before, after, row, row + 1, c.vocab_size)) rows.push_back(row);
    return rows;
  };
  const auto range = [](std::size_t first, std::size_t end) {
    std::vector<std::size_t> rows(end - first);
    std::iota(rows.begin(), rows.end(), first);
    return rows;
  };
  Contract one = tiny_contract();
  one.decoder->layers[0].repeat = 1;
  CHECK(changed_rows(one, 20, 0) == range(20, n));
  attention_of(one).mask.window = 7;
  CHECK(changed_rows(one, 20, 0) == range(20, 27));
  attention_of(one).mask = {contract::MaskKind::prefix, std::nullopt, 0};
  CHECK(changed_rows(one, 20, 30) == range(0, n));
  CHECK(changed_rows(one, 40, 30) == range(40, n));
  Contract both = encoder_contract();
  both.encoder->layers[0].repeat = 1;
  CHECK(changed_rows(both, 20, 0) == range(0, n));
  attention_of(both).mask.window = 7;
  CHECK(changed_rows(both, 20, 0) == range(14, 27));
}

TEST_CASE("an encoder's input is encoded once and again when it changes", "[stack]") {
  const Contract c = encoder_decoder_contract(false);
  const TinyModel tiny = make_model(c, "f32");
  base::ThreadPool pool(1);
  model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 3, 20});
  model::Runner runner(*tiny.model, cache, pool, 64, 20);
  const std::vector<std::int32_t> first = random_ids(40, c.vocab_size, 1),
                                  ids = random_ids(9, c.vocab_size);
  const std::vector<std::int32_t> second = random_ids(17, c.vocab_size, 2);
  const model::Slice both[] = {{0, first, model::Want::none}, {1, second, model::Want::none}};
  runner.encode(both);
  REQUIRE(runner.n_encoded() == 57);
  const Reference::Input input{ids, {}, second};
  Reference oracle(c, tiny.decoded);
  const Matrix expected = oracle.run(input);
  std::vector<float> encoded;
  for (std::size_t row = 40; row < 57; ++row)
    encoded.insert(encoded.end(), runner.encoded(row), runner.encoded(row) + c.d_model);
  CHECK(difference(encoded, oracle.encoded()) < 3e-5);
  // Sequence 1 reads its own source, sequence 2 is told to read that of 1.
  model::Slice own{1, ids, model::Want::all}, told{2, ids, model::Want::all};
  told.source = 1;
  for (const model::Slice& slice : {own, told}) {
    runner.forward({&slice, 1});
    std::vector<float> logits;
    for (std::size_t row = 0; row < runner.n_logits(); ++row)
      logits.insert(logits.end(), runner.logits(row), runner.logits(row) + runner.n_outputs());
    CHECK(difference(logits, expected) < 3e-5);
  }
  const model::Slice none{0, {}, model::Want::none};
  runner.encode({&none, 1});
  const model::Slice late{0, ids, model::Want::last};
  runner.forward({&late, 1});  // the source of sequence 0 is still there
  CHECK(runner.n_logits() == 1);
}

TEST_CASE("requests that cannot run are refused", "[stack]") {
  const auto refused = [](const Contract& c, model::Slice slice, std::size_t n_encoded) {
    const TinyModel tiny = make_model(c, "f32");
    base::ThreadPool pool(1);
    model::KvCache cache(*tiny.model, {kernels::CacheType::f32, kernels::CacheType::f32, 1, 800});
    model::Runner runner(*tiny.model, cache, pool, 800, 800);
    const std::vector<std::int32_t> source = random_ids(n_encoded, 40, 1);
    const model::Slice encode{0, source, model::Want::none};
    if (n_encoded > 0) runner.encode({&encode, 1});
    CHECK_THROWS_AS(runner.forward({&slice, 1}), base::Error);
  };
  const std::vector<std::int32_t> ids = random_ids(701, 90), few = random_ids(5, 90);
  const std::vector<std::int32_t> types = {0, 1, 2, 3, 0};
  refused(encoder_contract(), {0, ids, model::Want::last}, 0);         // positions
  refused(encoder_contract(), {0, few, model::Want::last, types}, 0);  // type 3
  refused(encoder_contract(), {0, few, model::Want::last, std::span(types).first(4)}, 0);
  refused(encoder_decoder_contract(false), {0, few, model::Want::last}, 0);  // no source
  model::Slice prefix{0, few, model::Want::last};
  prefix.prefix_length = 6;
  refused(tiny_contract(), prefix, 0);
}

}  // namespace quern::tests
