// The instruction sets that the tests of kernels run: those built in, and those whose instructions are
// emulated (emulated/), marked so in their names. The emulated ones only where QUERN_TEST_ISAS names them, which
// leaves all others out.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/primitives_probe.hpp"
#include "kernels/select.hpp"

namespace quern::kernels {

extern const Kernels kernels_avxvnni_emulated, kernels_avx512_emulated, kernels_avx512vnni_emulated,
    kernels_zen4_emulated, kernels_amx_emulated;

inline bool all_wanted() {
  return std::getenv("QUERN_TEST_ISAS") == nullptr;
}
inline bool wanted_isa(const std::string& name) {
  if (all_wanted()) return name.find("_emulated") == std::string::npos;
  return (" " + std::string(std::getenv("QUERN_TEST_ISAS")) + " ").find(" " + name + " ") != std::string::npos;
}

inline const std::vector<IsaInfo>& tested_isas() {
  static const std::vector<IsaInfo> isas = [] {
    std::vector<IsaInfo> list;
    [[maybe_unused]] bool avx2 = false;
    for (const IsaInfo& isa : all_isas()) avx2 = avx2 || (isa.name == "avx2" && isa.supported);
    [[maybe_unused]] const auto add = [&](const char* name, const Kernels& kernels) {
      list.push_back({name, "avx2 fma f16c", avx2, &kernels});
    };
#ifdef QUERN_HAVE_amx_emulated
    add("amx_emulated", kernels_amx_emulated);
#endif
#ifdef QUERN_HAVE_zen4_emulated
    add("zen4_emulated", kernels_zen4_emulated);
#endif
#ifdef QUERN_HAVE_avx512vnni_emulated
    add("avx512vnni_emulated", kernels_avx512vnni_emulated);
#endif
#ifdef QUERN_HAVE_avx512_emulated
    add("avx512_emulated", kernels_avx512_emulated);
#endif
#ifdef QUERN_HAVE_avxvnni_emulated
    add("avxvnni_emulated", kernels_avxvnni_emulated);
#endif
    list.insert(list.end(), all_isas().begin(), all_isas().end());
    bool any = false;
    for (IsaInfo& isa : list) any |= isa.supported = isa.supported && wanted_isa(isa.name);
    if (!any) {  // or tests would pass for having nothing to do
      std::fputs("none of QUERN_TEST_ISAS is built in and runs here (emulated ones need the avx2 table)\n", stderr);
      std::exit(1);
    }
    return list;
  }();
  return isas;
}

}  // namespace quern::kernels
