// Tokens a second of many sequences at once, and of as many one after the other, on a converted model:
//   ninja scheduler_bench && ./scheduler_bench MODEL [n_prompt n_gen threads repetitions parallel...]
// Greedy without an end. Prompts are random ids without anything in common.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "engine/scheduler.hpp"
#include "kernels/select.hpp"

namespace {

using namespace quern;

struct Measured {
  double prefill, decode;  // tokens a second
};

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

engine::SequenceRequest request(const model::Model& model, std::size_t n_prompt, std::size_t n_gen, unsigned seed) {
  std::mt19937 random(seed);
  engine::SequenceRequest r;
  for (std::size_t i = 0; i < n_prompt; ++i)
    r.prompt.push_back(static_cast<std::int32_t>(random() % model.contract.vocab_size));
  sampling::SamplerOptions greedy;
  greedy.temperature = 0;
  r.sampler = std::make_unique<sampling::Sampler>(greedy, model.contract.vocab_size);
  r.max_new_tokens = n_gen;
  return r;
}

// All prompts first, then steps of which each decodes every sequence.
Measured measure(const model::Model& model, base::ThreadPool& pool, std::size_t n, std::size_t n_prompt,
                 std::size_t n_gen) {
  engine::SchedulerOptions options;
  options.cache.max_tokens = n_prompt + n_gen + 1;
  options.n_parallel = n;
  options.prefix_sequences = 0;
  engine::Scheduler scheduler(model, pool, options);
  std::size_t decoding = 0;
  for (std::size_t i = 0; i < n; ++i) {
    engine::SequenceRequest r = request(model, n_prompt, n_gen, static_cast<unsigned>(i));
    r.on_token = [&decoding, first = true](std::int32_t, std::span<const float>) mutable {
      if (first) ++decoding;
      first = false;
      return true;
    };
    scheduler.add(std::move(r));
  }
  auto start = std::chrono::steady_clock::now();
  while (decoding < n) scheduler.step();
  const double prefill = since(start);
  const std::size_t before = scheduler.totals().decode_tokens;
  start = std::chrono::steady_clock::now();
  while (scheduler.step()) {}
  const double decode = since(start);
  const auto tokens = static_cast<double>(scheduler.totals().decode_tokens - before);
  return {static_cast<double>(n * n_prompt) / prefill, tokens / decode};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto number = [&](int i, std::size_t usual) {
    return argc > i ? static_cast<std::size_t>(std::strtoul(argv[i], nullptr, 10)) : usual;
  };
  const std::size_t n_prompt = number(2, 32), n_gen = number(3, 64), repetitions = number(5, 3);
  std::vector<std::size_t> parallel;
  for (int i = 6; i < argc; ++i) parallel.push_back(number(i, 1));
  if (parallel.empty()) parallel = {1, 2, 4, 8, 16, 32};
  const auto model = model::Model::load(argv[1], kernels::select_kernels());
  base::ThreadPool pool(number(4, base::default_thread_count()));
  std::vector<std::vector<double>> prefill(parallel.size()), decode(parallel.size());
  measure(*model, pool, 1, n_prompt, 8);
  for (std::size_t r = 0; r < repetitions; ++r)
    for (std::size_t i = 0; i < parallel.size(); ++i) {
      const Measured m = measure(*model, pool, parallel[i], n_prompt, n_gen);
      prefill[i].push_back(m.prefill);
      decode[i].push_back(m.decode);
    }
  std::printf("| sequences | prefill t/s | decode t/s | over the first |\n| ---: | ---: | ---: | ---: |\n");
  for (std::size_t i = 0; i < parallel.size(); ++i)
    std::printf("| %zu | %.1f | %.1f | %.2f |\n", parallel[i], median(prefill[i]), median(decode[i]),
                median(decode[i]) / median(decode[0]));
  return 0;
}
