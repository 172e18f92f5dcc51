#include "jinja/operators.hpp"

#include <cmath>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/strings.hpp"
#include "jinja/access.hpp"

namespace quern::jinja {

using base::cat;

namespace {

bool is_number(const Value& v) {
  return std::holds_alternative<bool>(v) || std::holds_alternative<std::int64_t>(v) ||
         std::holds_alternative<double>(v) || as_big(v) != nullptr;
}

// A bool, int or float without loss: 64 bits of fraction on x86, and on ARM 113.
long double exact(const Value& v) {
  if (const double* d = std::get_if<double>(&v)) return *d;
  std::int64_t i = 0;
  as_integer(v, i);
  return static_cast<long double>(i);
}

// Two texts of digits, each perhaps behind a minus.
std::partial_ordering order_of_digits(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) return negative ? std::partial_ordering::less : std::partial_ordering::greater;
  if (negative) std::swap(a, b);
  return a.size() != b.size() ? a.size() <=> b.size() : a.compare(b) <=> 0;
}

// Of two numbers; exact, whatever their kinds.
std::partial_ordering order_of(const Value& a, const Value& b) {
  const BigInteger *x = as_big(a), *y = as_big(b);
  if (x == nullptr && y == nullptr) return exact(a) <=> exact(b);
  if (x == nullptr) return 0 <=> order_of(b, a);
  if (y != nullptr) return order_of_digits(x->digits, y->digits);
  const double* d = std::get_if<double>(&b);
  if (d != nullptr && std::isnan(*d)) return std::partial_ordering::unordered;
  if (d != nullptr && std::isinf(*d)) return 0 <=> *d;
  if (d == nullptr || std::fabs(*d) < 0x1p62) return order_of_digits(x->digits, "0");  // beyond it on its side
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.0f", *d);
  return order_of_digits(x->digits, digits);
}

bool equal_lists(Interpreter& run, const List& a, const List& b) {
  const bool a_list = a.kind == ObjectKind::list, b_list = b.kind == ObjectKind::list;
  if (a_list != b_list || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!equal(run, a.items[i], b.items[i])) return false;
  return true;
}

bool equal_dicts(Interpreter& run, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = find(run, b, key);
    if (other == nullptr || !equal(run, value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const RangeObject& a, const RangeObject& b) {
  return a.size == b.size &&
         (a.size == 0 || (a.start == b.start && (a.size == 1 || a.step == b.step)));
}

[[noreturn]] void no_order(std::string_view op, const Value& a, const Value& b) {
  throw Fault(cat("'", op, "' not supported between instances of '", type_name(a), "' and '",
                  type_name(b), "'"));
}

// left < right, or left <= right.
bool ordered(Interpreter& run, const Value& a, const Value& b, bool or_equal, std::string_view op) {
  const Interpreter::Deeper deeper(run);
  run.heap().burn(1);
  if (is_undefined(a)) run.undefined_used(a);
  if (is_undefined(b)) run.undefined_used(b);
  if (is_number(a) && is_number(b)) return or_equal ? order_of(a, b) <= 0 : order_of(a, b) < 0;
  const Text *s = as_text(a), *t = as_text(b);
  if (s != nullptr && t != nullptr) {
    run.heap().burn_bytes(std::min(s->bytes.size(), t->bytes.size()));
    return or_equal ? s->bytes <= t->bytes : s->bytes < t->bytes;
  }
  const List *x = as_list(a), *y = as_list(b);
  if (x == nullptr || y == nullptr ||
      (x->kind == ObjectKind::list) != (y->kind == ObjectKind::list))
    no_order(op, a, b);
  for (std::size_t i = 0; i < x->items.size() && i < y->items.size(); ++i)
    if (!equal(run, x->items[i], y->items[i]))
      return ordered(run, x->items[i], y->items[i], or_equal, op);
  return or_equal ? x->items.size() <= y->items.size() : x->items.size() < y->items.size();
}

std::size_t hash_of(Interpreter& run, const Value& v) {
  const Interpreter::Deeper deeper(run);
  if (const Text* text = as_text(v)) return std::hash<std::string>()(text->bytes);
  if (const BigInteger* big = as_big(v)) return std::hash<double>()(std::strtod(big->digits.c_str(), nullptr));
  if (is_number(v)) return std::hash<double>()(static_cast<double>(exact(v)));
  if (is_none(v)) return 1;
  if (is_undefined(v)) return 2;
  if (const List* list = as_list(v); list != nullptr && list->kind != ObjectKind::list) {
    std::size_t hash = 3;
    for (const Value& item : list->items) hash = hash * 1000003 + hash_of(run, item);
    return hash;
  }
  const Object* object = as_object(v);
  if (object->kind == ObjectKind::list || object->kind == ObjectKind::dict ||
      object->kind == ObjectKind::view)
    throw Fault(cat("unhashable type: '", type_name(v), "'"));
  return std::hash<const void*>()(object);
}

constexpr std::size_t kIndexed = 12;  // from so many keys on a dictionary has an index

}  // namespace

bool equal(Interpreter& run, const Value& a, const Value& b) {
  const Interpreter::Deeper deeper(run);
  run.heap().burn(1);
  if (is_number(a) && is_number(b)) return order_of(a, b) == 0;
  if (a.index() != b.index()) return false;
  if (const Text* text = as_text(a)) {
    run.heap().burn_bytes(text->bytes.size());
    return text->bytes == as_text(b)->bytes;
  }
  const Object *x = as_object(a), *y = as_object(b);
  if (x == nullptr || x == y) return true;  // none and none, undefined and undefined
  const List *p = as_list(a), *q = as_list(b);
  if (p != nullptr && q != nullptr) return equal_lists(run, *p, *q);
  const Dict *d = as_dict(a), *e = as_dict(b);
  if (d != nullptr && e != nullptr) return equal_dicts(run, *d, *e);
  const auto* r = as_kind<RangeObject>(a, ObjectKind::range);
  const auto* s = as_kind<RangeObject>(b, ObjectKind::range);
  return r != nullptr && s != nullptr && equal_ranges(*r, *s);
}

bool less(Interpreter& run, const Value& a, const Value& b) {
  return ordered(run, a, b, false, "<");
}

bool compare(Interpreter& run, Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::eq:
      return equal(run, a, b);
    case Op::ne:
      return !equal(run, a, b);
    case Op::lt:
      return ordered(run, a, b, false, "<");
    case Op::le:
      return ordered(run, a, b, true, "<=");
    case Op::gt:
      return ordered(run, b, a, false, ">");
    case Op::ge:
      return ordered(run, b, a, true, ">=");
    case Op::in:
      return contains(run, b, a);
    default:
      return !contains(run, b, a);
  }
}

bool contains(Interpreter& run, const Value& container, const Value& item) {
  if (const Text* text = as_text(container)) {
    const Text* word = as_text(item);
    if (word == nullptr)
      throw Fault(cat("'in <string>' requires string as left operand, not ", type_name(item)));
    run.heap().burn_bytes(text->bytes.size());
    // memmem is linear whatever the texts; std::string::find is not.
    return word->bytes.empty() || memmem(text->bytes.data(), text->bytes.size(), word->bytes.data(),
                                         word->bytes.size()) != nullptr;
  }
  const View* view = as_kind<View>(container, ObjectKind::view);
  if (const Dict* dict =
          view != nullptr && view->part == ViewKind::keys ? view->dict : as_dict(container))
    return find(run, *dict, item) != nullptr;
  if (!is_iterable(container))
    throw Fault(cat("argument of type '", type_name(container), "' is not iterable"));
  Cursor cursor(run, container);
  for (Value other; cursor.next(other);)
    if (equal(run, other, item)) return true;
  return false;
}

bool truth(Interpreter& run, const Value& value) {
  if (is_undefined(value) || is_none(value)) return false;
  if (const bool* b = std::get_if<bool>(&value)) return *b;
  if (const std::int64_t* i = std::get_if<std::int64_t>(&value)) return *i != 0;
  if (const double* d = std::get_if<double>(&value)) return *d != 0;
  if (const Text* text = as_text(value)) return !text->bytes.empty();
  return has_length(value) ? length(run, value) != 0 : true;
}

const Value* find(const Dict& dict, std::string_view key) {
  if (dict.places.empty()) {
    for (const auto& [name, value] : dict.entries)
      if (const Text* text = as_text(name); text != nullptr && text->bytes == key) return &value;
    return nullptr;
  }
  const auto [begin, end] = dict.places.equal_range(std::hash<std::string_view>()(key));
  for (auto place = begin; place != end; ++place) {
    const auto& [name, value] = dict.entries[place->second];
    if (const Text* text = as_text(name); text != nullptr && text->bytes == key) return &value;
  }
  return nullptr;
}

const Value* find(Interpreter& run, const Dict& dict, const Value& key) {
  if (const Text* text = as_text(key)) return find(dict, text->bytes);
  const std::size_t hash = hash_of(run, key);
  if (dict.places.empty()) {
    for (const auto& [name, value] : dict.entries)
      if (equal(run, name, key)) return &value;
    return nullptr;
  }
  const auto [begin, end] = dict.places.equal_range(hash);
  for (auto place = begin; place != end; ++place)
    if (equal(run, dict.entries[place->second].first, key))
      return &dict.entries[place->second].second;
  return nullptr;
}

void insert(Interpreter& run, Dict& dict, const Value& key, Value value) {
  const std::size_t hash = hash_of(run, key);
  if (const Value* known = find(run, dict, key)) {
    const_cast<Value&>(*known) = std::move(value);
    return;
  }
  run.heap().charge(2 * sizeof(Value) + (dict.places.empty() ? 0 : 48));
  dict.entries.emplace_back(key, std::move(value));
  if (!dict.places.empty()) {
    dict.places.emplace(hash, dict.entries.size() - 1);
  } else if (dict.entries.size() >= kIndexed) {
    for (std::size_t i = 0; i < dict.entries.size(); ++i)
      dict.places.emplace(hash_of(run, dict.entries[i].first), i);
  }
}

}  // namespace quern::jinja
