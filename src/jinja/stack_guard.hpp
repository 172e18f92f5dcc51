// How much of the thread's stack a recursion may still use. Depth counters bound what a template
// may nest; this bounds what the counters multiply to, whatever `ulimit -s` and the build's frame
// sizes are.
#pragma once

#include <cstddef>

namespace quern::jinja {

class StackGuard {
 public:
  StackGuard();  // where it is made counts as the beginning

  // More than the budget lies between here and the beginning: five eighths of the soft limit of the
  // stack, 64 KiB to 1 MiB.
  bool exhausted() const;

 private:
  const char* begin_;
  std::size_t budget_;
};

}  // namespace quern::jinja
