// Requests of a scheduler, and the answers that a session gives to each of them alone.
#pragma once

#include <deque>
#include <memory>
#include <random>

#include "engine/scheduler.hpp"
#include "engine/session_cases.hpp"

namespace quern::tests {

struct Request {
  Ids prompt, source;
  std::size_t max_new_tokens = 8;
  std::vector<std::int32_t> stop_ids = {};
  double temperature = 0;  // 0: greedy
  std::uint64_t seed = 1;
  std::size_t total_length = 0;
};

struct Answered {
  Ids ids;
  std::vector<float> logits;
  engine::SequenceOutcome outcome;
  bool finished = false;
};

struct Shape {
  std::size_t context = 200, n_parallel = 3, step_tokens = 16, prefix_sequences = 2, source_length = 0;
  bool share = true;
  std::size_t n_threads = 1;
};

inline std::unique_ptr<sampling::Sampler> make_sampler(const Request& request, std::size_t vocab_size) {
  sampling::SamplerOptions options;
  options.temperature = request.temperature;
  options.seed = request.seed;
  return std::make_unique<sampling::Sampler>(options, vocab_size);
}

inline void keep_logits(std::vector<float>& all, std::span<const float> logits) {
  all.insert(all.end(), logits.begin(), logits.end());
}

inline Answered answer_alone(const model::Model& model, const Request& request, const Shape& shape) {
  base::ThreadPool pool(1);
  engine::SessionOptions options;
  options.cache.max_tokens = shape.context;
  options.deterministic = true;
  options.total_length = request.total_length != 0
                             ? request.total_length
                             : std::min(request.prompt.size() + request.max_new_tokens, shape.context + 1);
  options.source_length = request.source.size();
  engine::Session session(model, pool, options);
  const auto sampler = make_sampler(request, model.contract.vocab_size);
  Answered answer;
  if (!request.source.empty()) session.encode(request.source);
  engine::GenerateOptions generate;
  generate.max_new_tokens = request.max_new_tokens;
  generate.stop_ids = request.stop_ids;
  try {
    answer.outcome.reason = session.generate(request.prompt, *sampler, generate, [&](std::int32_t id) {
      answer.ids.push_back(id);
      keep_logits(answer.logits, session.logits());
      return true;
    });
  } catch (const base::Error& error) {
    answer.outcome.error = error.what();
  }
  return answer;
}

inline engine::SchedulerOptions scheduler_options(const Shape& shape) {
  engine::SchedulerOptions options;
  options.cache.max_tokens = shape.context;
  options.n_parallel = shape.n_parallel;
  options.step_tokens = shape.step_tokens;
  options.prefix_sequences = shape.prefix_sequences;
  options.share_prefixes = shape.share;
  options.source_length = shape.source_length;
  return options;
}

// The request as the scheduler takes it; `answered` must stay where it is.
inline engine::SequenceRequest to_sequence(const Request& request, const model::Model& model, Answered& answered) {
  engine::SequenceRequest sequence;
  sequence.prompt = request.prompt;
  sequence.source = request.source;
  sequence.sampler = make_sampler(request, model.contract.vocab_size);
  sequence.max_new_tokens = request.max_new_tokens;
  sequence.total_length = request.total_length;
  sequence.stop_ids = request.stop_ids;
  sequence.on_token = [&answered](std::int32_t id, std::span<const float> logits) {
    answered.ids.push_back(id);
    keep_logits(answered.logits, logits);
    return true;
  };
  sequence.on_finished = [&answered](const engine::SequenceOutcome& outcome) {
    CHECK_FALSE(answered.finished);
    answered.finished = true;
    answered.outcome = outcome;
  };
  return sequence;
}

inline void check_same(const Answered& got, const Answered& alone) {
  CHECK(got.finished);
  CHECK(got.ids == alone.ids);
  CHECK(same_bits(got.logits, alone.logits));
  CHECK(got.outcome.error == alone.outcome.error);
  if (alone.outcome.error.empty()) CHECK(got.outcome.reason == alone.outcome.reason);
  CHECK(got.outcome.answer_tokens == alone.ids.size());
}

// Requests arrive at random between the steps; each must be answered as alone.
inline engine::Scheduler::Totals check_requests(const model::Model& model, const std::vector<Request>& requests,
                                                const std::vector<Answered>& alone, const Shape& shape,
                                                std::uint32_t seed) {
  base::ThreadPool pool(shape.n_threads, shape.n_threads);
  engine::Scheduler scheduler(model, pool, scheduler_options(shape));
  std::deque<Answered> answers(requests.size());
  std::mt19937 random(seed);
  std::size_t next = 0;
  while (true) {
    for (std::size_t n = random() % 4; n > 0 && next < requests.size(); --n, ++next)
      scheduler.add(to_sequence(requests[next], model, answers[next]));
    if (!scheduler.step() && next == requests.size()) break;
    CHECK(scheduler.n_running() <= shape.n_parallel);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    check_same(answers[i], alone[i]);
    CHECK(answers[i].outcome.prompt_tokens == requests[i].prompt.size());
  }
  return scheduler.totals();
}

// Prompts of two families with a beginning in common, some twice, some alone; greedy and sampled.
inline std::vector<Request> mixed_requests(std::size_t n, std::size_t vocab_size, std::uint32_t seed) {
  std::mt19937 random(seed);
  const Ids beginnings[] = {random_ids(41, vocab_size, seed + 1), random_ids(96, vocab_size, seed + 2), {}};
  std::vector<Request> requests;
  for (std::size_t i = 0; i < n; ++i) {
    Request request;
    if (i > 0 && random() % 5 == 0) {
      request = requests[random() % i];
    } else {
      request.prompt =
          joined_ids(beginnings[random() % 3], random_ids(1 + random() % 40, vocab_size, static_cast<std::uint32_t>(random())));
    }
    request.max_new_tokens = 1 + random() % 20;
    request.temperature = random() % 2 == 0 ? 0 : 1.5;
    request.seed = random();
    if (random() % 2 == 0) request.stop_ids = {static_cast<std::int32_t>(random() % vocab_size)};
    requests.push_back(request);
  }
  return requests;
}

inline std::vector<Answered> all_alone(const model::Model& model, const std::vector<Request>& requests,
                                       const Shape& shape) {
  std::vector<Answered> answers;
  for (const Request& request : requests) answers.push_back(answer_alone(model, request, shape));
  return answers;
}

}  // namespace quern::tests
