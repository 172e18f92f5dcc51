// Guesses that are checked together: the answer, its logits and what the session holds are those of plain
// decoding, for every mechanism and however the answer ends.
#include "base/error.hpp"
#include "engine/session_cases.hpp"
#include "engine/speculator.hpp"

namespace quern::tests {

namespace {

using engine::FinishReason;
using engine::GenerateOptions;
using engine::Session;

// Knows the text, and lies about every `every`th token of it.
class Oracle : public engine::Drafter {
 public:
  Oracle(Ids text, std::size_t every) : text_(std::move(text)), every_(every) {}
  std::span<const std::int32_t> draft(std::span<const std::int32_t> text, std::size_t n) override {
    guesses_.clear();
    for (std::size_t i = text.size(); i < text.size() + n && i < text_.size(); ++i)
      guesses_.push_back(++count_ % every_ == 0 ? (text_[i] + 1) % 101 : text_[i]);
    return guesses_;
  }
  bool cheap() const override { return false; }
  std::string name() const override { return "oracle"; }

 private:
  Ids text_, guesses_;
  std::size_t every_, count_ = 0;
};

// Even and odd ids in turn; follows by accept() alone.
class InTurn : public sampling::Constraint {
 public:
  std::span<const std::uint64_t> allowed() override {
    words_.assign(2, odd_ ? 0xAAAAAAAAAAAAAAAA : 0x5555555555555555);
    return words_;
  }
  void accept(std::int32_t) override { odd_ = !odd_; }
  void restart() override { odd_ = false; }

 private:
  bool odd_ = false;
  std::vector<std::uint64_t> words_;
};

struct Case {
  SessionShape shape = {};
  std::size_t n_new = 60;
  double temperature = 0;
  std::vector<std::int32_t> stop_ids = {};
  std::size_t interrupt_after = SIZE_MAX;
  bool constrained = false;
};

// All that can be seen of an answer.
struct Seen {
  Ids ids, held;
  std::vector<float> logits;
  FinishReason reason = FinishReason::length;
  FileBytes snapshot, snapshot_within;
  std::uint64_t n_drawn = 0;
  std::string error;
};

Seen answer(const model::Model& model, const Ids& prompt, const Case& c, const SessionDirectory& directory,
            engine::Speculator* speculator) {
  base::ThreadPool pool(1);
  engine::SessionOptions options = session_options(c.shape);
  if (speculator != nullptr) options.max_draft = speculator->max_draft();
  Session session(model, pool, options);
  sampling::SamplerOptions sampling;
  sampling.temperature = c.temperature;
  sampling.seed = 5;
  sampling::Sampler sampler(sampling, 101);
  InTurn constraint;
  if (c.constrained) sampler.set_constraint(&constraint);
  GenerateOptions generate;
  generate.max_new_tokens = c.n_new;
  generate.stop_ids = c.stop_ids;
  generate.speculator = speculator;
  Seen seen;
  try {
    seen.reason = session.generate(prompt, sampler, generate, [&](std::int32_t id) {
      seen.ids.push_back(id);
      seen.logits.insert(seen.logits.end(), session.logits().begin(), session.logits().end());
      if (seen.ids.size() == 20) seen.snapshot_within = snapshot_of(session, directory);
      return seen.ids.size() <= c.interrupt_after;
    });
  } catch (const base::Error& error) {
    seen.error = error.what();
  }
  seen.held = session.tokens();
  CHECK(session.cache().length(0) == seen.held.size());
  seen.snapshot = snapshot_of(session, directory);
  seen.n_drawn = sampler.state().n_drawn;
  const engine::PhaseTimes& times = session.times();
  CHECK(times.decode_tokens == times.token_seconds.size());
  if (speculator == nullptr) CHECK(times.decode_steps == times.decode_tokens);
  return seen;
}

void check_equal(const Seen& got, const Seen& plain) {
  CHECK(got.ids == plain.ids);
  CHECK(same_bits(got.logits, plain.logits));
  CHECK(got.reason == plain.reason);
  CHECK(got.held == plain.held);
  CHECK(got.snapshot == plain.snapshot);
  CHECK(got.snapshot_within == plain.snapshot_within);
  CHECK(got.n_drawn == plain.n_drawn);
  CHECK(got.error == plain.error);
}

// Text that repeats itself, so that there is something to look up.
Ids repetitive(std::size_t n) {
  Ids ids = random_ids(n / 3, 101, 3);
  while (ids.size() < n) ids.push_back(ids[ids.size() - n / 3]);
  return ids;
}

void check_case(const model::Model& model, const Ids& prompt, const Case& c, const SessionDirectory& directory) {
  const Seen plain = answer(model, prompt, c, directory, nullptr);
  const Ids whole = joined_ids(prompt, plain.ids);
  for (const std::size_t max_draft : {1, 4, 21})
    for (const std::size_t every : {2, 7, 1000}) {
      INFO("drafts of " << max_draft << ", wrong every " << every);
      Oracle oracle(whole, every);
      engine::Speculator speculator(oracle, {max_draft, false});
      check_equal(answer(model, prompt, c, directory, &speculator), plain);
    }
  const auto ngram = engine::ngram_drafter();
  engine::Speculator speculator(*ngram, {8, true});
  check_equal(answer(model, prompt, c, directory, &speculator), plain);
}

}  // namespace

TEST_CASE("speculation gives the answer of plain decoding, for every mechanism", "[speculation]") {
  const SessionDirectory directory;
  for (const Variant& variant : cache_variants()) {
    INFO(variant.name);
    const TinyModel tiny = make_model(variant.contract, "q8");
    check_case(*tiny.model, repetitive(70), {}, directory);
    Case sampled;
    sampled.temperature = 1.2;
    check_case(*tiny.model, repetitive(70), sampled, directory);
  }
}

TEST_CASE("latent attention that may expand stays in the form of single tokens", "[speculation]") {
  const SessionDirectory directory;
  const TinyModel tiny = make_model(mla_contract(), "q8");
  Case c;
  c.shape.deterministic = false;
  c.shape.chunk = 128;
  check_case(*tiny.model, repetitive(70), c, directory);
}

TEST_CASE("speculation ends where plain decoding ends", "[speculation]") {
  const SessionDirectory directory;
  std::vector<Contract> contracts = {tiny_contract(), nsa_contract()};
  attention_of(contracts[0]).mask.window = 33;
  attention_of(contracts[0]).mask.sinks = 3;
  for (const Contract& contract : contracts) {
    const TinyModel tiny = make_model(contract, "q8");
    const Ids prompt = repetitive(70);
    Case c;
    const Ids ids = answer(*tiny.model, prompt, c, directory, nullptr).ids;
    c.stop_ids = {ids[23]};
    check_case(*tiny.model, prompt, c, directory);
    c.stop_ids = {};
    for (const std::size_t n : {0, 1, 2, 3, 22}) {
      INFO("interrupted after " << n);
      c.interrupt_after = n;
      check_case(*tiny.model, prompt, c, directory);
    }
    c = {};
    for (const std::size_t n : {0, 1, 2, 3}) {
      c.n_new = n;
      check_case(*tiny.model, prompt, c, directory);
    }
    c.n_new = 60;
    c.shape.context = 100;  // which is full before
    check_case(*tiny.model, prompt, c, directory);
    c = {};
    c.constrained = true;
    check_case(*tiny.model, prompt, c, directory);
    c.temperature = 1.2;
    check_case(*tiny.model, prompt, c, directory);
  }
}

TEST_CASE("speculation does not reach beyond tables and positions", "[speculation]") {
  const SessionDirectory directory;
  const TinyModel ntk = make_model(ntk_contract(90), "q8");
  Case c;
  c.shape.follow_length = true;
  check_case(*ntk.model, repetitive(70), c, directory);
  Contract learned = tiny_contract();
  like_gpt2(learned);
  learned.embedding.positions = contract::PositionTable{contract::PositionTableKind::learned, 102, 2, {}};
  learned.max_positions = 100;
  const TinyModel gpt2 = make_model(learned, "q8");
  check_case(*gpt2.model, repetitive(70), {}, directory);  // ends with an error, the same
}

TEST_CASE("a session without room for guesses decodes plainly", "[speculation]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  Session session(*tiny.model, pool, session_options({}));
  const auto ngram = engine::ngram_drafter();
  engine::Speculator speculator(*ngram, {8, false});
  GenerateOptions options;
  options.max_new_tokens = 20;
  options.speculator = &speculator;
  answer_greedily(session, repetitive(60), options);
  CHECK(session.times().decode_steps == 19);
  CHECK(session.times().speculation.steps == 0);
}

TEST_CASE("right guesses save steps, and the counts say how many", "[speculation]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  engine::SessionOptions shape = session_options({});
  shape.max_draft = 4;
  Session plain(*tiny.model, pool, session_options({})), session(*tiny.model, pool, shape);
  const Ids prompt = random_ids(30, 101);
  const Ids whole = joined_ids(prompt, answer_greedily(plain, prompt, 41).ids);
  Oracle oracle(whole, 1000);
  engine::Speculator speculator(oracle, {4, false});
  GenerateOptions options;
  options.max_new_tokens = 41;
  options.speculator = &speculator;
  CHECK(joined_ids(prompt, answer_greedily(session, prompt, options).ids) == whole);
  CHECK(session.times().decode_tokens == 40);
  CHECK(session.times().decode_steps == 8);
  const engine::SpeculationCounts& counts = session.times().speculation;
  CHECK(counts.steps == 8);
  CHECK(counts.drafted == 32);
  CHECK(counts.accepted == 32);
}

TEST_CASE("a draft model guesses its own answer", "[speculation]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  Contract windowed = tiny_contract();
  attention_of(windowed).mask.window = 33;
  const TinyModel other = make_model(windowed, "q8", 9);
  Contract wide = tiny_contract();
  wide.vocab_size = 103;
  const TinyModel foreign = make_model(wide, "q8");
  base::ThreadPool pool(1);
  CHECK_THROWS_AS(engine::model_drafter(*foreign.model, *tiny.model, pool, {}, 16), base::Error);
  const Ids prompt = random_ids(90, 101);
  Session plain(*tiny.model, pool, session_options({}));
  const Ids expected = answer_greedily(plain, prompt, 60).ids;
  for (const model::Model* draft : {tiny.model.get(), other.model.get()}) {
    model::CacheOptions cache;
    cache.max_tokens = 400;
    const auto drafter = engine::model_drafter(*draft, *tiny.model, pool, cache, 16);
    engine::Speculator speculator(*drafter, {5, false});
    engine::SessionOptions shape = session_options({});
    shape.max_draft = 5;
    Session session(*tiny.model, pool, shape);
    GenerateOptions options;
    options.max_new_tokens = 60;
    options.speculator = &speculator;
    CHECK(answer_greedily(session, prompt, options).ids == expected);
    if (draft == tiny.model.get())
      CHECK(session.times().speculation.accepted == session.times().speculation.drafted);
  }
}

}  // namespace quern::tests
