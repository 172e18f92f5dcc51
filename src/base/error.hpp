// The one exception type of quern, its exit codes, and the assert macro.
// Thrown for anything input or environment can cause; never for programmer errors (QUERN_ASSERT).
// Not here: printing. main() catches once and prints one line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace quern::base {

// Exit codes of both programs (design: section 7).
enum class ExitCode : int {
  ok = 0,
  items_failed = 1,  // finished, but some items failed (batch), or a validation failed (verify)
  usage = 2,
  input = 3,        // model, checkpoint, tokenizer, template or prompt rejected
  environment = 4,  // disk, memory, permission, lock
  internal = 70,
};

class Error : public std::runtime_error {
 public:
  // where: file, key path or option ("model.json: ops.attn.d_k"); what: one sentence.
  Error(ExitCode code, std::string_view where, std::string_view what);

  ExitCode code() const { return code_; }
  const std::string& where() const { return where_; }
  const std::string& what_only() const { return what_; }

  // The same error seen from further out: "reading OUT/model.json: " + where.
  Error in(std::string_view outer) const;

 private:
  ExitCode code_;
  std::string where_;
  std::string what_;
};

// Throws Error(ExitCode::input): `what` (got X, expected Y). Empty got/expected are left out.
[[noreturn]] void reject(std::string_view where, std::string_view what, std::string_view got = {},
                         std::string_view expected = {});

// Throws Error(ExitCode::environment) with the text of `error_number` (errno), 0 for none.
[[noreturn]] void environment_error(std::string_view where, std::string_view what,
                                    int error_number = 0);

[[noreturn]] void usage_error(std::string_view where, std::string_view what);

[[noreturn]] void assert_failed(const char* condition, const char* file, int line);

}  // namespace quern::base

// Programmer errors only, never reachable from input.
#define QUERN_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::quern::base::assert_failed(#condition, __FILE__, __LINE__))
