// What may come next in one answer, as a set of token ids: the seam between sampling and grammars.
#pragma once

#include <cstdint>
#include <span>

namespace quern::sampling {

class Constraint {
 public:
  virtual ~Constraint() = default;
  // One bit per id, id i in word i / 64 at bit i % 64, ids beyond the last word are not allowed.
  // Valid until the next call. The ids that end an answer are allowed exactly where it may end.
  virtual std::span<const std::uint64_t> allowed() = 0;
  // The answer goes on with `id`, which was allowed.
  virtual void accept(std::int32_t id) = 0;
  virtual void restart() = 0;  // a new answer begins
};

}  // namespace quern::sampling
