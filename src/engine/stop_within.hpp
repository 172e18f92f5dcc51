// The Runner asks its question only within the step or prefill that set it, however that ends.
#pragma once

#include <functional>

#include "model/forward.hpp"

namespace quern::engine {

struct StopWithin {
  StopWithin(model::Runner& runner_, const std::function<bool()>& stop_requested) : runner(runner_) {
    runner.set_stop(stop_requested);
  }
  StopWithin(const StopWithin&) = delete;
  StopWithin& operator=(const StopWithin&) = delete;
  ~StopWithin() { runner.set_stop({}); }
  model::Runner& runner;
};

}  // namespace quern::engine
