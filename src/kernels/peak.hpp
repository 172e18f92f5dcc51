// Loops of nothing but arithmetic, one table per instruction set: how many operations a core can do at best with
// what the kernels are made of. Only for measuring (quern bench --limits); no kernel uses them.
#pragma once

#include <cstdint>

#include "kernels/kernels.hpp"

namespace quern::kernels {

// Operands of a loop, in the first cache level; 64-byte aligned, finite floats.
struct PeakArgs {
  static constexpr std::size_t kBytes = 4096;
  const std::byte* weights;  // [kBytes]
  const std::byte* inputs;   // [kBytes]
  std::byte* out;            // [kBytes]: the sums, so that no loop is dropped
  std::uint64_t rounds;
};
// Returns the operations done: 2 for a multiplication with its addition.
using PeakLoop = std::uint64_t (*)(const PeakArgs&);

struct PeakLoops {
  const char* name;  // as Kernels::name
  PeakLoop int8;     // byte products summed in 32 bits
  PeakLoop bf16;     // bf16 weights, widened, times floats
  PeakLoop f32;
};

// The table of the same instruction set.
const PeakLoops& peak_loops(const Kernels& kernels);

}  // namespace quern::kernels
