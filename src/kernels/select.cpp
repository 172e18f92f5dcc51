#include "kernels/select.hpp"

#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "base/strings.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace quern::kernels {

// One per line of cmake/isa.cmake.
extern const Kernels kernels_scalar, kernels_avx2, kernels_avxvnni, kernels_avx512, kernels_avx512vnni, kernels_zen4,
    kernels_zen5, kernels_amx, kernels_neon, kernels_neon_i8mm;

namespace {

// What the CPU has and the operating system saves (XCR0), as the tables need it.
struct CpuFeatures {
  bool avx2 = false;        // AVX2, FMA, F16C; ymm state saved
  bool avxvnni = false;     // AVX-VNNI besides
  bool avx512 = false;      // F, BW, DQ, VL besides AVX2; zmm and mask state saved
  bool avx512vnni = false;  // VNNI, VBMI, VBMI2 besides
  bool zen4 = false;        // BF16 besides, of AMD
  bool zen5 = false;        // of its family 26 or later
  bool amx = false;         // BF16, AMX-TILE and AMX-INT8 besides; the kernel lets this process use tiles
  bool neon = false;        // DotProd
  bool neon_i8mm = false;   // I8MM besides
};

#if defined(__x86_64__)
constexpr bool has_bit(std::uint32_t word, unsigned bit) {
  return (word >> bit & 1u) != 0;
}
bool is_amd() {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_AMD_ebx && c == signature_AMD_ecx &&
         d == signature_AMD_edx;
}
// Of leaf 1's eax.
constexpr unsigned family_of(std::uint32_t signature) {
  const unsigned base = signature >> 8 & 0xfu, extended = signature >> 20 & 0xffu;
  return base == 0xf ? base + extended : base;
}
constexpr bool has_bits(std::uint32_t word, std::uint32_t mask) {
  return (word & mask) == mask;
}

std::uint32_t enabled_state() {  // low half of XCR0
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Linux gives the 8 KiB of tile state to those who ask; threads inherit the leave, so it is asked for before
// any is made.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures detect() {
  CpuFeatures f;
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return f;
  const std::uint32_t leaf1 = c;
  const unsigned family = family_of(a);
  constexpr unsigned kFma = 12, kOsxsave = 27, kAvx = 28, kF16c = 29;
  if (!has_bit(leaf1, kOsxsave) || !has_bit(leaf1, kAvx)) return f;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return f;
  constexpr std::uint32_t kYmmState = 0x6, kZmmState = 0xe6;
  constexpr unsigned kAvx2 = 5;
  constexpr std::uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F DQ BW VL, ebx
  constexpr std::uint32_t kVnni = 1u << 1 | 1u << 6 | 1u << 11;  // VBMI VBMI2 VNNI, ecx
  const std::uint32_t state = enabled_state();
  f.avx2 = has_bits(state, kYmmState) && has_bit(b, kAvx2) && has_bit(leaf1, kFma) &&
           has_bit(leaf1, kF16c);
  f.avx512 = f.avx2 && has_bits(state, kZmmState) && has_bits(b, kAvx512);
  f.avx512vnni = f.avx512 && has_bits(c, kVnni);
  constexpr std::uint32_t kTileState = 0x60000, kAmx = 1u << 24 | 1u << 25;  // TILE, INT8, edx
  const bool tiles = has_bits(d, kAmx) && has_bits(state, kTileState);
  constexpr unsigned kAvxVnni = 4, kBf16 = 5;  // eax of the next leaf
  if (a < 1 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return f;
  f.avxvnni = f.avx2 && has_bit(a, kAvxVnni);
  const bool bf16 = f.avx512vnni && has_bit(a, kBf16);
  f.zen4 = bf16 && is_amd();
  f.zen5 = f.zen4 && family >= 26;
  f.amx = bf16 && tiles && may_use_tiles();
  return f;
}
#elif defined(__aarch64__)
CpuFeatures detect() {
  CpuFeatures f;
  f.neon = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  f.neon_i8mm = f.neon && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return f;
}
#else
CpuFeatures detect() {
  return {};
}
#endif

std::vector<IsaInfo> list_isas() {
  [[maybe_unused]] const CpuFeatures cpu = detect();
  std::vector<IsaInfo> isas;
#ifdef QUERN_HAVE_amx
  isas.push_back({"amx",
                  "avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi avx512_vbmi2 avx512_bf16 amx_tile amx_int8",
                  cpu.amx, &kernels_amx});
#endif
#ifdef QUERN_HAVE_zen5
  isas.push_back({"zen5", "avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi avx512_vbmi2 avx512_bf16, of AMD, family 26",
                  cpu.zen5, &kernels_zen5});
#endif
#ifdef QUERN_HAVE_zen4
  isas.push_back({"zen4", "avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi avx512_vbmi2 avx512_bf16, of AMD", cpu.zen4,
                  &kernels_zen4});
#endif
#ifdef QUERN_HAVE_avx512vnni
  isas.push_back({"avx512vnni",
                  "avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi avx512_vbmi2",
                  cpu.avx512vnni, &kernels_avx512vnni});
#endif
#ifdef QUERN_HAVE_avx512
  isas.push_back({"avx512", "avx512f avx512bw avx512dq avx512vl", cpu.avx512, &kernels_avx512});
#endif
#ifdef QUERN_HAVE_avxvnni
  isas.push_back({"avxvnni", "avx2 fma f16c avx_vnni", cpu.avxvnni, &kernels_avxvnni});
#endif
#ifdef QUERN_HAVE_avx2
  isas.push_back({"avx2", "avx2 fma f16c", cpu.avx2, &kernels_avx2});
#endif
#ifdef QUERN_HAVE_neon_i8mm
  isas.push_back({"neon_i8mm", "asimddp i8mm", cpu.neon_i8mm, &kernels_neon_i8mm});
#endif
#ifdef QUERN_HAVE_neon
  isas.push_back({"neon", "asimddp", cpu.neon, &kernels_neon});
#endif
  isas.push_back({"scalar", "", true, &kernels_scalar});
  return isas;
}

std::string available() {
  std::vector<std::string_view> names;
  for (const IsaInfo& isa : all_isas())
    if (isa.supported) names.push_back(isa.name);
  return base::join(names);
}

[[noreturn]] void unknown_isa(std::string_view where, std::string_view name) {
  std::vector<std::string_view> names;
  for (const IsaInfo& isa : all_isas()) names.push_back(isa.name);
  const std::string near = base::nearest(name, names);
  base::usage_error(where,
                    base::cat("unknown instruction set (got \"", base::printable(name), "\"",
                              near.empty() ? "" : base::cat(", did you mean \"", near, "\"?"),
                              ", available here: ", available(), ")"));
}

}  // namespace

const std::vector<IsaInfo>& all_isas() {
  static const std::vector<IsaInfo> isas = list_isas();
  return isas;
}

const Kernels& select_kernels(std::string_view name) {
  std::string_view where = "--isa";
  if (name.empty()) {
    const char* forced = std::getenv("QUERN_ISA");
    if (forced != nullptr && *forced != '\0') {
      name = forced;
      where = "QUERN_ISA";
    }
  }
  for (const IsaInfo& isa : all_isas()) {
    if (name.empty() ? !isa.supported : name != isa.name) continue;
    if (!isa.supported)
      base::usage_error(
          where, base::cat("this CPU or operating system lacks what \"", isa.name, "\" needs (",
                           isa.requires_features, "); available here: ", available()));
    return *isa.kernels;
  }
  unknown_isa(where, name);
}

}  // namespace quern::kernels
