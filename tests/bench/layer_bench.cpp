// Decode layer by layer, on a converted model, through the engine: every step walks all layers, so
// that weights come from memory as they do in a run. Time of each layer and of its parts beside
// bytes / (what this machine reads), what the threads did meanwhile, and how much of the time of
// unwatched tokens all of it explains. Medians of steps; watched and unwatched answers and the
// measurement of the machine take turns. Not run by ctest.
//   layer_bench -m DIR [-t THREADS] [-d DEPTH] [-ctk int8] [-ctv int8] [--seconds 10] [--each]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "bench/layer_bytes.hpp"
#include "bench/layer_run.hpp"
#include "contract/cache_types.hpp"
#include "kernels/select.hpp"

namespace {

using namespace quern;
using bench::PartTime;
using model::Part;

const char* name_of(Part part) {
  switch (part) {
    case Part::embedding: return "embedding";
    // From a layer's begin to that of its first part nothing is computed: the time is what telling one mark costs.
    case Part::layer: return "marks";
    case Part::qkv: return "qkv";
    case Part::place: return "place";
    case Part::attend: return "attend";
    case Part::o: return "o";
    case Part::gate_up: return "gate, up";
    case Part::down: return "down";
    case Part::other_op: return "other op";
    case Part::final_norm: return "final norm";
    case Part::head: return "head";
    case Part::end: break;
  }
  return "end";
}

struct Options {
  std::string model;
  bench::DecodeShape shape;
  double seconds = 10;
  bool each = false;  // every layer on a line of its own
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The weights are in memory and their pages mapped, as `quern run --prefault` has them.
void prefault(const model::Model& model) {
  const base::MappedFile& file = model.weights.file();
  file.advise(base::MappedFile::Advice::huge_pages, 0, file.bytes().size());
  file.populate(0, file.bytes().size());
}

// Times and bytes by layer and part, as the report asks for them.
class Figures {
 public:
  Figures(const model::Model& model, const bench::DecodeTurns& turns, const bench::Measured& m,
          std::size_t n_keys)
      : model_(model),
        cache_(turns.cache()),
        clock_(m.clock),
        n_keys_(n_keys),
        read_(median(m.read)) {}

  double read() const { return read_; }
  std::size_t n_layers() const { return clock_.n_layers(); }
  double bytes(std::size_t layer, Part part) const {
    if (layer == n_layers())
      return part == Part::head ? bench::linear_bytes(model_.head.logits) : 0;
    return bench::part_bytes(model_.decoder->layers[layer], part, cache_, n_keys_);
  }
  double layer_bytes(std::size_t layer) const {
    double sum = 0;
    for (std::size_t part = 0; part < model::kParts; ++part)
      sum += bytes(layer, static_cast<Part>(part));
    return sum;
  }
  double layer_seconds(std::size_t layer) const {
    return median_of([&](std::size_t step) {
      double sum = 0;
      for (std::size_t part = 0; part < model::kParts; ++part)
        sum += clock_.at(step, layer, static_cast<Part>(part)).wall;
      return sum;
    });
  }
  // Of all layers together, and of what is in none.
  double part_bytes(Part part) const {
    double sum = 0;
    for (std::size_t layer = 0; layer <= n_layers(); ++layer) sum += bytes(layer, part);
    return sum;
  }
  PartTime part_time(Part part) const {
    PartTime time;
    for (const auto what :
         {&PartTime::wall, &PartTime::alone, &PartTime::busy, &PartTime::late, &PartTime::waiting})
      time.*what = median_of([&](std::size_t step) {
        double sum = 0;
        for (std::size_t layer = 0; layer <= n_layers(); ++layer)
          sum += clock_.at(step, layer, part).*what;
        return sum;
      });
    return time;
  }

 private:
  template <class F>
  double median_of(F&& value) const {
    std::vector<double> values(clock_.n_steps());
    for (std::size_t step = 0; step < values.size(); ++step) values[step] = value(step);
    return median(std::move(values));
  }

  const model::Model& model_;
  const model::KvCache& cache_;
  const bench::LayerClock& clock_;
  std::size_t n_keys_;
  double read_;
};

// "us  MB  GB/s  limit us  of limit", the last four where there are bytes.
std::string bandwidth_cells(double seconds, double bytes, double read) {
  char text[128];
  if (bytes == 0)
    std::snprintf(text, sizeof(text), "%9.1f %9s %7s %9s %8s", seconds * 1e6, "", "", "", "");
  else
    std::snprintf(text, sizeof(text), "%9.1f %9.3f %7.1f %9.1f %6.1f %%", seconds * 1e6,
                  bytes * 1e-6, bytes / seconds * 1e-9, bytes / read * 1e6,
                  100 * bytes / read / seconds);
  return text;
}

// Layers of equal bytes that follow each other are one line: median and slowest of their medians.
void print_layers(const Figures& f, bool each) {
  std::printf("\n%-10s %9s %9s %7s %9s %8s %12s\n", "layers", "us", "MB", "GB/s", "limit us",
              "of limit", "slowest us");
  for (std::size_t first = 0, end = 0; first < f.n_layers(); first = end) {
    const double bytes = f.layer_bytes(first);
    std::vector<double> times;
    for (end = first; end < f.n_layers() && f.layer_bytes(end) == bytes && !(each && end > first);
         ++end)
      times.push_back(f.layer_seconds(end));
    const std::string name = base::cat(first, end - first > 1 ? base::cat("-", end - 1) : "");
    const auto slowest = std::max_element(times.begin(), times.end());
    std::printf("%-10s %s %9.1f (%zu)\n", name.c_str(),
                bandwidth_cells(median(times), bytes, f.read()).c_str(), *slowest * 1e6,
                first + static_cast<std::size_t>(slowest - times.begin()));
  }
}

void print_parts(const Figures& f, std::size_t n_threads) {
  std::printf("\n%-10s %9s %9s %7s %9s %8s   %8s %8s %8s %8s\n", "parts", "us", "MB", "GB/s",
              "limit us", "of limit", "busy", "late", "waiting", "alone");
  const auto print = [&](const char* name, const PartTime& time, double bytes) {
    std::printf("%-10s %s", name, bandwidth_cells(time.wall, bytes, f.read()).c_str());
    if (n_threads > 1)  // a thread that is the only one is always busy
      std::printf("   %8.1f %8.1f %8.1f %8.1f", time.busy * 1e6, time.late * 1e6,
                  time.waiting * 1e6, time.alone * 1e6);
    std::printf("\n");
  };
  PartTime sum;
  double bytes = 0;
  for (std::size_t i = 0; i < model::kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const PartTime time = f.part_time(part);
    if (time.wall > 0) print(name_of(part), time, f.part_bytes(part));
    sum += time;
    bytes += f.part_bytes(part);
  }
  print("sum", sum, bytes);
}

void print_sum(const Figures& f, const bench::Measured& m) {
  double layers = 0, bytes = 0;
  for (std::size_t layer = 0; layer < f.n_layers(); ++layer) layers += f.layer_seconds(layer);
  for (std::size_t layer = 0; layer <= f.n_layers(); ++layer) bytes += f.layer_bytes(layer);
  const double rest = f.layer_seconds(f.n_layers()), token = median(m.token_seconds);
  std::printf(
      "\nlayers %.1f us + embedding, final norm and head %.1f us = %.1f us, %.1f %% of a token "
      "(%.1f us, not watched)\n",
      layers * 1e6, rest * 1e6, (layers + rest) * 1e6, 100 * (layers + rest) / token, token * 1e6);
  std::printf("token %s\n", bandwidth_cells(token, bytes, f.read()).c_str());
}

kernels::CacheType cache_type(const std::string& name, const char* option) {
  for (std::size_t i = 0; i < contract::kCacheTypeNames.size(); ++i)
    if (contract::kCacheTypeNames[i] == name) return static_cast<kernels::CacheType>(i);
  base::usage_error(option, "unknown cache type");
}

Options parse(int argc, char** argv) {
  Options o;
  o.shape.threads = base::default_thread_count();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--each") {
      o.each = true;
      continue;
    }
    if (i + 1 == argc) base::usage_error(word.c_str(), "unknown option, or without its value");
    const char* value = argv[++i];
    if (word == "-m")
      o.model = value;
    else if (word == "-t")
      o.shape.threads = std::max<std::size_t>(1, std::strtoull(value, nullptr, 10));
    else if (word == "-d")
      o.shape.depth = std::strtoull(value, nullptr, 10);
    else if (word == "-ctk")
      o.shape.k_type = cache_type(value, "-ctk");
    else if (word == "-ctv")
      o.shape.v_type = cache_type(value, "-ctv");
    else if (word == "--seconds")
      o.seconds = std::strtod(value, nullptr);
    else
      base::usage_error(word.c_str(), "unknown option");
  }
  if (o.model.empty()) base::usage_error("-m", "a converted model is needed");
  return o;
}

void run(const Options& o) {
  const auto model = model::Model::load(o.model, kernels::select_kernels());
  engine::check_generates(*model);
  if (model->encoder) base::reject(o.model, "has an encoder; expected a decoder alone");
  prefault(*model);
  bench::DecodeTurns turns(*model, o.shape);
  const bench::Measured m = turns.run(o.seconds);
  const Figures f(*model, turns, m, o.shape.depth + bench::kAnswer / 2);
  const auto [least, most] = std::minmax_element(m.read.begin(), m.read.end());
  std::printf("%s, %s, %zu threads, depth %zu to %zu, %zu steps watched\n",
              model->contract.name.c_str(), model->kernels->name, turns.n_threads(), o.shape.depth,
              o.shape.depth + bench::kAnswer, m.clock.n_steps());
  std::printf("limit: reads %.1f GB/s (median of %zu turns, %.1f to %.1f)\n", f.read() * 1e-9,
              m.read.size(), *least * 1e-9, *most * 1e-9);
  print_layers(f, o.each);
  print_parts(f, turns.n_threads());
  print_sum(f, m);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const quern::base::Error& error) {
    std::fprintf(stderr, "layer_bench: %s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
