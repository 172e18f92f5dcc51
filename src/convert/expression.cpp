#include "convert/expression.hpp"

#include <charconv>
#include <cmath>

#include "base/strings.hpp"
#include "convert/expression_functions.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kMaxDepth = 32;  // nesting of calls, and of objects in a template

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+' || c == '{' || c == '}';  // {arch}
}

Json literal_of(std::string_view word) {
  if (word == "null") return nullptr;
  if (word == "true") return true;
  if (word == "false") return false;
  const char* end = word.data() + word.size();
  std::int64_t integer = 0;
  if (auto [at, error] = std::from_chars(word.data(), end, integer);
      error == std::errc{} && at == end)
    return integer;
  double number = 0;
  const bool numeric = word.find_first_of("0123456789") == 0 || word.front() == '-';
  if (numeric) {
    auto [at, error] = std::from_chars(word.data(), end, number);
    if (error == std::errc{} && at == end && std::isfinite(number)) return number;
  }
  return std::string(word);
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Expression parse() {
    Expression result = parse_choice(0);
    skip_spaces();
    if (at_ != text_.size()) fail("unexpected text after the expression");
    return result;
  }

 private:
  Expression parse_choice(std::size_t depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    Expression first = parse_term(depth);
    if (!accept('|')) return first;
    Expression choice{.kind = Expression::Kind::choice};
    choice.arguments.push_back(std::move(first));
    do {
      choice.arguments.push_back(parse_term(depth));
    } while (accept('|'));
    return choice;
  }

  Expression parse_term(std::size_t depth) {
    skip_spaces();
    if (accept('\'')) {
      const std::size_t end = text_.find('\'', at_);
      if (end == std::string_view::npos) fail("quote without an end");
      Expression quoted{.literal = std::string(text_.substr(at_, end - at_))};
      at_ = end + 1;
      return quoted;
    }
    if (accept('$')) return {.kind = Expression::Kind::path, .name = std::string(take_word())};
    const std::string_view word = take_word();
    if (accept('(')) return parse_call(word, depth);
    return {.literal = literal_of(word)};
  }

  Expression parse_call(std::string_view name, std::size_t depth) {
    const Function* function = find_function(name);
    if (function == nullptr)
      base::reject(where_, cat("unknown function \"", base::printable(name), "\""), {},
                   base::join(function_names()));
    Expression call{.kind = Expression::Kind::call, .name = std::string(name)};
    do {
      call.arguments.push_back(parse_choice(depth + 1));
    } while (accept(','));
    if (!accept(')')) fail("missing \")\"");
    const std::size_t n = call.arguments.size();
    if (n < function->least || n > function->most)
      fail(cat(name, "() takes ", function->least,
               function->most > function->least ? " or more" : "", " arguments"));
    return call;
  }

  std::string_view take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (at_ == begin) fail("a value is missing");
    return text_.substr(begin, at_ - begin);
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void fail(std::string_view what) {
    base::reject(where_,
                 cat("expression \"", base::printable(text_), "\", column ", at_ + 1, ": ", what));
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
};

std::optional<Json> call(const Expression& e, const Environment& environment,
                         std::string_view where) {
  const auto argument = [&](std::size_t i) -> std::optional<Json> {
    std::optional<Json> value = evaluate(e.arguments[i], environment, where);
    if (value && value->is_null()) value.reset();
    return value;
  };
  // These look at their arguments one after the other and stop when the answer is known.
  if (e.name == "if") {
    const std::optional<Json> condition = argument(0);
    if (!condition) return std::nullopt;
    return evaluate(e.arguments[truth(*condition, where) ? 1 : 2], environment, where);
  }
  if (e.name == "and" || e.name == "or") {
    const bool decides = e.name == "or";
    for (std::size_t i = 0; i < e.arguments.size(); ++i) {
      const std::optional<Json> value = argument(i);
      if (!value) return std::nullopt;
      if (truth(*value, where) == decides) return Json(decides);
    }
    return Json(!decides);
  }
  std::vector<Json> arguments;
  for (std::size_t i = 0; i < e.arguments.size(); ++i) {
    std::optional<Json> value = argument(i);
    if (!value) return std::nullopt;
    arguments.push_back(*std::move(value));
  }
  return find_function(e.name)->call({arguments, environment, where});
}

void collect_paths(const Expression& expression, std::vector<std::string>& paths) {
  if (expression.kind == Expression::Kind::path) paths.push_back(expression.name);
  for (const Expression& argument : expression.arguments) collect_paths(argument, paths);
}

void collect_all(const Json& value, std::string_view where, std::vector<std::string>& paths) {
  if (value.is_string()) collect_paths(parse_expression(value.get<std::string>(), where), paths);
  if (value.is_structured())
    for (const auto& element : value) collect_all(element, where, paths);
}

}  // namespace

Expression parse_expression(std::string_view text, std::string_view where) {
  return Parser(text, where).parse();
}

std::optional<Json> evaluate(const Expression& expression, const Environment& environment,
                             std::string_view where) {
  environment.fuel->spend(1, where);
  switch (expression.kind) {
    case Expression::Kind::literal:
      environment.fuel->spend(weight_of(expression.literal), where);
      return expression.literal;
    case Expression::Kind::path: {
      const Json* value = environment.find(expression.name);
      if (value == nullptr) return std::nullopt;
      environment.fuel->spend(weight_of(*value), where);
      return *value;
    }
    case Expression::Kind::call:
      return call(expression, environment, where);
    case Expression::Kind::choice:
      break;
  }
  std::optional<Json> result;
  for (const Expression& alternative : expression.arguments) {
    const std::optional<Json> value = evaluate(alternative, environment, where);
    if (value) result = value;
    if (value && !value->is_null()) return value;
  }
  return result;
}

Json evaluate_all(const Json& value, const Environment& environment, std::string_view where) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    environment.fuel->spend(1 + text.size() / 8, where);
    std::optional<Json> result = evaluate(parse_expression(text, where), environment, where);
    if (!result)
      base::reject(where, cat("the configuration has no value for ", base::printable(text)));
    environment.fuel->keep(weight_of(*result), where);
    return *std::move(result);
  }
  // Every level copies what is below it, which the depth of a template bounds.
  environment.fuel->spend(weight_of(value), where);
  if (!value.is_structured() || value.empty()) environment.fuel->keep(1, where);
  Json copy = value;
  // An object with a condition is null unless it holds.
  if (value.is_object() && value.contains("when")) {
    const Json holds = evaluate_all(value["when"], environment, cat(where, ".when"));
    if (!truth(holds, cat(where, ".when"))) return nullptr;
    copy.erase("when");
  }
  if (copy.is_object())
    for (auto& [key, element] : copy.items())
      element = evaluate_all(element, environment, cat(where, ".", key));
  if (value.is_array())
    for (std::size_t i = 0; i < copy.size(); ++i)
      copy[i] = evaluate_all(copy[i], environment, cat(where, "[", i, "]"));
  return copy;
}

std::vector<std::string> paths_in(const Json& value, std::string_view where) {
  std::vector<std::string> paths;
  collect_all(value, where, paths);
  return paths;
}

const Json* find_path(const Json& object, std::string_view path) {
  if (!object.is_object()) return nullptr;
  if (auto found = object.find(std::string(path)); found != object.end()) return &*found;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos;
       dot = path.find('.', dot + 1)) {
    const auto outer = object.find(std::string(path.substr(0, dot)));
    if (outer == object.end()) continue;
    if (const Json* inner = find_path(*outer, path.substr(dot + 1))) return inner;
  }
  return nullptr;
}

}  // namespace quern::convert
