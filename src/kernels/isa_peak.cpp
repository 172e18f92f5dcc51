// Compiled once per instruction set, as isa.cpp: the loops that measure what it can do at best.
#if defined(QUERN_ISA_avx2)
#include "kernels/primitives/avx2.hpp"
#elif defined(QUERN_ISA_avx512)
#include "kernels/primitives/avx512.hpp"
#elif defined(QUERN_ISA_avx512vnni)
#include "kernels/primitives/avx512vnni.hpp"
#else
#include "kernels/primitives/scalar.hpp"
#endif

#include "kernels/ops/peak.hpp"

namespace quern::kernels {

#if defined(QUERN_ISA_avx2)
using PeakIsa = Avx2;
#define QUERN_PEAK_TABLE peak_avx2
#elif defined(QUERN_ISA_avx512)
using PeakIsa = Avx512;
#define QUERN_PEAK_TABLE peak_avx512
#elif defined(QUERN_ISA_avx512vnni)
using PeakIsa = Avx512Vnni;
#define QUERN_PEAK_TABLE peak_avx512vnni
#else
using PeakIsa = Scalar;
#define QUERN_PEAK_TABLE peak_scalar
#endif

extern const PeakLoops QUERN_PEAK_TABLE;
constinit const PeakLoops QUERN_PEAK_TABLE = {
    .name = PeakIsa::kName,
    .int8 = PeakOps<PeakIsa>::int8,
    .bf16 = PeakOps<PeakIsa>::bf16,
    .f32 = PeakOps<PeakIsa>::f32,
};

}  // namespace quern::kernels
