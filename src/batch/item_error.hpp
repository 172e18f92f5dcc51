// Why one line of a batch has no answer. It becomes a line of the output; the run goes on.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace quern::batch {

class ItemError : public base::Error {
 public:
  // code: a word for programs ("invalid_json", "unsupported_field" ...; docs/BATCH.md lists them).
  ItemError(std::string_view code, std::string_view where, std::string_view what)
      : Error(base::ExitCode::input, where, what), code_(code) {}
  ItemError(std::string_view code, const base::Error& cause)
      : Error(base::ExitCode::input, cause.where(), cause.what_only()), code_(code) {}
  const std::string& item_code() const { return code_; }

 private:
  std::string code_;
};

}  // namespace quern::batch
