// What prompts have in common is computed once: counted in tokens, for requests that wait together, that follow
// one another, and in models whose layers forget.
#include "engine/scheduler_cases.hpp"

namespace quern::tests {

namespace {

using engine::Scheduler;

Contract windowed_contract() {
  Contract c = tiny_contract();
  attention_of(c).mask.window = 33;
  return c;
}

std::vector<Request> family(const Ids& beginning, std::size_t n, std::size_t suffix, std::uint32_t seed = 5) {
  std::vector<Request> requests(n);
  for (std::size_t i = 0; i < n; ++i) {
    requests[i].prompt = joined_ids(beginning, random_ids(suffix, 101, seed + static_cast<std::uint32_t>(i)));
    requests[i].prompt[beginning.size()] = static_cast<std::int32_t>(i);  // here they part
    requests[i].max_new_tokens = 4;
  }
  return requests;
}

// Tokens of prompts that were computed; every answer is checked against the one alone.
std::size_t computed(const Contract& contract, const std::vector<Request>& requests, const Shape& shape,
                     bool one_after_another = false) {
  const TinyModel tiny = make_model(contract, "q8");
  base::ThreadPool pool(1);
  Scheduler scheduler(*tiny.model, pool, scheduler_options(shape));
  std::deque<Answered> answers(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    scheduler.add(to_sequence(requests[i], *tiny.model, answers[i]));
    if (one_after_another)
      while (scheduler.step()) {}
  }
  while (scheduler.step()) {}
  const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
  std::size_t n_prompts = 0, n_reused = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    check_same(answers[i], alone[i]);
    n_prompts += requests[i].prompt.size();
    n_reused += answers[i].outcome.reused_tokens;
  }
  CHECK(scheduler.totals().reused_tokens == n_reused);
  CHECK(scheduler.totals().prefill_tokens == n_prompts - n_reused);
  return scheduler.totals().prefill_tokens;
}

}  // namespace

TEST_CASE("requests that wait together compute their beginning once", "[scheduler]") {
  const std::vector<Request> requests = family(random_ids(100, 101), 16, 7);
  for (const Contract& contract : {tiny_contract(), windowed_contract(), mla_contract(), nsa_contract()})
    for (const std::size_t step_tokens : {16, 64, 512})
      for (const std::size_t n_parallel : {4, 16}) {
        Shape shape;
        shape.n_parallel = n_parallel;
        shape.step_tokens = step_tokens;
        CHECK(computed(contract, requests, shape) == 100 + 16 * 7);
      }
}

TEST_CASE("a request begins with the prompt of one that ended", "[scheduler]") {
  const Ids beginning = random_ids(100, 101);
  Shape shape;
  shape.n_parallel = 1;
  CHECK(computed(tiny_contract(), family(beginning, 6, 7), shape, true) == 100 + 6 * 7);
  // Where layers forget, the second shows where the beginning ends.
  CHECK(computed(windowed_contract(), family(beginning, 6, 50), shape, true) == 2 * 100 + 6 * 50);
  CHECK(computed(nsa_contract(), family(beginning, 6, 50), shape, true) == 2 * 100 + 6 * 50);
  shape.prefix_sequences = 0;
  CHECK(computed(tiny_contract(), family(beginning, 6, 7), shape, true) == 6 * 107);
  shape.share = false;
  CHECK(computed(tiny_contract(), family(beginning, 6, 7), shape, false) == 6 * 107);
}

TEST_CASE("as many different beginnings are kept as there are places", "[scheduler]") {
  std::vector<Request> requests;
  std::vector<std::vector<Request>> families;
  for (std::uint32_t i = 0; i < 3; ++i) families.push_back(family(random_ids(60, 101, 50 + i), 8, 5, 100 * i));
  for (std::size_t i = 0; i < 8; ++i)
    for (const std::vector<Request>& one : families) requests.push_back(one[i]);
  Shape shape;
  shape.n_parallel = 1;
  shape.prefix_sequences = 3;
  CHECK(computed(tiny_contract(), requests, shape, true) == 3 * 60 + 24 * 5);
  shape.prefix_sequences = 2;  // the oldest is the one that is needed next
  CHECK(computed(tiny_contract(), requests, shape, true) == 24 * 65);
}

TEST_CASE("a prompt within another, and one that is twice there", "[scheduler]") {
  const Ids text = random_ids(120, 101);
  std::vector<Request> requests(4);
  requests[0].prompt = text;
  requests[1].prompt = text;
  requests[2].prompt = first_ids(text, 64);
  requests[3].prompt = first_ids(text, 90);
  Shape shape;
  shape.n_parallel = 4;
  CHECK(computed(tiny_contract(), requests, shape) == 120 + 1 + 1 + 1);
  shape.n_parallel = 1;
  CHECK(computed(tiny_contract(), requests, shape) == 120 + 1 + 1 + 1);
}

TEST_CASE("whoever waits for a sequence that ends looks for another", "[scheduler]") {
  const TinyModel tiny = make_model(tiny_contract(), "q8");
  const std::vector<Request> requests = family(random_ids(100, 101), 5, 7);
  Shape shape;
  shape.n_parallel = 5;
  const std::vector<Answered> alone = all_alone(*tiny.model, requests, shape);
  base::ThreadPool pool(1);
  Scheduler scheduler(*tiny.model, pool, scheduler_options(shape));
  std::deque<Answered> answers(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    scheduler.add(to_sequence(requests[i], *tiny.model, answers[i]));
  }
  for (int i = 0; i < 3; ++i) scheduler.step();
  scheduler.cancel();  // in the middle of the beginning, which is kept as far as it is
  std::deque<Answered> again(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    scheduler.add(to_sequence(requests[i], *tiny.model, again[i]));
  while (scheduler.step()) {}
  for (std::size_t i = 0; i < requests.size(); ++i) check_same(again[i], alone[i]);
  CHECK(scheduler.totals().prefill_tokens == 100 + 5 * 7);
}

}  // namespace quern::tests
