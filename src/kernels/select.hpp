// Which kernel table this process uses: CPU features -> the best one built in, or the one forced by
// --isa or QUERN_ISA.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.hpp"

namespace quern::kernels {

struct IsaInfo {
  std::string name;
  std::string requires_features;   // "avx2 fma f16c"
  bool supported;                  // by this CPU and operating system
  const Kernels* kernels;
};

// All tables built in, best first; "scalar" is always last and always supported.
const std::vector<IsaInfo>& all_isas();

// name "" = QUERN_ISA if set, else the best supported. An unknown or unsupported name is a usage error that
// lists what is available.
const Kernels& select_kernels(std::string_view name = {});

}  // namespace quern::kernels
