// quern verify: the validation list of the literature, run on the user's own model. Exit code 3 for a
// damaged file, 1 when a validation failed.

#include <chrono>
#include <cstdio>
#include <iostream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "verify.hpp"

namespace quern::tool {

namespace {

using Clock = std::chrono::steady_clock;

struct Check {
  const char* name;
  CheckResult (*run)(const VerifyContext&);
  bool quick;   // needs no forward pass
};

constexpr Check kChecks[] = {
    {"parameters", check_parameters, true},
    {"checksums", check_checksums, true},
    {"kernels", check_matmul, false},
    {"attention", check_attention, false},
    {"causality", check_causality, false},
    {"decode = prefill", check_decode, false},
    {"threads and chunks", check_threads, false},
    {"cache bytes", check_cache_bytes, false},
    {"positions", check_positions, false},
};

void print_row(const char* name, const CheckResult& result, Clock::time_point start) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  char head[64];
  std::snprintf(head, sizeof(head), "%-4s  %-19s %6.2f s  ", result.passed ? "ok" : "FAIL", name, seconds);
  std::cout << head << result.detail << std::endl;
}

// A damaged file is a failed row of the report before it is the error that ends the command.
template <class Work>
auto run_or_fail(const char* name, Clock::time_point start, const Work& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    if (error.code() == base::ExitCode::input) print_row(name, {false, base::printable(error.what(), 500)}, start);
    throw;
  }
}

}  // namespace

int cmd_verify(const std::vector<std::string>& arguments) {
  CLI::App app("Checks a model file and the engine on it. Exit code 3: damaged file; 1: a check failed.",
               "quern verify");
  ModelOptions options;
  bool quick = false, full = false;
  add_model_options(app, options);
  add_cache_options(app, options);
  app.add_flag("--quick", quick, "only checksums, shapes and parameter count");
  app.add_flag("--full", full, "also prefill the whole trained length");
  if (parse_arguments(app, arguments)) return 0;
  model::resolve_model_path(options.model);  // where there is no model nothing failed
  const LoadedModel loaded = run_or_fail("files", Clock::now(), [&] { return load_model(options); });
  const VerifyContext context{loaded, options, full};
  std::size_t failed = 0, run = 0;
  for (const Check& check : kChecks) {
    if (quick && !check.quick) continue;
    const Clock::time_point start = Clock::now();
    const CheckResult result = run_or_fail(check.name, start, [&] { return check.run(context); });
    print_row(check.name, result, start);
    failed += result.passed ? 0u : 1u;
    ++run;
  }
  std::cout << (failed == 0 ? "all " : "") << run - failed << " of " << run << " checks passed ("
            << base::printable(loaded.model->contract.name, 80) << ", " << loaded.model->kernels->name << ", cache "
            << options.k_type << "/" << options.v_type << ")\n";
  return static_cast<int>(failed == 0 ? base::ExitCode::ok : base::ExitCode::items_failed);
}

}  // namespace quern::tool
