#include "jinja/stack_guard.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace quern::jinja {

namespace {

const char* here() {
  return static_cast<const char*>(__builtin_frame_address(0));
}

}  // namespace

StackGuard::StackGuard() : begin_(here()), budget_(std::size_t{1} << 20) {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    budget_ = std::clamp<std::size_t>(limit.rlim_cur / 8 * 5, std::size_t{64} << 10, budget_);
}

bool StackGuard::exhausted() const {
  const char* now = here();
  return static_cast<std::size_t>(now < begin_ ? begin_ - now : now - begin_) > budget_;
}

}  // namespace quern::jinja
