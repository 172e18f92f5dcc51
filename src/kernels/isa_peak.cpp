// Compiled once per instruction set, as isa.cpp (QUERN_PEAK: the name of its table): the loops that measure what
// it can do at best.
#include QUERN_PRIMITIVES

#include "kernels/ops/peak.hpp"

namespace quern::kernels {

extern const PeakLoops QUERN_PEAK;
constinit const PeakLoops QUERN_PEAK = {
    .name = QUERN_TAG::kName,
    .int8 = PeakOps<QUERN_TAG>::int8,
    .bf16 = PeakOps<QUERN_TAG>::bf16,
    .f32 = PeakOps<QUERN_TAG>::f32,
};

}  // namespace quern::kernels
