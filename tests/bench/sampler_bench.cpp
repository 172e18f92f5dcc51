// Time of one token in the sampling chain; by hand: ninja sampler_bench && ./sampler_bench [VOCAB [NAME]]
// Rows look like a model's: a few tokens far ahead of a wide bulk. Time is the thread's own (other work on the machine
// counts only as far as it takes caches away).
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sampling/sampler.hpp"

namespace {

double micros() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

using quern::sampling::Sampler;
using quern::sampling::SamplerOptions;

std::vector<std::vector<float>> rows_of(std::size_t vocab_size) {
  std::mt19937 random(1);
  std::normal_distribution<float> bulk(-4.0F, 2.5F), ahead(10.0F, 3.0F);
  std::vector<std::vector<float>> rows(16, std::vector<float>(vocab_size));
  for (std::vector<float>& row : rows) {
    for (float& x : row) x = bulk(random);
    for (int i = 0; i < 20; ++i) row[random() % vocab_size] = ahead(random);
  }
  return rows;
}

// Median of microseconds a token.
double measure(const SamplerOptions& options, const std::vector<std::vector<float>>& rows) {
  Sampler sampler(options, rows[0].size());
  std::vector<double> times;
  for (int i = 0; i < 400; ++i) {
    const std::vector<float>& row = rows[static_cast<std::size_t>(i) % rows.size()];
    const double start = micros();
    sampler.accept(sampler.sample(row, 0));
    times.push_back(micros() - start);
  }
  std::nth_element(times.begin(), times.begin() + 200, times.end());
  return times[200];
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t vocab_size = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 131072;
  if (vocab_size == 0) return 2;
  const auto rows = rows_of(vocab_size);
  const auto print = [&](const std::string& name, const std::function<void(SamplerOptions&)>& change) {
    if (argc > 2 && name != argv[2]) return;
    SamplerOptions options;
    change(options);
    std::printf("%-34s %8.1f us\n", name.c_str(), measure(options, rows));
  };
  const auto open = [](SamplerOptions& o) { o.top_k = 0, o.top_p = 1, o.min_p = 0; };
  std::printf("vocabulary %zu, median of 400 tokens\n", vocab_size);
  print("default", [](auto&) {});
  print("greedy", [](auto& o) { o.temperature = 0; });
  print("default, penalties and dry", [](auto& o) { o.repeat_penalty = 1.1, o.dry_multiplier = 0.8; });
  print("every sampler of the chain", [](auto& o) {
    o.repeat_penalty = 1.1, o.presence_penalty = 0.1, o.frequency_penalty = 0.1, o.dry_multiplier = 0.8;
    o.top_n_sigma = 2, o.typical_p = 0.95, o.xtc_probability = 0.5, o.dynatemp_range = 0.3;
  });
  print("temperature only", open);
  print("top-p only", [&](auto& o) { open(o), o.top_p = 0.95; });
  print("min-p only", [&](auto& o) { open(o), o.min_p = 0.05; });
  print("typical only", [&](auto& o) { open(o), o.typical_p = 0.9; });
  print("top-n-sigma only", [&](auto& o) { open(o), o.top_n_sigma = 1.5; });
  print("xtc only", [&](auto& o) { open(o), o.xtc_probability = 1; });
  print("dynamic temperature only", [&](auto& o) { open(o), o.dynatemp_range = 0.5; });
  print("mirostat 1", [](auto& o) { o.mirostat = 1; });
  print("mirostat 2", [](auto& o) { o.mirostat = 2; });
  print("adaptive-p, default filters", [](auto& o) { o.adaptive_target = 0.4; });
  return 0;
}
