// Tests: `x is name(arguments)`.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/characters.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

namespace {

std::int64_t remainder(Interpreter& run, const Value& v, const Value& by) {
  if (std::holds_alternative<double>(v) || std::holds_alternative<double>(by)) {
    const Value rest = arithmetic(run, Op::mod, v, by);
    const double d = std::get<double>(rest);
    return d == 0 ? 0 : d == 1 ? 1 : 2;
  }
  const Value rest = arithmetic(run, Op::mod, v, by);
  if (as_text(rest) != nullptr) return -1;  // "..." % 2: a text, equal to no number
  std::int64_t out = 0;
  as_integer(rest, out);
  return out;
}

bool is_integer(const Value& v) {
  return std::holds_alternative<std::int64_t>(v) || as_big(v) != nullptr;
}

template <Op op>
bool test_compare(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("comparison", {"other"}, 1);
  return compare(run, op, v, *a.get(0));
}

bool test_in(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("in", {"seq"}, 1);
  return contains(run, *a.get(0), v);
}

bool test_odd(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("odd", {});
  return remainder(run, v, std::int64_t{2}) == 1;
}

bool test_even(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("even", {});
  return remainder(run, v, std::int64_t{2}) == 0;
}

bool test_divisibleby(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("divisibleby", {"num"}, 1);
  return remainder(run, v, *a.get(0)) == 0;
}

bool cased(Interpreter& run, const Value& v, bool upper) {
  const TextRef text = to_text(run, v);
  bool any = false;
  for (std::size_t at = 0; at < text->bytes.size();) {
    const Character c = character_at(text->bytes, at);
    if (upper ? is_lower(c.code) || is_title(c.code) : is_upper(c.code) || is_title(c.code))
      return false;
    any |= upper ? is_upper(c.code) : is_lower(c.code);
    at += c.bytes;
  }
  return any;
}

bool test_lower(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("lower", {});
  return cased(run, v, false);
}

bool test_upper(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("upper", {});
  return cased(run, v, true);
}

bool test_filter(Interpreter&, const Value& v, Arguments& a) {
  a.bind("filter", {});
  return as_text(v) != nullptr && find_filter(as_text(v)->bytes) != nullptr;
}

bool test_test(Interpreter&, const Value& v, Arguments& a) {
  a.bind("test", {});
  return as_text(v) != nullptr && find_test(as_text(v)->bytes) != nullptr;
}

bool test_sequence(Interpreter&, const Value& v, Arguments& a) {
  a.bind("sequence", {});
  const Object* object = as_object(v);
  return has_length(v) && (object == nullptr ||
                           (object->kind != ObjectKind::view && object->kind != ObjectKind::loop));
}

// The same object. Small integers and short texts are one object in CPython; so equal ones count as
// such here.
bool test_sameas(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("sameas", {"other"}, 1);
  const Value& other = *a.get(0);
  if (v.index() != other.index()) return false;
  if (as_object(v) != nullptr) return as_object(v) == as_object(other);
  return equal(run, v, other);
}

// A test of the value alone.
template <bool (*holds)(const Value&)>
bool test_kind(Interpreter&, const Value& v, Arguments& a) {
  a.bind("test", {});
  return holds(v);
}

bool kind_defined(const Value& v) {
  return !is_undefined(v);
}
bool kind_string(const Value& v) {
  return as_text(v) != nullptr;
}
bool kind_mapping(const Value& v) {
  return as_dict(v) != nullptr;
}
bool kind_boolean(const Value& v) {
  return std::holds_alternative<bool>(v);
}
bool kind_false(const Value& v) {
  return std::holds_alternative<bool>(v) && !std::get<bool>(v);
}
bool kind_true(const Value& v) {
  return std::holds_alternative<bool>(v) && std::get<bool>(v);
}
bool kind_float(const Value& v) {
  return std::holds_alternative<double>(v);
}
bool kind_number(const Value& v) {
  return kind_boolean(v) || is_integer(v) || kind_float(v);
}
bool kind_escaped(const Value& v) {
  return as_text(v) != nullptr && as_text(v)->markup;
}

constexpr Test kTests[] = {
    {"!=", test_compare<Op::ne>},
    {"<", test_compare<Op::lt>},
    {"<=", test_compare<Op::le>},
    {"==", test_compare<Op::eq>},
    {">", test_compare<Op::gt>},
    {">=", test_compare<Op::ge>},
    {"boolean", test_kind<kind_boolean>},
    {"callable", test_kind<is_callable>},
    {"defined", test_kind<kind_defined>},
    {"divisibleby", test_divisibleby},
    {"eq", test_compare<Op::eq>},
    {"equalto", test_compare<Op::eq>},
    {"escaped", test_kind<kind_escaped>},
    {"even", test_even},
    {"false", test_kind<kind_false>},
    {"filter", test_filter},
    {"float", test_kind<kind_float>},
    {"ge", test_compare<Op::ge>},
    {"greaterthan", test_compare<Op::gt>},
    {"gt", test_compare<Op::gt>},
    {"in", test_in},
    {"integer", test_kind<is_integer>},
    {"iterable", test_kind<is_iterable>},
    {"le", test_compare<Op::le>},
    {"lessthan", test_compare<Op::lt>},
    {"lower", test_lower},
    {"lt", test_compare<Op::lt>},
    {"mapping", test_kind<kind_mapping>},
    {"ne", test_compare<Op::ne>},
    {"none", test_kind<is_none>},
    {"number", test_kind<kind_number>},
    {"odd", test_odd},
    {"sameas", test_sameas},
    {"sequence", test_sequence},
    {"string", test_kind<kind_string>},
    {"test", test_test},
    {"true", test_kind<kind_true>},
    {"undefined", test_kind<is_undefined>},
    {"upper", test_upper},
};

}  // namespace

const Test* find_test(std::string_view name) {
  for (const Test& test : kTests)
    if (test.name == name) return &test;
  return nullptr;
}

std::vector<std::string_view> test_names() {
  std::vector<std::string_view> names;
  for (const Test& test : kTests) names.push_back(test.name);
  return names;
}

}  // namespace quern::jinja
