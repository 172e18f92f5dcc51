// The functions that expressions of recipes may call: few, small, general.
// Not here: parsing, paths, alternatives (expression.hpp).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "convert/expression.hpp"

namespace quern::convert {

struct FunctionCall {
  const std::vector<base::Json>& arguments;  // as many as the function takes, none of them null
  const Environment& environment;
  std::string_view where;
};

struct Function {
  std::string_view name;
  std::size_t least, most;  // number of arguments
  // Absent: there is no such value. `if`, `and` and `or` have none: expression.cpp evaluates them.
  std::optional<base::Json> (*call)(const FunctionCall& call);
};

const Function* find_function(std::string_view name);  // nullptr: unknown
std::vector<std::string_view> function_names();

// An input error unless true or false.
bool truth(const base::Json& value, std::string_view where);

}  // namespace quern::convert
