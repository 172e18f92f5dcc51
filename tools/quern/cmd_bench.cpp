// quern bench: speed of prefill (pp N) and decode (tg N), at a depth, as markdown or JSON with the labels
// and keys of llama-bench. Input is pseudo-random token ids; tokenizing and sampling are not measured.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "model_options.hpp"
#include "signals.hpp"

namespace quern::tool {

namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  ModelOptions model;
  std::vector<std::size_t> prompts = {512}, generations = {128}, depths = {0};
  std::size_t repetitions = 5;
  bool no_warmup = false;
  std::string format = "md";
};

struct BenchTest {
  std::size_t n_prompt, n_gen, depth;
  std::vector<double> seconds;   // one per repetition

  std::string label() const {
    const std::string name = n_prompt != 0 ? base::cat("pp", n_prompt) : base::cat("tg", n_gen);
    return depth == 0 ? name : base::cat(name, " @ d", depth);
  }
  std::size_t tokens() const { return n_prompt + n_gen; }
};

struct Statistics {
  double mean, deviation, median;
};

Statistics statistics(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {sum / n, values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0.0, median};
}

// Runs one repetition; returns the seconds of the measured part.
class Bench {
 public:
  Bench(const LoadedModel& loaded, const BenchOptions& options, std::size_t max_tokens)
      : loaded_(loaded), chunk_(std::min(options.model.prefill_chunk, max_tokens)),
        cache_(*loaded.model, cache_options(loaded, options, max_tokens)),
        runner_(*loaded.model, cache_, *loaded.pool, chunk_, max_tokens) {
    std::mt19937 random(1);
    ids_.resize(max_tokens);
    for (std::int32_t& id : ids_)
      id = static_cast<std::int32_t>(random() % loaded.model->contract.vocab_size);
  }

  double run(const BenchTest& test) {
    cache_.clear(0);
    prefill(0, test.depth, model::Want::none);
    const Clock::time_point start = Clock::now();
    prefill(test.depth, test.n_prompt, model::Want::last);
    for (std::size_t i = 0; i < test.n_gen; ++i) forward(test.depth + i, 1, model::Want::last);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  static model::CacheOptions cache_options(const LoadedModel& loaded, const BenchOptions& options,
                                           std::size_t max_tokens) {
    model::CacheOptions cache = session_options(loaded, options.model, max_tokens).cache;
    cache.max_tokens = max_tokens;
    return cache;
  }
  void forward(std::size_t at, std::size_t n, model::Want want) {
    const model::Slice slice{0, {ids_.data() + at, n}, want};
    runner_.forward({&slice, 1});
  }
  void prefill(std::size_t first, std::size_t n, model::Want want) {
    for (std::size_t done = 0; done < n;) {
      const std::size_t step = std::min(chunk_, n - done);
      forward(first + done, step, done + step == n ? want : model::Want::none);
      done += step;
    }
  }

  const LoadedModel& loaded_;
  std::size_t chunk_;
  model::KvCache cache_;
  model::Runner runner_;
  std::vector<std::int32_t> ids_;
};

std::uint64_t weight_bytes(const LoadedModel& loaded) {
  std::uint64_t bytes = 0;
  for (const weights::TensorView& tensor : loaded.model->weights.tensors()) bytes += tensor.bytes.size();
  return bytes;
}

std::uint64_t n_parameters(const LoadedModel& loaded) {
  return loaded.model->contract.counts.parameters_in_tensors;
}

void print_markdown(const LoadedModel& loaded, const BenchOptions& options, const std::vector<BenchTest>& tests) {
  std::cout << "| model | size | params | isa | threads | type_k | type_v | test | t/s | median |\n"
               "| --- | ---: | ---: | --- | ---: | --- | --- | --- | ---: | ---: |\n";
  for (const BenchTest& test : tests) {
    std::vector<double> speeds;
    for (const double seconds : test.seconds) speeds.push_back(static_cast<double>(test.tokens()) / seconds);
    const Statistics s = statistics(speeds);
    char speed[64], params[32];
    std::snprintf(speed, sizeof(speed), "%.2f +- %.2f | %.2f", s.mean, s.deviation, s.median);
    std::snprintf(params, sizeof(params), "%.2f M", static_cast<double>(n_parameters(loaded)) / 1e6);
    std::cout << "| " << base::printable(loaded.model->contract.name, 60) << " | "
              << base::human_bytes(weight_bytes(loaded)) << " | " << params << " | "
              << loaded.model->kernels->name << " | " << loaded.pool->n_threads() << " | "
              << options.model.k_type << " | " << options.model.v_type << " | " << test.label() << " | "
              << speed << " |\n";
  }
}

void print_json(const LoadedModel& loaded, const BenchOptions& options, const std::vector<BenchTest>& tests) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BenchTest& test : tests) {
    std::vector<double> speeds, nanoseconds;
    for (const double seconds : test.seconds) {
      speeds.push_back(static_cast<double>(test.tokens()) / seconds);
      nanoseconds.push_back(std::round(seconds * 1e9));
    }
    const Statistics speed = statistics(speeds), time = statistics(nanoseconds);
    rows.push_back({{"model_type", loaded.model->contract.name},
                    {"model_size", weight_bytes(loaded)},
                    {"model_n_params", n_parameters(loaded)},
                    {"isa", loaded.model->kernels->name},
                    {"n_threads", loaded.pool->n_threads()},
                    {"n_ubatch", options.model.prefill_chunk},
                    {"type_k", options.model.k_type},
                    {"type_v", options.model.v_type},
                    {"test", test.label()},
                    {"n_prompt", test.n_prompt},
                    {"n_gen", test.n_gen},
                    {"n_depth", test.depth},
                    {"avg_ns", time.mean},
                    {"stddev_ns", time.deviation},
                    {"avg_ts", speed.mean},
                    {"stddev_ts", speed.deviation},
                    {"median_ts", speed.median},
                    {"samples_ns", nanoseconds},
                    {"samples_ts", speeds}});
  }
  std::cout << rows.dump(2) << "\n";
}

}  // namespace

int cmd_bench(const std::vector<std::string>& arguments) {
  CLI::App app("Measures prefill (pp) and decode (tg) speed on pseudo-random tokens.", "quern bench");
  BenchOptions options;
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  const auto list = [&](const char* name, std::vector<std::size_t>& target, const char* help) {
    app.add_option(name, target, help)->delimiter(',')->check(CLI::Range(std::size_t{0}, std::size_t{1} << 22));
  };
  list("-p,--n-prompt", options.prompts, "prompt lengths, comma-separated; 0 for none (512)");
  list("-n,--n-gen", options.generations, "generated lengths; 0 for none (128)");
  list("-d,--n-depth", options.depths, "tokens in the cache before the test (0)");
  app.add_option("-r,--repetitions", options.repetitions, "repetitions of each test, interleaved (5)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10000}));
  app.add_flag("--no-warmup", options.no_warmup, "measure the first run too");
  app.add_option("-o,--output", options.format, "md or json (md)")->check(CLI::IsMember({"md", "json"}));
  if (parse_arguments(app, arguments)) return 0;

  std::vector<BenchTest> tests;
  std::size_t max_tokens = 1;
  for (const std::size_t depth : options.depths) {
    for (const std::size_t n : options.prompts)
      if (n != 0) tests.push_back({n, 0, depth, {}});
    for (const std::size_t n : options.generations)
      if (n != 0) tests.push_back({0, n, depth, {}});
  }
  if (tests.empty()) base::usage_error("quern bench", "nothing to measure: give -p N or -n N");
  for (const BenchTest& test : tests) max_tokens = std::max(max_tokens, test.depth + test.tokens());
  if (options.model.context != 0 && max_tokens > options.model.context)
    base::usage_error("-c", base::cat("the longest test needs ", max_tokens, " tokens, context is ",
                                      options.model.context));

  const LoadedModel loaded = load_model(options.model);
  if (loaded.model->contract.embedding.positions && max_tokens > loaded.model->contract.max_positions)
    base::usage_error("quern bench", base::cat("the model has ", loaded.model->contract.max_positions,
                                               " positions, the longest test needs ", max_tokens));
  if (max_tokens > context_length(loaded, options.model))
    base::usage_error("quern bench", base::cat("the longest test needs ", max_tokens, " tokens, the model's context is ",
                                               context_length(loaded, options.model), " (-c N goes beyond)"));
  catch_signals();
  Bench bench(loaded, options, max_tokens);
  if (!options.no_warmup)
    for (const BenchTest& test : tests)
      if (!interrupted()) bench.run(test);
  for (std::size_t i = 0; i < options.repetitions && !interrupted(); ++i)
    for (BenchTest& test : tests) test.seconds.push_back(bench.run(test));
  if (interrupted()) return 0;
  if (options.format == "json")
    print_json(loaded, options, tests);
  else
    print_markdown(loaded, options, tests);
  return 0;
}

}  // namespace quern::tool
