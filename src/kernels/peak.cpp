#include "kernels/peak.hpp"

#include <cstring>

namespace quern::kernels {

extern const PeakLoops peak_scalar;
#ifdef QUERN_HAVE_avx2
extern const PeakLoops peak_avx2;
#endif
#ifdef QUERN_HAVE_avx512
extern const PeakLoops peak_avx512;
#endif
#ifdef QUERN_HAVE_avx512vnni
extern const PeakLoops peak_avx512vnni;
#endif

const PeakLoops& peak_loops(const Kernels& kernels) {
  static constexpr const PeakLoops* kTables[] = {
#ifdef QUERN_HAVE_avx2
      &peak_avx2,
#endif
#ifdef QUERN_HAVE_avx512
      &peak_avx512,
#endif
#ifdef QUERN_HAVE_avx512vnni
      &peak_avx512vnni,
#endif
      &peak_scalar,
  };
  for (const PeakLoops* loops : kTables)
    if (std::strcmp(loops->name, kernels.name) == 0) return *loops;
  return peak_scalar;
}

}  // namespace quern::kernels
