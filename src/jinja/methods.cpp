// Methods of containers, and how a method is found.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

namespace {

template <ViewKind part>
Value method_view(Interpreter& run, const Value& self, Arguments& a) {
  a.only("dict method", 0, 0);
  return static_cast<Object*>(run.heap().make<View>(as_dict(self), part));
}

Value method_get(Interpreter& run, const Value& self, Arguments& a) {
  a.only("get", 1, 2);
  const Value* found = find(run, *as_dict(self), a.positional[0]);
  return found != nullptr ? *found : a.get_or(1, None{});
}

Value method_copy(Interpreter&, const Value& self, Arguments& a) {
  a.only("copy", 0, 0);
  return self;  // nothing here is ever changed
}

Value method_index(Interpreter& run, const Value& self, Arguments& a) {
  a.only("index", 1, 3);
  const std::vector<Value> items =
      run.items_of(get_slice(run, self, {None{}, a.get_or(2, None{}), None{}}));
  std::int64_t start = a.integer_or(1, 0);
  if (start < 0) start = std::max<std::int64_t>(start + length(run, self), 0);
  for (auto i = static_cast<std::size_t>(start); i < items.size(); ++i)
    if (equal(run, items[i], a.positional[0])) return static_cast<std::int64_t>(i);
  throw Fault(
      base::cat(base::printable(repr(run, a.positional[0]), 60), " is not in the sequence"));
}

Value method_count(Interpreter& run, const Value& self, Arguments& a) {
  a.only("count", 1, 1);
  std::int64_t count = 0;
  for (const Value& item : run.items_of(self)) count += equal(run, item, a.positional[0]) ? 1 : 0;
  return count;
}

constexpr MethodEntry kDict[] = {{"copy", method_copy},
                                 {"fromkeys", nullptr},
                                 {"get", method_get},
                                 {"items", method_view<ViewKind::items>},
                                 {"keys", method_view<ViewKind::keys>},
                                 {"values", method_view<ViewKind::values>}};
constexpr MethodEntry kSequence[] = {
    {"count", method_count}, {"index", method_index}, {"copy", method_copy}};
constexpr std::string_view kUnsafeDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kUnsafeList[] = {"append", "clear",  "extend",  "insert",
                                            "pop",    "remove", "reverse", "sort"};

// A method as a value: its object goes with it.
Value bound(Interpreter& run, const Value& self, const MethodEntry& entry) {
  const Method method = entry.run;
  const std::string name(entry.name), type = type_name(self);
  return run.heap().make<Function>(name, [self, method, name, type](Interpreter& r, Arguments& a) {
    if (method == nullptr)
      throw Fault(base::cat("method '", name, "' of '", type, "' is not supported"));
    return method(r, self, a);
  });
}

Value in_tables(Interpreter& run, const Value& self, std::string_view name,
                std::initializer_list<std::span<const MethodEntry>> tables) {
  for (const std::span<const MethodEntry>& table : tables)
    for (const MethodEntry& entry : table)
      if (entry.name == name) return bound(run, self, entry);
  return Undefined{};
}

Value loop_cycle(Interpreter&, const Value& self, Arguments& a) {
  if (a.positional.empty()) throw Fault("no items for cycling given");
  const auto* loop = static_cast<const Loop*>(as_object(self));
  return a.positional[static_cast<std::size_t>(loop->index0) % a.positional.size()];
}

Value loop_changed(Interpreter& run, const Value& self, Arguments& a) {
  auto* loop = static_cast<Loop*>(as_object(self));
  bool same = loop->changed_before && loop->changed_value.size() == a.positional.size();
  for (std::size_t i = 0; same && i < a.positional.size(); ++i)
    same = equal(run, loop->changed_value[i], a.positional[i]);
  loop->changed_before = true;
  if (!same) loop->changed_value = a.positional;
  return !same;
}

constexpr MethodEntry kLoop[] = {{"changed", loop_changed}, {"cycle", loop_cycle}};

Value loop_field(Interpreter& run, const Value& self, Loop& loop, std::string_view name) {
  if (name == "index0") return loop.index0;
  if (name == "index") return loop.index0 + 1;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return loop.peek() == nullptr;
  if (name == "length") return loop.length(run);
  if (name == "revindex") return loop.length(run) - loop.index0;
  if (name == "revindex0") return loop.length(run) - loop.index0 - 1;
  if (name == "depth") return loop.depth;
  if (name == "depth0") return loop.depth - 1;
  if (name == "previtem")
    return loop.has_before ? loop.before : run.heap().undefined("there is no previous item");
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next != nullptr ? *next : run.heap().undefined("there is no next item");
  }
  return in_tables(run, self, name, {kLoop});
}

Value macro_field(Interpreter& run, const Macro& macro, std::string_view name) {
  if (name == "name")
    return macro.signature->name.empty() ? Value(None{})
                                         : Value(run.heap().text(macro.signature->name));
  if (name == "catch_kwargs") return macro.signature->takes_kwargs;
  if (name == "catch_varargs") return macro.signature->takes_varargs;
  if (name == "caller") return macro.signature->takes_caller;
  if (name != "arguments") return Undefined{};
  std::vector<Value> names;
  for (const std::string& parameter : macro.signature->parameters)
    names.push_back(run.heap().text(parameter));
  return static_cast<Object*>(run.heap().list(std::move(names), ObjectKind::tuple));
}

template <std::size_t N>
bool listed(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value list_method(Interpreter& run, const Value& self, const List& list, std::string_view name,
                  bool& unsafe) {
  if (list.kind == ObjectKind::group && (name == "grouper" || name == "list"))
    return list.items[name == "list" ? 1 : 0];
  unsafe = list.kind == ObjectKind::list && listed(kUnsafeList, name);
  return list.kind == ObjectKind::list
             ? in_tables(run, self, name, {kSequence})
             : in_tables(run, self, name, {std::span(kSequence).first(2)});
}

Value object_method(Interpreter& run, const Value& self, Object& object, std::string_view name,
                    bool& unsafe) {
  switch (object.kind) {
    case ObjectKind::dict:
      unsafe = listed(kUnsafeDict, name);
      return in_tables(run, self, name, {kDict});
    case ObjectKind::range: {
      const auto& range = static_cast<const RangeObject&>(object);
      if (name == "start") return range.start;
      if (name == "step") return range.step;
      if (name == "stop") return range.stop;
      return in_tables(run, self, name, {std::span(kSequence).first(2)});
    }
    case ObjectKind::loop:
      return loop_field(run, self, static_cast<Loop&>(object), name);
    case ObjectKind::macro:
      return macro_field(run, static_cast<const Macro&>(object), name);
    case ObjectKind::function:
      for (const auto& [field, function] : static_cast<const Function&>(object).functions)
        if (field == name) return static_cast<Object*>(function);
      return Undefined{};
    default:
      return Undefined{};
  }
}

}  // namespace

Value find_method(Interpreter& run, const Value& self, std::string_view name, bool& unsafe) {
  unsafe = false;
  if (as_text(self) != nullptr)
    return in_tables(run, self, name, {text_methods(), split_methods(), text_predicates()});
  if (const List* list = as_list(self)) return list_method(run, self, *list, name, unsafe);
  if (Object* object = as_object(self)) return object_method(run, self, *object, name, unsafe);
  if (is_none(self) || is_undefined(self)) return Undefined{};
  if (name == "real")
    return std::holds_alternative<bool>(self) ? Value(std::int64_t{std::get<bool>(self)}) : self;
  if (name == "imag")
    return std::holds_alternative<double>(self) ? Value(0.0) : Value(std::int64_t{0});
  return Undefined{};
}

}  // namespace quern::jinja
