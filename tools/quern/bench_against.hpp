// --against: this program and another one as children, alternating repetition by repetition, until each row is decided
// or its time is used.
#pragma once

#include <string>
#include <vector>

#include "bench_options.hpp"

namespace quern::tool {

// `arguments`: of the command, as given. Returns the exit code: 1 when this program is slower in a row.
int run_bench_against(const BenchOptions& options, const std::vector<std::string>& arguments);

}  // namespace quern::tool
