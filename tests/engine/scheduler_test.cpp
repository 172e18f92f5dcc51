// Continuous batching: whatever runs beside a sequence, its tokens and logits are those it gets alone.
#include "engine/scheduler.hpp"

#include <array>

#include "base/error.hpp"
#include "engine/scheduler_cases.hpp"

namespace quern::tests {

namespace {

using engine::FinishReason;
using engine::Scheduler;

// Allows nothing from its `after`th token on.
class Nothing : public sampling::Constraint {
 public:
  explicit Nothing(std::size_t after) : left_(after), words_(2, ~std::uint64_t{0}) {}
  std::span<const std::uint64_t> allowed() override {
    if (left_ == 0) words_.assign(2, 0);
    return words_;
  }
  void accept(std::int32_t) override { --left_; }
  void restart() override {}

 private:
  std::size_t left_;
  std::vector<std::uint64_t> words_;
};

Contract switched_contract(contract::RopeSwitchKind kind) {
  Contract c = tiny_contract();
  contract::RopeSwitch rule{};
  rule.kind = kind;
  rule.original_length = 64;
  rule.base = 1e4;
  rule.factor = 2;
  if (kind == contract::RopeSwitchKind::longrope) {
    rule.long_inv_freq = {0.5F, 0.05F, 0.005F, 0.0005F};
    rule.long_mscale = 1.2;
  }
  c.ropes["main"].switch_rule = rule;
  return c;
}

}  // namespace

TEST_CASE("a scheduled sequence has the tokens and logits it has alone, for every mechanism", "[scheduler]") {
  std::uint32_t seed = 1;  // counts the mechanisms
  std::size_t n_reused = 0;
  for (const Variant& variant : cache_variants()) {
    const TinyModel tiny = make_model(variant.contract, "q8");
    const std::vector<Request> requests = mixed_requests(10, 101, ++seed);
    Shape shape;
    const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
    for (const std::size_t n_parallel : {1, 3, 16}) {
      // Steps of 1, 7 and 64 tokens with and without sharing, over three mechanisms.
      for (const std::size_t i : {seed, seed + 1}) {
        shape.n_parallel = n_parallel;
        shape.step_tokens = std::array<std::size_t, 3>{1, 7, 64}[(i + n_parallel) % 3];
        shape.share = i % 2 == 0;
        shape.n_threads = n_parallel == 3 && i % 8 == 0 ? 2 : 1;
        INFO(variant.name << ", " << n_parallel << " sequences, steps of " << shape.step_tokens
                          << (shape.share ? ", sharing" : ""));
        const Scheduler::Totals totals = check_requests(*tiny.model, requests, alone, shape, seed);
        if (!shape.share) CHECK(totals.reused_tokens == 0);
        n_reused += totals.reused_tokens;
      }
    }
  }
  CHECK(n_reused > 1000);
}

TEST_CASE("sequences of different declared lengths run side by side", "[scheduler]") {
  Contract indexed = mla_contract();
  with_indexer(indexed, 10);
  for (const Contract& contract : {switched_contract(contract::RopeSwitchKind::dynamic_ntk),
                                   switched_contract(contract::RopeSwitchKind::longrope), indexed}) {
    const TinyModel tiny = make_model(contract, "q8");
    std::vector<Request> requests = mixed_requests(14, 101, 77);
    for (std::size_t i = 0; i < requests.size(); i += 3) requests[i].total_length = 40 + 13 * i;
    Shape shape;
    shape.n_parallel = 6;
    const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
    for (const bool share : {true, false}) {
      shape.share = share;
      check_requests(*tiny.model, requests, alone, shape, 5);
    }
  }
}

TEST_CASE("sources of an encoder-decoder are encoded side by side", "[scheduler]") {
  for (const Contract& contract : {encoder_decoder_contract(false), encoder_decoder_contract(true)}) {
    const TinyModel tiny = make_model(contract, "q8");
    std::vector<Request> requests = mixed_requests(12, 101, 9);
    Shape shape;
    shape.source_length = 60;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].source = random_ids(1 + 17 * i % 60, 101, static_cast<std::uint32_t>(i));
      if (i % 2 == 0) requests[i].prompt = {1};
    }
    const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
    for (const std::size_t n_parallel : {1, 3, 16}) {
      shape.n_parallel = n_parallel;
      check_requests(*tiny.model, requests, alone, shape, 6);
    }
  }
}

TEST_CASE("an error ends its own sequence", "[scheduler]") {
  Contract c = tiny_contract();
  like_gpt2(c);
  c.embedding.positions = contract::PositionTable{contract::PositionTableKind::learned, 82, 2, {}};
  c.max_positions = 80;
  const TinyModel tiny = make_model(c, "q8");
  std::vector<Request> requests(6);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = random_ids(20 + i, 101, static_cast<std::uint32_t>(i));
    requests[i].max_new_tokens = 12;
  }
  requests[2].prompt = random_ids(75, 101, 8);  // its answer outgrows the model's positions
  Shape shape;
  shape.n_parallel = 4;
  const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
  CHECK(alone[2].outcome.error.find("positions") != std::string::npos);
  base::ThreadPool pool(1);
  Scheduler scheduler(*tiny.model, pool, scheduler_options(shape));
  std::deque<Answered> answers(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    engine::SequenceRequest sequence = to_sequence(requests[i], *tiny.model, answers[i]);
    if (i == 3) {
      const auto constraint = std::make_shared<Nothing>(4);
      sequence.sampler->set_constraint(constraint.get());
      sequence.keep = constraint;
    }
    scheduler.add(std::move(sequence));
  }
  while (scheduler.step()) {}
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    if (i != 3) check_same(answers[i], alone[i]);
  }
  CHECK(answers[3].ids == first_ids(alone[3].ids, 4));
  CHECK_FALSE(answers[3].outcome.error.empty());
  CHECK(answers[3].outcome.answer_tokens == 4);
}

TEST_CASE("a request that cannot run is refused and nothing is queued", "[scheduler]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  Scheduler scheduler(*tiny.model, pool, scheduler_options({}));
  const auto message = [&](Ids prompt) {
    Answered answered;
    Request request;
    request.prompt = std::move(prompt);
    try {
      scheduler.add(to_sequence(request, *tiny.model, answered));
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::input);
      return error.what_only();
    }
    return std::string();
  };
  CHECK(message({}) == "is empty");
  CHECK(message(random_ids(201, 101)) == "prompt has 201 tokens, context is 200");
  CHECK(message({5, 101}).find("out of range") != std::string::npos);
  CHECK(message({5, -1}).find("out of range") != std::string::npos);
  CHECK(scheduler.n_waiting() == 0);
  CHECK_FALSE(scheduler.step());
  const TinyModel encoder = make_model(encoder_contract(), "q8");
  CHECK_THROWS_AS(Scheduler(*encoder.model, pool, scheduler_options({})), base::Error);
}

TEST_CASE("lengths: the context, no new tokens at all, a caller who has enough", "[scheduler]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  Shape shape;
  Scheduler scheduler(*tiny.model, pool, scheduler_options(shape));
  std::vector<Request> requests(3);
  for (Request& request : requests) request.prompt = random_ids(195, 101);
  requests[0].max_new_tokens = SIZE_MAX;
  requests[1].max_new_tokens = 0;
  std::deque<Answered> answers(3);
  for (std::size_t i = 0; i < 3; ++i) {
    engine::SequenceRequest sequence = to_sequence(requests[i], *tiny.model, answers[i]);
    if (i == 2)
      sequence.on_token = [&](std::int32_t id, std::span<const float>) {
        answers[2].ids.push_back(id);
        return answers[2].ids.size() < 3;
      };
    scheduler.add(std::move(sequence));
  }
  while (scheduler.step()) {}
  CHECK(answers[0].outcome.reason == FinishReason::length);
  CHECK(answers[0].ids.size() == 6);  // the last token needs no place in the cache
  CHECK(answers[1].outcome.reason == FinishReason::length);
  CHECK(answers[1].ids.empty());
  CHECK(answers[2].outcome.reason == FinishReason::stop);
  CHECK(answers[2].ids == first_ids(answers[0].ids, 3));
}

TEST_CASE("a step that was stopped is computed again; a cancelled scheduler is empty and goes on", "[scheduler]") {
  for (const Contract& contract : {tiny_contract(), mla_contract(), nsa_contract()}) {
    const TinyModel tiny = make_model(contract, "q8");
    const std::vector<Request> requests = mixed_requests(8, 101, 3);
    Shape shape;
    const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
    base::ThreadPool pool(1);
    Scheduler scheduler(*tiny.model, pool, scheduler_options(shape));
    std::deque<Answered> cancelled(requests.size()), answers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
      scheduler.add(to_sequence(requests[i], *tiny.model, cancelled[i]));
    for (int i = 0; i < 6; ++i) scheduler.step();
    scheduler.cancel();
    CHECK(scheduler.n_running() + scheduler.n_waiting() == 0);
    for (const Answered& answered : cancelled) CHECK(answered.finished);
    CHECK(cancelled.back().outcome.reason == FinishReason::interrupted);

    for (std::size_t i = 0; i < requests.size(); ++i)
      scheduler.add(to_sequence(requests[i], *tiny.model, answers[i]));
    std::mt19937 random(4);
    while (scheduler.step([&] { return random() % 5 == 0; })) {}
    for (std::size_t i = 0; i < requests.size(); ++i) check_same(answers[i], alone[i]);
  }
}

TEST_CASE("a bounded cache sets sequences aside, and their answers stay the same", "[scheduler]") {
  std::vector<Contract> contracts = {tiny_contract(), mla_contract(), nsa_contract(), tiny_contract()};
  attention_of(contracts[3]).mask.window = 33;
  for (const Contract& contract : contracts) {
    const TinyModel tiny = make_model(contract, "q8");
    std::vector<Request> requests = mixed_requests(14, 101, 31);
    for (Request& request : requests) {
      request.max_new_tokens += 40;
      request.stop_ids.clear();
    }
    Shape shape;
    shape.n_parallel = 8;
    const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
    model::CacheOptions one;
    one.max_tokens = 200;
    model::KvCache whole(*tiny.model, one);
    const std::uint64_t bytes = whole.reserve_bytes(0, 200);
    for (const std::uint64_t most : {bytes, 2 * bytes}) {
      base::ThreadPool pool(1);
      engine::SchedulerOptions options = scheduler_options(shape);
      options.cache_bytes = most;
      Scheduler scheduler(*tiny.model, pool, options);
      std::deque<Answered> answers(requests.size());
      for (std::size_t i = 0; i < requests.size(); ++i)
        scheduler.add(to_sequence(requests[i], *tiny.model, answers[i]));
      while (scheduler.step()) CHECK(scheduler.cache().block_bytes() <= most);
      for (std::size_t i = 0; i < requests.size(); ++i) check_same(answers[i], alone[i]);
      if (most == bytes && !contract.ops.at("attn").nsa) CHECK(scheduler.totals().set_aside > 0);
    }
    // One that does not fit alone; the next does.
    base::ThreadPool pool(1);
    engine::SchedulerOptions options = scheduler_options(shape);
    options.cache_bytes = whole.reserve_bytes(0, 100) - 1;
    Scheduler scheduler(*tiny.model, pool, options);
    Request large, small;
    large.prompt = random_ids(190, 101);
    small.prompt = random_ids(40, 101);
    std::deque<Answered> answers(2);
    scheduler.add(to_sequence(large, *tiny.model, answers[0]));
    scheduler.add(to_sequence(small, *tiny.model, answers[1]));
    while (scheduler.step()) {}
    if (!scheduler.cache().forgets()) CHECK(answers[0].outcome.error.find("KV cache") == 0);
    check_same(answers[1], answer_alone(*tiny.model, small, shape));
  }
}

TEST_CASE("callbacks may add sequences", "[scheduler]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  base::ThreadPool pool(1);
  Scheduler scheduler(*tiny.model, pool, scheduler_options({}));
  std::deque<Answered> answers(20);
  Request request;
  request.prompt = random_ids(30, 101);
  std::size_t n = 0;
  std::function<void()> add = [&] {
    engine::SequenceRequest sequence = to_sequence(request, *tiny.model, answers[n]);
    sequence.on_finished = [&, finished = sequence.on_finished](const engine::SequenceOutcome& outcome) {
      finished(outcome);
      if (n < answers.size()) add();
    };
    ++n;
    scheduler.add(std::move(sequence));
  };
  add();
  add();
  while (scheduler.step()) {}
  CHECK(n == 20);
  for (const Answered& answered : answers) CHECK(answered.ids == answers[0].ids);
}

}  // namespace quern::tests
