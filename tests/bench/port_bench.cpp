// What else a core with AVX-512 VNNI does beside its byte products: cycles of a loop of 12 vpdpbusd in registers with
// 3, 6 or 12 other instructions spread among them, in units of that loop alone (1.00: free; 2.00 at 12: on the same
// ports). It explains what the tiles of ops/matmul_integer.hpp and the attention reach. One thread; not run by ctest.
//   port_bench [--seconds 0.05]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/timing.hpp"
#include "kernels/select.hpp"

#if defined(__x86_64__)

namespace {

constexpr int kRounds = 20000;

// Twelve products, and after every fourth, second or each of them `other`: registers zmm16 on are its own.
#define QUERN_PRODUCT(n) "vpdpbusd %%zmm0, %%zmm0, %%zmm" #n "\n"
#define QUERN_FOUR(a, b, c, d, x1, x2, x3, x4) \
  QUERN_PRODUCT(a) x1 QUERN_PRODUCT(b) x2 QUERN_PRODUCT(c) x3 QUERN_PRODUCT(d) x4
#define QUERN_LOOP(name, x1, x2, x3, x4)                                                                        \
  __attribute__((target("avx512f,avx512vnni"), noinline)) void name(const float* line) {                        \
    for (int i = 0; i < kRounds; ++i)                                                                           \
      __asm__ volatile(QUERN_FOUR(1, 2, 3, 4, x1, x2, x3, x4) QUERN_FOUR(5, 6, 7, 8, x1, x2, x3, x4)            \
                           QUERN_FOUR(9, 10, 11, 12, x1, x2, x3, x4)::"r"(line)                                 \
                       : "memory", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", \
                         "zmm11", "zmm12", "zmm16", "zmm17", "zmm18", "zmm19");                                 \
  }
#define QUERN_LOOPS(name, a, b, c, d)      \
  QUERN_LOOP(name##_3, "", "", "", d "\n") \
  QUERN_LOOP(name##_6, "", b "\n", "", d "\n") \
  QUERN_LOOP(name##_12, a "\n", b "\n", c "\n", d "\n")
// The same instruction on four registers.
#define QUERN_SAME(name, text)                                                                         \
  QUERN_LOOPS(name, text " %%zmm28, %%zmm28, %%zmm16", text " %%zmm28, %%zmm28, %%zmm17",              \
              text " %%zmm28, %%zmm28, %%zmm18", text " %%zmm28, %%zmm28, %%zmm19")
#define QUERN_ONE(name, text)                                                                          \
  QUERN_LOOPS(name, text " %%zmm28, %%zmm16", text " %%zmm28, %%zmm17", text " %%zmm28, %%zmm18", text " %%zmm28, %%zmm19")
#define QUERN_LOAD(name, text)                                                                         \
  QUERN_LOOPS(name, text " (%0), %%zmm16", text " (%0), %%zmm17", text " (%0), %%zmm18", text " (%0), %%zmm19")

QUERN_LOOP(alone, "", "", "", "")
QUERN_ONE(convert, "vcvtdq2ps")
QUERN_SAME(add, "vaddps")
QUERN_SAME(multiply, "vmulps")
QUERN_SAME(largest, "vmaxps")
QUERN_SAME(int_add, "vpaddd")
QUERN_SAME(logic, "vpandd")
QUERN_SAME(shuffle, "vpshufd $0x4e, %%zmm28, %%zmm20\nvpunpckldq")
QUERN_LOAD(load, "vmovdqu64")
QUERN_LOAD(broadcast, "vpbroadcastd")

struct Row {
  const char* name;
  void (*loops[3])(const float*);
};
constexpr Row kRows[] = {
    {"vcvtdq2ps", {convert_3, convert_6, convert_12}},
    {"vaddps", {add_3, add_6, add_12}},
    {"vmulps (and vfmadd231ps)", {multiply_3, multiply_6, multiply_12}},
    {"vmaxps", {largest_3, largest_6, largest_12}},
    {"vpaddd", {int_add_3, int_add_6, int_add_12}},
    {"vpandd", {logic_3, logic_6, logic_12}},
    {"vpshufd + vpunpckldq", {shuffle_3, shuffle_6, shuffle_12}},
    {"load 64 bytes", {load_3, load_6, load_12}},
    {"broadcast of 4 bytes from memory", {broadcast_3, broadcast_6, broadcast_12}},
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 3 && std::strcmp(argv[1], "--seconds") == 0 ? std::atof(argv[2]) : 0.05;
  const char* best = quern::kernels::select_kernels().name;
  const bool vnni = std::strncmp(best, "zen", 3) == 0 || std::strcmp(best, "avx512vnni") == 0;
  if (!vnni && std::strcmp(best, "amx") != 0) {
    std::printf("port_bench: this CPU has no AVX-512 VNNI\n");
    return 0;
  }
  alignas(64) static float line[64] = {};
  const auto time = [&](void (*loop)(const float*)) {
    return quern::bench::median_seconds(seconds, [&] { loop(line); });
  };
  const double products = time(alone);
  std::printf("12 vpdpbusd: %.0f GOP/s; with other instructions, times as long\n", 12.0 * kRounds * 128 / products * 1e-9);
  std::printf("%-34s %6s %6s %6s\n", "", "3", "6", "12");
  for (const Row& row : kRows) {
    std::printf("%-34s", row.name);
    for (auto* loop : row.loops) std::printf(" %6.2f", time(loop) / products);
    std::printf("\n");
  }
  return 0;
}

#else

int main() {
  std::printf("port_bench: this CPU has no AVX-512 VNNI\n");
  return 0;
}

#endif
