// The instruction sets that the tests of kernels run: those built in, and those whose instructions are
// emulated (emulated/), marked so where they are listed.
#pragma once

#include <string>
#include <vector>

#include "kernels/primitives_probe.hpp"
#include "kernels/select.hpp"

namespace quern::kernels {

#ifdef QUERN_HAVE_avxvnni_emulated
extern const Kernels kernels_avxvnni_emulated;
#endif
#ifdef QUERN_HAVE_amx_emulated
extern const Kernels kernels_amx_emulated;
#endif

inline const std::vector<IsaInfo>& tested_isas() {
  static const std::vector<IsaInfo> isas = [] {
    std::vector<IsaInfo> list;
    [[maybe_unused]] bool avx2 = false;
    for (const IsaInfo& isa : all_isas()) avx2 = avx2 || (isa.name == "avx2" && isa.supported);
#ifdef QUERN_HAVE_amx_emulated
    list.push_back({"amx_emulated", "avx2 fma f16c", avx2, &kernels_amx_emulated});
#endif
#ifdef QUERN_HAVE_avxvnni_emulated
    list.push_back({"avxvnni_emulated", "avx2 fma f16c", avx2, &kernels_avxvnni_emulated});
#endif
    list.insert(list.end(), all_isas().begin(), all_isas().end());
    return list;
  }();
  return isas;
}

}  // namespace quern::kernels
