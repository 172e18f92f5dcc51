// Speed of attention by cache type and ISA. Prefill: 64 query rows against whole tiles of keys, which stay in L2, in
// GOP/s (2 per multiply-add of both products) and per cent of this core's peak for bytes, measured beside it.
// Decode: the rows of one KV head against a cache from memory, in GB/s of cache. One thread; not run by ctest.
// With --latent the rows are latent ones (d_k = 8 d + d, d_v = 8 d).
//   attention_bench [ISA ...] [--types int8,f16] [--d 64] [--latent] [--group 4] [--mib 256] [--seconds 0.4]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "bench/timing.hpp"
#include "kernels/peak.hpp"
#include "kernels/select.hpp"

namespace {

using namespace quern;
using namespace quern::kernels;

struct Options {
  std::vector<std::string> isas;
  std::string types;  // separated by commas; empty: all
  std::size_t d = 64, group = 4, mib = 256;  // more than the last cache level
  double seconds = 0.4;
  bool latent = false;
};

CacheLayout layout_of(CacheType type, const Options& o) {
  return o.latent ? make_latent_layout(type, 8 * o.d, o.d) : make_cache_layout(type, type, o.d, o.d);
}

// A cache of n_tiles tiles, every block the same keys and values, and the queries of one KV head.
class Problem {
 public:
  Problem(const Kernels& kernels, const CacheLayout& layout, std::size_t n_tiles, std::size_t n_queries)
      : kernels_(kernels), layout_(layout), n_(n_queries), n_tiles_(n_tiles) {
    blocks_ = base::Buffer<std::byte>(n_tiles * kTileBlocks * layout_.block_bytes);
    std::vector<float> row(layout.d_k);
    for (std::size_t slot = 0; slot < kBlockTokens; ++slot) {
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>((i * 31 + slot * 17) % 23) / 11.0f - 1.0f;
      kernels.store_kv(layout_, row.data(), row.data(), blocks_.data(), slot);
    }
    for (std::size_t b = 1; b < n_tiles * kTileBlocks; ++b)
      std::memcpy(blocks_.data() + b * layout_.block_bytes, blocks_.data(), layout_.block_bytes);
    q_ = base::Buffer<float>(n_ * query_floats(layout.d_k));
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t d = 0; d < layout.d_k; ++d) row[d] = static_cast<float>((i * 31 + d * 37) % 29) / 14.0f - 1.0f;
      kernels.store_query(layout_, row.data(), q_.data() + i * query_floats(layout.d_k));
    }
    begin_.assign(n_, 0);
    end_.assign(n_, static_cast<std::uint32_t>(n_tiles * kTileTokens));
    max_.assign(n_, 0);
    sum_.assign(n_, 0);
    o_ = base::Buffer<float>(n_ * stride());
    scratch_ = base::Buffer<float>(attend_scratch_floats(n_, layout_));
  }
  void run() {
    std::fill(max_.begin(), max_.end(), -std::numeric_limits<float>::infinity());
    std::vector<const std::byte*> all(n_tiles_ * kTileBlocks);
    for (std::size_t b = 0; b < all.size(); ++b) all[b] = blocks_.data() + b * layout_.block_bytes;
    for (std::size_t tile = 0; tile < n_tiles_; ++tile) {
      const std::byte* const* blocks = all.data() + tile * kTileBlocks;
      kernels_.attend({.layout = &layout_, .blocks = blocks, .n_blocks = kTileBlocks, .first_key = tile * kTileTokens,
                       .n_queries = n_, .q = q_.data(), .q_stride = query_floats(layout_.d_k), .begin = begin_.data(), .end = end_.data(),
                       .sinks = 0, .scale = 0.125f, .softcap = 0.0f, .alibi = nullptr, .alibi_before_scale = false,
                       .bias = nullptr, .state = {max_.data(), sum_.data(), o_.data(), stride()},
                       .scratch = scratch_.data(), .next_blocks = blocks + kTileBlocks,
                       .n_next_blocks = tile + 1 < n_tiles_ ? kTileBlocks : 0});
    }
  }
  double operations() const {
    return 2.0 * static_cast<double>(n_ * (layout_.d_k + layout_.d_v) * n_tiles_ * kTileTokens);
  }
  double bytes() const { return static_cast<double>(blocks_.size()); }

 private:
  std::size_t stride() const { return (layout_.d_v + 15) / 16 * 16; }

  const Kernels& kernels_;
  CacheLayout layout_;
  std::size_t n_, n_tiles_;
  base::Buffer<std::byte> blocks_;
  base::Buffer<float> q_, o_, scratch_;
  std::vector<std::uint32_t> begin_, end_;
  std::vector<float> max_, sum_;
};

double int8_peak(const Kernels& kernels, double seconds) {
  base::Buffer<std::byte> memory(3 * PeakArgs::kBytes);
  std::memset(memory.data(), 0, memory.size());
  const PeakArgs args{memory.data(), memory.data() + PeakArgs::kBytes, memory.data() + 2 * PeakArgs::kBytes, 4096};
  std::uint64_t operations = 0;
  const double time = bench::median_seconds(seconds, [&] { operations = peak_loops(kernels).int8(args); });
  return static_cast<double>(operations) / time * 1e-9;
}

std::size_t tiles_of(const CacheLayout& layout, const Options& o) {
  return std::max<std::size_t>(1, (o.mib << 20) / (kTileBlocks * layout.block_bytes));
}

void bench_isa(const Kernels& kernels, const Options& o) {
  struct Named {
    const char* name;
    CacheType type;
  };
  constexpr Named kTypes[] = {{"int8", CacheType::int8}, {"int4", CacheType::int4}, {"fp8_e4m3", CacheType::fp8_e4m3},
                              {"f16", CacheType::f16},   {"bf16", CacheType::bf16}, {"f32", CacheType::f32}};
  const double peak = int8_peak(kernels, o.seconds);
  std::printf("%s: int8 peak of this core %.0f GOP/s; d %zu, %zu heads a KV head\n", kernels.name, peak, o.d, o.group);
  std::printf("%-9s %14s %8s %14s\n", "cache", "prefill GOP/s", "of peak", "decode GB/s");
  for (const Named& type : kTypes) {
    if (!o.types.empty() && (',' + o.types + ',').find(std::string(",") + type.name + ',') == std::string::npos) continue;
    if (o.latent && type.type == CacheType::int4) continue;  // has no latent form
    const CacheLayout layout = layout_of(type.type, o);
    Problem prefill(kernels, layout, 4, kAttendQueries);
    Problem decode(kernels, layout, tiles_of(layout, o), o.group);
    const double fast = prefill.operations() / bench::median_seconds(o.seconds, [&] { prefill.run(); }) * 1e-9;
    const double read = decode.bytes() / bench::median_seconds(o.seconds, [&] { decode.run(); }) * 1e-9;
    std::printf("%-9s %14.1f %6.0f %% %14.1f\n", type.name, fast, 100 * fast / peak, read);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool value = i + 1 < argc;
    if (word == "--d" && value)
      o.d = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--latent")
      o.latent = true;
    else if (word == "--group" && value)
      o.group = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--types" && value)
      o.types = argv[++i];
    else if (word == "--mib" && value)
      o.mib = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--seconds" && value)
      o.seconds = std::strtod(argv[++i], nullptr);
    else
      o.isas.push_back(word);
  }
  if (o.isas.empty()) o.isas.emplace_back(select_kernels().name);
  for (const IsaInfo& isa : all_isas())
    if (isa.supported && std::find(o.isas.begin(), o.isas.end(), isa.name) != o.isas.end()) bench_isa(*isa.kernels, o);
  return 0;
}
