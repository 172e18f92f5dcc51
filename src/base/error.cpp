#include "base/error.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/strings.hpp"

namespace quern::base {

namespace {

std::string joined(std::string_view where, std::string_view what) {
  return where.empty() ? std::string(what) : cat(where, ": ", what);
}

}  // namespace

Error::Error(ExitCode code, std::string_view where, std::string_view what)
    : std::runtime_error(joined(where, what)), code_(code), where_(where), what_(what) {}

Error Error::in(std::string_view outer) const {
  return Error(code_, where_.empty() ? std::string(outer) : cat(outer, ": ", where_), what_);
}

void reject(std::string_view where, std::string_view what, std::string_view got,
            std::string_view expected) {
  std::string text(what);
  if (!got.empty() || !expected.empty()) {
    text += " (";
    if (!got.empty()) text += cat("got ", got);
    if (!got.empty() && !expected.empty()) text += ", ";
    if (!expected.empty()) text += cat("expected ", expected);
    text += ")";
  }
  throw Error(ExitCode::input, where, text);
}

void environment_error(std::string_view where, std::string_view what, int error_number) {
  std::string text(what);
  if (error_number != 0) text += cat(": ", std::strerror(error_number));
  throw Error(ExitCode::environment, where, text);
}

void usage_error(std::string_view where, std::string_view what) {
  throw Error(ExitCode::usage, where, what);
}

void assert_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "quern: internal error: %s:%d: %s\n", file, line, condition);
  std::exit(static_cast<int>(ExitCode::internal));
}

}  // namespace quern::base
