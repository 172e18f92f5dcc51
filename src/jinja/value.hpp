// Values inside one rendering. Containers and functions live on the heap (heap.hpp) until the
// rendering ends, so that no chain of them is ever taken apart recursively; texts are counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/text.hpp"

namespace quern::jinja {

struct Object;
class Interpreter;
class Arguments;

struct Undefined {
  std::shared_ptr<const std::string> why;  // what an error says that comes of using it
};
struct None {};

using Value = std::variant<Undefined, None, bool, std::int64_t, double, TextRef, Object*>;

enum class ObjectKind {
  list,
  tuple,
  dict,
  view,
  range,
  slice,
  iterator,
  name_space,
  macro,
  function,
  loop,
  group,
  big_integer
};

struct Object {
  explicit Object(ObjectKind k) : kind(k) {}
  virtual ~Object() = default;
  const ObjectKind kind;
};

// A list or a tuple (a group too: the pair that `groupby` makes). Never changed once it is visible.
struct List final : Object {
  explicit List(ObjectKind k, std::vector<Value> v = {}) : Object(k), items(std::move(v)) {}
  std::vector<Value> items;
};

struct Dict final : Object {
  Dict() : Object(ObjectKind::dict) {}
  std::vector<std::pair<Value, Value>> entries;  // in the order they came
  std::unordered_multimap<std::size_t, std::size_t>
      places;  // hash of a key -> index; once there are many
};

enum class ViewKind { keys, values, items };
struct View final : Object {
  View(const Dict* d, ViewKind k) : Object(ObjectKind::view), dict(d), part(k) {}
  const Dict* dict;
  ViewKind part;
};

struct RangeObject final : Object {
  RangeObject(std::int64_t first, std::int64_t end, std::int64_t by, std::int64_t n)
      : Object(ObjectKind::range), start(first), stop(end), step(by), size(n) {}
  std::int64_t start, stop, step, size;  // every item fits, and the one behind the last
};

// A generator: gives each item once.
struct Iterator final : Object {
  explicit Iterator(std::function<bool(Value&)> n, const char* t = "generator")
      : Object(ObjectKind::iterator), next(std::move(n)), type(t) {}
  std::function<bool(Value&)> next;  // false at the end
  const char* type;
};

struct Namespace final : Object {
  Namespace() : Object(ObjectKind::name_space) {}
  std::vector<std::pair<std::string, Value>> attributes;
};

// An integer that 64 bits do not hold, as JSON may have one: it is printed and compared, not reckoned with.
struct BigInteger final : Object {
  explicit BigInteger(std::string d) : Object(ObjectKind::big_integer), digits(std::move(d)) {}
  std::string digits;  // a minus perhaps, then digits that do not begin with 0
};

// A method with its object, or a function of the environment.
struct Function final : Object {
  using Body = std::function<Value(Interpreter&, Arguments&)>;
  Function(std::string n, Body b)
      : Object(ObjectKind::function), name(std::move(n)), body(std::move(b)) {}
  std::string name;
  Body body;
  bool is_type = false;                                      // `namespace`, `range`
  std::vector<std::pair<std::string, Function*>> functions;  // `dict.fromkeys`
};

// Access. The pointers are null for other kinds.
inline bool is_undefined(const Value& v) {
  return std::holds_alternative<Undefined>(v);
}
inline bool is_none(const Value& v) {
  return std::holds_alternative<None>(v);
}
inline const Text* as_text(const Value& v) {
  const TextRef* text = std::get_if<TextRef>(&v);
  return text != nullptr ? text->get() : nullptr;
}
inline Object* as_object(const Value& v) {
  Object* const* object = std::get_if<Object*>(&v);
  return object != nullptr ? *object : nullptr;
}
template <class T>
T* as_kind(const Value& v, ObjectKind kind) {
  Object* object = as_object(v);
  return object != nullptr && object->kind == kind ? static_cast<T*>(object) : nullptr;
}
inline const List* as_list(const Value& v) {  // tuples too
  Object* o = as_object(v);
  return o != nullptr && (o->kind == ObjectKind::list || o->kind == ObjectKind::tuple ||
                          o->kind == ObjectKind::group)
             ? static_cast<List*>(o)
             : nullptr;
}
inline const Dict* as_dict(const Value& v) {
  return as_kind<Dict>(v, ObjectKind::dict);
}
inline const BigInteger* as_big(const Value& v) {
  return as_kind<BigInteger>(v, ObjectKind::big_integer);
}
// int or bool as Python counts them, where 64 bits hold it.
inline bool as_integer(const Value& v, std::int64_t& out) {
  if (const bool* b = std::get_if<bool>(&v)) {
    out = *b ? 1 : 0;
    return true;
  }
  if (const std::int64_t* i = std::get_if<std::int64_t>(&v)) {
    out = *i;
    return true;
  }
  return false;
}

std::string type_name(const Value& v);  // Python's: "str", "list", "NoneType"
bool is_callable(const Value& v);

}  // namespace quern::jinja
