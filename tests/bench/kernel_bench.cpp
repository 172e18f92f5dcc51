// Speed of the matrix products, by format and ISA, beside what this CPU can do: GEMV (one token) in
// GB/s of weights from memory and from L2, GEMM in GOP/s (2 per multiply-add), of that the tile alone (64 rows and 256
// columns in L1), and what the expansion of the weights takes of the GEMM's time. One thread. Not run by ctest.
//   kernel_bench [ISA ...] [--formats q4,q8] [--mib 300] [--seconds 0.4]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "bench/timing.hpp"
#include "kernels/select.hpp"
#include "quant/formats.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace quern;
using namespace quern::kernels;
using bench::median_seconds;

// A matrix and n_tokens activations of deterministic bytes; values do not matter for time, except
// that they must not be subnormal or NaN.
struct Problem {
  const quant::FormatTraits* format;
  std::size_t rows, columns, n_tokens;
  base::Buffer<std::byte> weights, scratch;
  base::Buffer<float> x, out, scales;
  base::Buffer<std::int8_t> codes;
  base::Buffer<std::int32_t> sums;
  MatmulArgs args{};

  Problem(const quant::FormatTraits& f, std::size_t n_rows, std::size_t n_columns,
          std::size_t tokens)
      : format(&f), rows(quant::padded_rows(n_rows)), columns(n_columns), n_tokens(tokens) {
    const std::size_t bytes = quant::panel_bytes(f, columns);
    weights = base::Buffer<std::byte>(bytes * quant::n_panels(rows));
    std::vector<float> values(quant::kPanelRows * columns);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i * 7919 % 255) - 127.5f;
    quant::encode_panel(f, values.data(), columns, columns, nullptr, weights.data());
    for (std::size_t p = 1; p < quant::n_panels(rows); ++p)
      std::memcpy(weights.data() + p * bytes, weights.data(), bytes);
    // Strides as the model has them (model/rows.cpp): an odd number of lines.
    const std::size_t codes_stride = (columns / 64 | 1) * 64, out_stride = (rows / 16 | 1) * 16;
    x = base::Buffer<float>(tokens * columns);
    out = base::Buffer<float>(tokens * out_stride);
    codes = base::Buffer<std::int8_t>(tokens * codes_stride);
    const std::size_t groups =
        f.integer ? (columns + f.activation_group - 1) / f.activation_group : 1;
    scales = base::Buffer<float>(tokens * groups);
    sums = base::Buffer<std::int32_t>(tokens * groups);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 31 % 17) - 8.0f;
    args = {.weights = weights.data(),
            .panel_bytes = bytes,
            .columns = columns,
            .first_panel = 0,
            .end_panel = quant::n_panels(rows),
            .n_tokens = tokens,
            .x = x.data(),
            .x_stride = columns,
            .q = {codes.data(), scales.data(), sums.data(), codes_stride, groups},
            .out = out.data(),
            .out_stride = out_stride,
            .scratch = nullptr};
  }

  std::function<void()> runner(const Kernels& kernels) {
    scratch = base::Buffer<std::byte>(kernels.matmul_scratch_bytes(columns));
    args.scratch = scratch.data();
    if (format->integer)
      kernels.quantize(x.data(), columns, n_tokens, columns, format->activation_group, args.q);
    const MatmulFn fn = kernels.matmul[quant::format_index(format->id)];
    return [this, fn] { fn(args); };
  }
  double weight_bytes() const { return static_cast<double>(weights.size()); }
  double operations() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(n_tokens);
  }
};

// ---- what the machine can do ----
// GB/s of plain 64-byte reads, four streams side by side as the kernels read four panels.
double read_bandwidth(std::size_t bytes, double budget) {
  const std::size_t quarter = bytes / 256 * 8;  // in words, whole lines
  base::Buffer<std::uint64_t> data(4 * quarter);
  std::fill_n(data.data(), data.size(), std::uint64_t{1});
  volatile std::uint64_t sink = 0;
  const double time = median_seconds(budget, [&] {
    std::uint64_t sum[8] = {};
    for (std::size_t i = 0; i < quarter; i += 8)
      for (std::size_t stream = 0; stream < 4; ++stream) {
        const std::uint64_t* p = data.data() + stream * quarter + i;
        __builtin_prefetch(p + 256);
        for (std::size_t j = 0; j < 8; ++j) sum[j] += p[j];
      }
    for (std::uint64_t s : sum) sink = sink + s;
  });
  return static_cast<double>(data.size() * 8) / time * 1e-9;
}

#if defined(__x86_64__)
// Twelve independent chains of vpdpbusd in registers: the most int8 operations a second of this
// core.
__attribute__((target("avx512f,avx512vnni"))) void vnni_rounds(int rounds) {
  for (int i = 0; i < rounds; ++i)
    __asm__ volatile(
        "vpdpbusd %%zmm0, %%zmm0, %%zmm1\n vpdpbusd %%zmm0, %%zmm0, %%zmm2\n"
        "vpdpbusd %%zmm0, %%zmm0, %%zmm3\n vpdpbusd %%zmm0, %%zmm0, %%zmm4\n"
        "vpdpbusd %%zmm0, %%zmm0, %%zmm5\n vpdpbusd %%zmm0, %%zmm0, %%zmm6\n"
        "vpdpbusd %%zmm0, %%zmm0, %%zmm7\n vpdpbusd %%zmm0, %%zmm0, %%zmm8\n"
        "vpdpbusd %%zmm0, %%zmm0, %%zmm9\n vpdpbusd %%zmm0, %%zmm0, %%zmm10\n"
        "vpdpbusd %%zmm0, %%zmm0, %%zmm11\n vpdpbusd %%zmm0, %%zmm0, %%zmm12\n" ::
            : "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10",
              "zmm11", "zmm12");
}
double vnni_peak(double budget) {
  constexpr int kRounds = 100000;
  return 12.0 * kRounds * 128.0 / median_seconds(budget, [] { vnni_rounds(kRounds); }) * 1e-9;
}
#endif

void print_machine(const Kernels& best, std::size_t bytes, double budget) {
  std::printf("best ISA here: %s\n", best.name);
  std::printf("read bandwidth, 1 thread: memory %.1f GB/s, L2 (512 KiB) %.1f GB/s\n",
              read_bandwidth(bytes, budget), read_bandwidth(512 * 1024, budget / 4));
#if defined(__x86_64__)
  if (std::strcmp(best.name, "avx512vnni") == 0 || std::strncmp(best.name, "zen", 3) == 0)
    std::printf("int8 peak (vpdpbusd), 1 core: %.0f GOP/s\n", vnni_peak(budget));
#endif
}

struct Options {
  std::vector<std::string> isas, formats;
  std::size_t mib = 300;
  double seconds = 0.4;
};

bool wanted(const std::vector<std::string>& list, std::string_view name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

// The tile alone, and the share of the expansion at 32 and 512 tokens: what a GEMM costs beyond its share per token.
void print_parts(const Kernels& kernels, const quant::FormatTraits& format, const Options& options) {
  const auto seconds = [&](std::size_t rows, std::size_t columns, std::size_t tokens) {
    Problem p(format, rows, columns, tokens);
    const std::function<void()> run = p.runner(kernels);
    return median_seconds(options.seconds, run);
  };
  constexpr double kFew = 96, kMany = 480, kTileOperations = 2.0 * 64 * 256 * kMany;  // whole tiles of any ISA
  std::printf(" %8.1f", kTileOperations / seconds(64, 256, static_cast<std::size_t>(kMany)) * 1e-9);
  const double few = seconds(1024, 2048, static_cast<std::size_t>(kFew));
  const double token = (seconds(1024, 2048, static_cast<std::size_t>(kMany)) - few) / (kMany - kFew);
  const double expansion = std::max(0.0, few - kFew * token);
  for (const double tokens : {32.0, 512.0}) std::printf(" %5.1f %%", 100 * expansion / (expansion + tokens * token));
}

void bench_format(const Kernels& kernels, const quant::FormatTraits& format,
                  const Options& options) {
  constexpr std::size_t kColumns = 2048;
  const double row_bytes =
      static_cast<double>(quant::panel_bytes(format, kColumns)) / quant::kPanelRows;
  const auto rows_of = [&](double bytes) { return static_cast<std::size_t>(bytes / row_bytes); };
  std::printf("%-11s %-5s", kernels.name, std::string(format.name).c_str());
  for (double bytes : {static_cast<double>(options.mib) * 1048576.0, 512.0 * 1024}) {
    Problem p(format, rows_of(bytes), kColumns, 1);
    std::printf(" %8.1f",
                p.weight_bytes() / median_seconds(options.seconds, p.runner(kernels)) * 1e-9);
  }
  for (std::size_t tokens : {2u, 4u, 8u, 16u, 64u, 512u}) {
    Problem p(format, 1024, kColumns, tokens);
    std::printf(" %8.1f",
                p.operations() / median_seconds(options.seconds, p.runner(kernels)) * 1e-9);
  }
  print_parts(kernels, format, options);
  std::printf("\n");
  std::fflush(stdout);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--mib" && i + 1 < argc)
      o.mib = static_cast<std::size_t>(std::atoi(argv[++i]));
    else if (word == "--seconds" && i + 1 < argc)
      o.seconds = std::atof(argv[++i]);
    else if (word == "--formats" && i + 1 < argc) {
      std::string name;
      for (const char* c = argv[++i];; ++c) {
        if (*c != ',' && *c != '\0') {
          name += *c;
          continue;
        }
        o.formats.push_back(name);
        name.clear();
        if (*c == '\0') break;
      }
    } else
      o.isas.push_back(word);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  print_machine(select_kernels(), options.mib * 1048576, options.seconds);
  std::printf("%-11s %-5s %8s %8s   %-52s %8s   %s\n", "", "", "GB/s", "GB/s",
              "GEMM 1024 x 2048, GOP/s by tokens", "tile", "expansion by tokens");
  std::printf("%-11s %-5s %8s %8s %8s %8s %8s %8s %8s %8s %8s %7s %7s\n", "ISA", "type", "memory", "L2",
              "2", "4", "8", "16", "64", "512", "in L1", "32", "512");
  for (const IsaInfo& isa : all_isas()) {
    if (!isa.supported || !wanted(options.isas, isa.name)) continue;
    if (options.isas.empty() && isa.name == "scalar") continue;  // slow: only when named
    for (const quant::FormatTraits& format : quant::all_formats())
      if (wanted(options.formats, format.name)) bench_format(*isa.kernels, format, options);
  }
  return 0;
}
