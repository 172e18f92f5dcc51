// The expressions of recipes: one line of text -> one JSON value.
//
//   $key  $a.b.c          value of the configuration (or of the recipe's own values)
//   x|y|z                 the first that exists and is not null
//   fn(x, y)              one of the functions of expression_functions.cpp
//   12  0.5  true  null  word  'any text'
//
// A function of an absent value is absent, so that the next alternative is tried.
// Not here: which names exist and where they lead (resolve.cpp builds the Environment).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "convert/fuel.hpp"

namespace quern::convert {

struct Expression {
  enum class Kind { path, literal, call, choice };
  Kind kind = Kind::literal;
  std::string name{};  // path without '$', or function
  base::Json literal{};
  std::vector<Expression> arguments{};  // of a call; the alternatives of a choice
};

struct Environment {
  std::function<const base::Json*(std::string_view path)> find{};  // nullptr: absent
  std::function<std::optional<std::uint64_t>(std::string_view tensor)> tensor_rows{};
  const base::Json* activations = nullptr;  // source spelling -> contract spelling
  std::shared_ptr<Fuel> fuel = std::make_shared<Fuel>();  // copies burn the same
};

// where: place for error lines ("FILE.json: contract.ops.attn.n_heads").
Expression parse_expression(std::string_view text, std::string_view where);

// Absent: a path that does not exist, or a function of one. null counts as absent for '|' and
// functions.
std::optional<base::Json> evaluate(const Expression& expression, const Environment& environment,
                                   std::string_view where);

// Evaluates every string inside `value` (objects and arrays keep their shape). An absent value is
// an input error that names the expression.
base::Json evaluate_all(const base::Json& value, const Environment& environment,
                        std::string_view where);

// Every $path inside the strings of `value`, alternatives that are not taken included.
std::vector<std::string> paths_in(const base::Json& value, std::string_view where);

// The value at `path`: a key that is spelled with dots (GGUF), or one object inside another.
const base::Json* find_path(const base::Json& object, std::string_view path);

}  // namespace quern::convert
