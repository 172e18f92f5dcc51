// Runs every primitive of one ISA on given inputs (primitives_probe.cpp, compiled once per ISA), so
// that a test without ISA flags can compare the results with the scalar ones bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

struct ProbeInput {
  float a[16], b[16], c[16];
  std::int32_t i[16], j[16];
  std::uint16_t half[32];
  std::int8_t line[64];       // any codes
  std::int8_t activation[4];  // in [-127, 127]
  std::int8_t table[256];
  std::size_t n;  // lanes of load_n and store_n, 1..16
};

enum ProbeRow : std::size_t {
  kLoadN,
  kStoreN,
  kLoadF16,
  kLoadBf16,
  kLoadE4m3,
  kF16Even,
  kF16Odd,
  kBf16Even,
  kBf16Odd,
  kStoreF16,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFma,
  kMax,
  kMin,
  kAbs,
  kSelectLess,
  kReduceAdd,
  kReduceMax,
  kReduceMax8,
  kIntReduce8,
  kTimesPower,
  kDotPairs,
  kF16Pairs,
  kE4m3Pairs = kF16Pairs + 2,
  kE5m2Pairs = kE4m3Pairs + 4,
  kIntAdd = kE5m2Pairs + 4,
  kIntAnd,
  kIntOr,
  kScaleInts,
  kShiftLeft,
  kShiftRight,
  kFloatBits,
  kToFloat,
  kToInt,
  kExp2i,
  kIntReduce,
  kStoreI8,
  kStoreU8,
  kStoreCodes,
  kStoreBf16,
  kLoadI8,
  kLoadU8,
  kDot4,
  kDot4Unsigned,
  kDot4Biased,
  kDot4Shares,
  kWordSums,
  kDot4Eighths,
  kLowNibbles,
  kHighNibbles,
  kOrLine,
  kBitPair0,
  kBitPair1,
  kBitPair2,
  kBitPair3,
  kBitLine,
  kRowLow,
  kRowHigh,
  kLookup16,
  kScaleEighths,
  kLookup256Low,
  kLookup256High,
  kProbeRows
};

struct ProbeOutput {
  unsigned char row[kProbeRows][64];
};

struct Probe {
  const char* name;
  void (*run)(const ProbeInput& in, ProbeOutput& out);
};

// One per instruction set of cmake/isa.cmake that this build has.
extern const Probe probe_scalar, probe_avx2, probe_avxvnni, probe_avx512, probe_avx512vnni, probe_zen4, probe_zen5,
    probe_amx, probe_neon, probe_neon_i8mm;
extern const Probe probe_avxvnni_emulated, probe_avx512_emulated, probe_avx512vnni_emulated, probe_zen4_emulated,
    probe_amx_emulated;

}  // namespace quern::kernels
