#include "convert/expression_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;
using Result = std::optional<Json>;

constexpr std::size_t kAny = 16;  // most arguments of a function that takes any number

double number_of(const Json& value, std::string_view where) {
  if (!value.is_number()) base::reject(where, "not a number", base::printable(value.dump(), 60));
  return value.get<double>();
}

std::int64_t integer_of(const Json& value, std::string_view where) {
  if (!value.is_number_integer())
    base::reject(where, "not a whole number", base::printable(value.dump(), 60));
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    base::reject(where, "number too large", value.dump());
  return value.get<std::int64_t>();
}

bool whole(const Json& a, const Json& b) {
  return a.is_number_integer() && b.is_number_integer();
}

// Of whole numbers a whole number (or an error where it does not fit), else a fraction.
template <class Whole, class Real>
Json arithmetic(const FunctionCall& call, Whole of_whole, Real of_real) {
  const Json &a = call.arguments[0], &b = call.arguments[1];
  if (!whole(a, b)) return of_real(number_of(a, call.where), number_of(b, call.where));
  std::int64_t result = 0;
  if (of_whole(integer_of(a, call.where), integer_of(b, call.where), &result))
    base::reject(call.where, cat("the result of ", a.dump(), " and ", b.dump(), " is too large"));
  return result;
}

Result add(const FunctionCall& call) {
  return arithmetic(
      call, [](auto a, auto b, auto* out) { return __builtin_add_overflow(a, b, out); },
      [](double a, double b) { return a + b; });
}

Result sub(const FunctionCall& call) {
  return arithmetic(
      call, [](auto a, auto b, auto* out) { return __builtin_sub_overflow(a, b, out); },
      [](double a, double b) { return a - b; });
}

Result mul(const FunctionCall& call) {
  return arithmetic(
      call, [](auto a, auto b, auto* out) { return __builtin_mul_overflow(a, b, out); },
      [](double a, double b) { return a * b; });
}

Result div(const FunctionCall& call) {
  const Json &a = call.arguments[0], &b = call.arguments[1];
  if (number_of(b, call.where) == 0)
    base::reject(call.where, cat("division of ", a.dump(), " by zero"));
  if (!whole(a, b)) return number_of(a, call.where) / number_of(b, call.where);
  const std::int64_t x = integer_of(a, call.where), y = integer_of(b, call.where);
  if (y < 0 || x < 0 || x % y != 0) base::reject(call.where, cat(x, " is not a multiple of ", y));
  return x / y;
}

Result mod(const FunctionCall& call) {
  const std::int64_t x = integer_of(call.arguments[0], call.where);
  const std::int64_t y = integer_of(call.arguments[1], call.where);
  if (x < 0 || y < 1) base::reject(call.where, cat("no remainder of ", x, " by ", y));
  return x % y;
}

Result less(const FunctionCall& call) {
  return number_of(call.arguments[0], call.where) < number_of(call.arguments[1], call.where);
}

Result min(const FunctionCall& call) {
  return *less(call) == Json(true) ? call.arguments[0] : call.arguments[1];
}

Result max(const FunctionCall& call) {
  return *less(call) == Json(true) ? call.arguments[1] : call.arguments[0];
}

double above_zero(const FunctionCall& call, std::string_view name) {
  const double x = number_of(call.arguments[0], call.where);
  if (!(x > 0))
    base::reject(call.where, cat(name, " of a number that is not positive"),
                 call.arguments[0].dump());
  return x;
}

Result ln(const FunctionCall& call) {
  return std::log(above_zero(call, "ln"));
}

Result square_root(const FunctionCall& call) {
  return std::sqrt(above_zero(call, "sqrt"));
}

Result rsqrt(const FunctionCall& call) {
  return 1.0 / std::sqrt(above_zero(call, "rsqrt"));
}

Result equal(const FunctionCall& call) {
  return call.arguments[0] == call.arguments[1];
}

Result negation(const FunctionCall& call) {
  return !truth(call.arguments[0], call.where);
}

const Json& list_of(const FunctionCall& call) {
  const Json& list = call.arguments[0];
  if (!list.is_array()) base::reject(call.where, "not a list", base::printable(list.dump(), 60));
  return list;
}

Result at(const FunctionCall& call) {
  const Json& list = list_of(call);
  const std::int64_t index = integer_of(call.arguments[1], call.where);
  if (index < 0 || static_cast<std::uint64_t>(index) >= list.size()) return std::nullopt;
  return list[static_cast<std::size_t>(index)];
}

Result has(const FunctionCall& call) {
  const Json& list = list_of(call);
  return std::find(list.begin(), list.end(), call.arguments[1]) != list.end();
}

Result begins(const FunctionCall& call) {
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  return text(call.arguments[0]).starts_with(text(call.arguments[1]));
}

Result size(const FunctionCall& call) {
  return list_of(call).size();
}

Result activation(const FunctionCall& call) {
  const Json& word = call.arguments[0];
  const Json* activations = call.environment.activations;
  if (!word.is_string())
    base::reject(call.where, "an activation is a word", base::printable(word.dump(), 60));
  const std::string name = word.get<std::string>();
  if (activations != nullptr && activations->contains(name)) return activations->at(name);
  std::vector<std::string_view> known;
  if (activations != nullptr)
    for (const auto& [key, value] : activations->items()) known.push_back(key);
  const std::string near = base::nearest(name, known);
  base::reject(call.where, cat("unknown activation \"", base::printable(name), "\"",
                               near.empty() ? "" : cat(" (did you mean \"", near, "\"?)"),
                               "; known: ", base::join(known)));
}

Result rows(const FunctionCall& call) {
  const Json& name = call.arguments[0];
  if (!name.is_string() || !call.environment.tensor_rows) return std::nullopt;
  const auto count = call.environment.tensor_rows(name.get<std::string>());
  return count ? Result(*count) : std::nullopt;
}

Result exists(const FunctionCall& call) {
  return rows(call).has_value();
}

Result lazy(const FunctionCall&) {
  QUERN_ASSERT(!"evaluated by expression.cpp");
  return std::nullopt;
}

constexpr Function kFunctions[] = {{"div", 2, 2, div},      {"mul", 2, 2, mul},
                                   {"add", 2, 2, add},      {"sub", 2, 2, sub},
                                   {"mod", 2, 2, mod},      {"min", 2, 2, min},
                                   {"max", 2, 2, max},      {"sqrt", 1, 1, square_root},
                                   {"rsqrt", 1, 1, rsqrt},  {"ln", 1, 1, ln},
                                   {"eq", 2, 2, equal},     {"less", 2, 2, less},
                                   {"not", 1, 1, negation}, {"and", 2, kAny, lazy},
                                   {"or", 2, kAny, lazy},   {"if", 3, 3, lazy},
                                   {"at", 2, 2, at},        {"has", 2, 2, has},
                                   {"size", 1, 1, size},    {"activation", 1, 1, activation},
                                   {"rows", 1, 1, rows},    {"exists", 1, 1, exists},
                                   {"begins", 2, 2, begins}};

}  // namespace

const Function* find_function(std::string_view name) {
  for (const Function& function : kFunctions)
    if (function.name == name) return &function;
  return nullptr;
}

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (const Function& function : kFunctions) names.push_back(function.name);
  return names;
}

bool truth(const Json& value, std::string_view where) {
  if (!value.is_boolean())
    base::reject(where, "not true or false", base::printable(value.dump(), 60));
  return value.get<bool>();
}

}  // namespace quern::convert
