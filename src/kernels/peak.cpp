#include "kernels/peak.hpp"

#include <cstring>

namespace quern::kernels {

// One per line of cmake/isa.cmake.
extern const PeakLoops peak_scalar, peak_avx2, peak_avxvnni, peak_avx512, peak_avx512vnni, peak_zen4, peak_zen5,
    peak_amx, peak_neon, peak_neon_i8mm;

const PeakLoops& peak_loops(const Kernels& kernels) {
  static constexpr const PeakLoops* kTables[] = {
#ifdef QUERN_HAVE_amx
      &peak_amx,
#endif
#ifdef QUERN_HAVE_zen5
      &peak_zen5,
#endif
#ifdef QUERN_HAVE_zen4
      &peak_zen4,
#endif
#ifdef QUERN_HAVE_avx512vnni
      &peak_avx512vnni,
#endif
#ifdef QUERN_HAVE_avx512
      &peak_avx512,
#endif
#ifdef QUERN_HAVE_avxvnni
      &peak_avxvnni,
#endif
#ifdef QUERN_HAVE_avx2
      &peak_avx2,
#endif
#ifdef QUERN_HAVE_neon_i8mm
      &peak_neon_i8mm,
#endif
#ifdef QUERN_HAVE_neon
      &peak_neon,
#endif
      &peak_scalar,
  };
  for (const PeakLoops* loops : kTables)
    if (std::strcmp(loops->name, kernels.name) == 0) return *loops;
  return peak_scalar;
}

}  // namespace quern::kernels
