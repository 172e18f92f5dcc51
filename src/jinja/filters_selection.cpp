// Filters that choose or look inside: default, attr, map, select and its kin. Also the table of
// all.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/attribute_path.hpp"
#include "jinja/builtins.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

namespace {

Value filter_default(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("default", {"default_value", "boolean"});
  const bool replaces =
      is_undefined(v) || (a.get(1) != nullptr && truth(run, *a.get(1)) && !truth(run, v));
  return replaces ? a.get_or(0, run.heap().text("")) : v;
}

Value filter_attr(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("attr", {"name"}, 1);
  const Text* name = a.text(0);
  if (name == nullptr) throw Fault("attr: attribute name must be string");
  bool unsafe = false;
  if (as_dict(v) == nullptr) return get_attribute(run, v, name->bytes);
  Value method = find_method(run, v, name->bytes, unsafe);  // never the item of this name
  if (!is_undefined(method) || unsafe) return get_attribute(run, v, name->bytes);
  return run.heap().undefined(
      base::cat("'dict object' has no attribute '", base::printable(name->bytes, 60), "'"));
}

std::string first_name(Arguments& a, std::string_view filter) {
  const Text* name = a.positional.empty() ? nullptr : as_text(a.positional[0]);
  if (name == nullptr) throw Fault(base::cat(filter, " requires a filter argument"));
  return name->bytes;
}

Value filter_map(Interpreter& run, const Value& v, Arguments& a) {
  if (!truth(run, v)) return run.heap().make<Iterator>([](Value&) { return false; });
  auto cursor = std::make_shared<Cursor>(run, v);
  if (a.positional.empty() && a.find("attribute") != nullptr) {
    auto path = std::make_shared<AttributePath>(run, a.take("attribute", None{}));
    const Value otherwise = a.take("default", None{});
    if (!a.named.empty())
      throw Fault(base::cat("map: unexpected keyword argument '",
                            base::printable(a.named[0].first, 40), "'"));
    return run.heap().make<Iterator>([&run, cursor, path, otherwise](Value& out) {
      if (!cursor->next(out)) return false;
      out = path->read(run, out, otherwise);
      return true;
    });
  }
  const std::string name = first_name(a, "map");
  Arguments rest = a;
  rest.positional.erase(rest.positional.begin());
  return run.heap().make<Iterator>([&run, cursor, name, rest](Value& out) {
    if (!cursor->next(out)) return false;
    Arguments arguments = rest;
    out = run.apply_filter(name, out, arguments);
    return true;
  });
}

// Items for which a test (or without one their truth) is `wanted`, of themselves or of an
// attribute.
Value choose(Interpreter& run, const Value& v, Arguments& a, bool wanted, bool by_attribute) {
  if (!truth(run, v)) return run.heap().make<Iterator>([](Value&) { return false; });
  auto cursor = std::make_shared<Cursor>(run, v);
  Arguments rest = a;
  Value attribute = None{};
  if (by_attribute) {
    if (rest.positional.empty()) throw Fault("missing parameter for attribute name");
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  auto path = std::make_shared<AttributePath>(run, attribute);
  std::string test;
  if (!rest.positional.empty()) {
    test = first_name(rest, "select");
    rest.positional.erase(rest.positional.begin());
  }
  return run.heap().make<Iterator>([&run, cursor, path, test, rest, wanted](Value& out) {
    while (cursor->next(out)) {
      const Value value = path->read(run, out);
      Arguments arguments = rest;
      if ((test.empty() ? truth(run, value) : run.apply_test(test, value, arguments)) == wanted)
        return true;
    }
    return false;
  });
}

Value filter_select(Interpreter& run, const Value& v, Arguments& a) {
  return choose(run, v, a, true, false);
}
Value filter_reject(Interpreter& run, const Value& v, Arguments& a) {
  return choose(run, v, a, false, false);
}
Value filter_selectattr(Interpreter& run, const Value& v, Arguments& a) {
  return choose(run, v, a, true, true);
}
Value filter_rejectattr(Interpreter& run, const Value& v, Arguments& a) {
  return choose(run, v, a, false, true);
}

constexpr Filter kFilters[] = {
    {"attr", filter_attr},       {"d", filter_default},
    {"default", filter_default}, {"map", filter_map},
    {"reject", filter_reject},   {"rejectattr", filter_rejectattr},
    {"select", filter_select},   {"selectattr", filter_selectattr},
};

std::vector<std::span<const Filter>> tables() {
  return {text_filters(), layout_filters(), number_filters(), sequence_filters(),
          selection_filters()};
}

}  // namespace

std::span<const Filter> selection_filters() {
  return kFilters;
}

const Filter* find_filter(std::string_view name) {
  for (const std::span<const Filter>& table : tables())
    for (const Filter& filter : table)
      if (filter.name == name) return &filter;
  return nullptr;
}

std::vector<std::string_view> filter_names() {
  std::vector<std::string_view> names;
  for (const std::span<const Filter>& table : tables())
    for (const Filter& filter : table) names.push_back(filter.name);
  return names;
}

}  // namespace quern::jinja
