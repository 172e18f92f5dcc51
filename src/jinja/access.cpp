#include "jinja/access.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "jinja/builtins.hpp"
#include "jinja/characters.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

using base::cat;

std::string type_name(const Value& v) {
  constexpr const char* kPlain[] = {"Undefined", "NoneType", "bool", "int", "float", "str"};
  if (const Text* text = as_text(v)) return text->markup ? "Markup" : "str";
  const Object* object = as_object(v);
  if (object == nullptr) return kPlain[v.index()];
  switch (object->kind) {
    case ObjectKind::list:
      return "list";
    case ObjectKind::tuple:
      return "tuple";
    case ObjectKind::group:
      return "_GroupTuple";
    case ObjectKind::dict:
      return "dict";
    case ObjectKind::view: {
      const ViewKind part = static_cast<const View*>(object)->part;
      return part == ViewKind::keys     ? "dict_keys"
             : part == ViewKind::values ? "dict_values"
                                        : "dict_items";
    }
    case ObjectKind::range:
      return "range";
    case ObjectKind::slice:
      return "slice";
    case ObjectKind::iterator:
      return static_cast<const Iterator*>(object)->type;
    case ObjectKind::name_space:
      return "TemplateNamespace";
    case ObjectKind::macro:
      return "Macro";
    case ObjectKind::loop:
      return "LoopContext";
    case ObjectKind::big_integer:
      return "int";
    case ObjectKind::function:
      break;
  }
  return static_cast<const Function*>(object)->is_type ? "type" : "builtin_function_or_method";
}

bool is_callable(const Value& v) {
  const Object* object = as_object(v);
  if (is_undefined(v)) return true;  // jinja2's Undefined has __call__
  return object != nullptr &&
         (object->kind == ObjectKind::macro || object->kind == ObjectKind::function ||
          object->kind == ObjectKind::loop);
}

bool has_length(const Value& v) {
  if (is_undefined(v) || as_text(v) != nullptr) return true;
  const Object* object = as_object(v);
  if (object == nullptr) return false;
  switch (object->kind) {
    case ObjectKind::list:
    case ObjectKind::tuple:
    case ObjectKind::group:
    case ObjectKind::dict:
    case ObjectKind::view:
    case ObjectKind::range:
    case ObjectKind::loop:
      return true;
    default:
      return false;
  }
}

bool is_iterable(const Value& v) {
  const Object* object = as_object(v);
  return has_length(v) || (object != nullptr && object->kind == ObjectKind::iterator);
}

std::int64_t length(Interpreter& run, const Value& v) {
  if (is_undefined(v)) return 0;
  if (const Text* text = as_text(v)) {
    run.heap().burn_bytes(text->ascii ? 0 : text->bytes.size());
    return static_cast<std::int64_t>(char_count(*text));
  }
  if (const List* list = as_list(v)) return static_cast<std::int64_t>(list->items.size());
  if (const Dict* dict = as_dict(v)) return static_cast<std::int64_t>(dict->entries.size());
  if (const auto* view = as_kind<View>(v, ObjectKind::view))
    return static_cast<std::int64_t>(view->dict->entries.size());
  if (const auto* range = as_kind<RangeObject>(v, ObjectKind::range)) return range->size;
  if (auto* loop = as_kind<Loop>(v, ObjectKind::loop)) return loop->length(run);
  throw Fault(cat("object of type '", type_name(v), "' has no len()"));
}

TextRef piece(Interpreter& run, const Text& text, std::size_t begin, std::size_t end) {
  TextBuilder builder;
  builder.append(text, begin, end);
  return run.heap().text(builder, text.markup);
}

namespace {

// The item at an index as Python counts it; false when there is none.
bool indexed(Interpreter& run, const Value& of, std::int64_t index, Value& out) {
  const std::int64_t size = length(run, of);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return false;
  const auto place = static_cast<std::size_t>(index);
  if (const List* list = as_list(of)) {
    out = list->items[place];
  } else if (const Text* text = as_text(of)) {
    run.heap().burn_bytes(text->ascii ? 0 : text->bytes.size());
    const std::size_t begin = byte_of_char(*text, place);
    out = piece(run, *text, begin, begin + character_at(text->bytes, begin).bytes);
  } else {
    const auto* range = as_kind<RangeObject>(of, ObjectKind::range);
    out = range->start + index * range->step;
  }
  return true;
}

bool is_sequence(const Value& v) {
  return as_text(v) != nullptr || as_list(v) != nullptr ||
         as_kind<RangeObject>(v, ObjectKind::range) != nullptr;
}

// Whether of[key] is there.
bool subscript(Interpreter& run, const Value& of, const Value& key, Value& out) {
  if (const Dict* dict = as_dict(of)) {
    if (const List* list = as_list(key); list != nullptr && list->kind == ObjectKind::list)
      return false;
    if (as_dict(key) != nullptr || as_kind<View>(key, ObjectKind::view) != nullptr) return false;
    const Value* found = find(run, *dict, key);
    if (found != nullptr) out = *found;
    return found != nullptr;
  }
  std::int64_t index = 0;
  return is_sequence(of) && as_integer(key, index) && indexed(run, of, index, out);
}

std::string shown_type(const Value& v) {
  if (is_none(v)) return "None";
  return cat(type_name(v), " object");
}

Undefined missing(Interpreter& run, const Value& of, const Value& key) {
  if (const Text* name = as_text(key))
    return run.heap().undefined(
        cat("'", shown_type(of), "' has no attribute '", base::printable(name->bytes, 60), "'"));
  return run.heap().undefined(
      cat(shown_type(of), " has no element ", base::printable(repr(run, key), 60)));
}

// getattr: fields of loops and such, then methods. `found` tells a None from nothing.
Value attribute(Interpreter& run, const Value& of, std::string_view name, bool& found) {
  found = true;
  if (const auto* space = as_kind<Namespace>(of, ObjectKind::name_space)) {
    for (const auto& [key, value] : space->attributes)
      if (key == name) return value;
  }
  bool unsafe = false;
  Value method = find_method(run, of, name, unsafe);
  if (unsafe)
    return run.heap().undefined(cat("access to attribute '", base::printable(name, 60), "' of '",
                                    type_name(of), "' object is unsafe."));
  const auto* none =
      std::get_if<Undefined>(&method);  // one with a reason is a value: loop.previtem
  found = none == nullptr || none->why != nullptr;
  return method;
}

bool begins_private(std::string_view name) {
  return name.size() > 1 && name[0] == '_' && name[1] == '_';
}

}  // namespace

Value get_attribute(Interpreter& run, const Value& of, std::string_view name) {
  if (is_undefined(of)) run.undefined_used(of);
  bool found = false;
  Value value = attribute(run, of, name, found);
  if (found) return value;
  if (const Dict* dict = as_dict(of))
    if (const Value* item = find(*dict, name)) return *item;
  // What every Python object has: undefined here, unsafe there; both print nothing.
  if (begins_private(name))
    return run.heap().undefined(cat("access to attribute '", base::printable(name, 60), "' of '",
                                    type_name(of), "' object is unsafe."));
  return missing(run, of, run.heap().text(std::string(name)));
}

Value get_item(Interpreter& run, const Value& of, const Value& key) {
  if (is_undefined(of)) run.undefined_used(of);
  Value out;
  if (subscript(run, of, key, out)) return out;
  if (const Text* name = as_text(key)) {
    bool found = false;
    Value value = attribute(run, of, name->bytes, found);
    if (found) return value;
  }
  return missing(run, of, key);
}

namespace {

struct Bounds {
  std::int64_t start, stop, step, count;
};

// As PySlice_AdjustIndices.
Bounds adjusted(const SliceBounds& bounds, std::int64_t size) {
  const auto index = [](const Value& v, std::int64_t otherwise) {
    if (is_none(v)) return otherwise;
    std::int64_t out = 0;
    if (!as_integer(v, out))
      throw Fault("slice indices must be integers or None or have an __index__ method");
    return out;
  };
  const std::int64_t step = index(bounds.step, 1);
  if (step == 0) throw Fault("slice step cannot be zero");
  const bool down = step < 0;
  const auto clip = [&](std::int64_t i) {
    if (i < 0) {
      i = i < -size ? -1 : i + size;
      if (i < 0) i = down ? -1 : 0;
    } else if (i >= size) {
      i = down ? size - 1 : size;
    }
    return i;
  };
  const std::int64_t start =
      is_none(bounds.start) ? (down ? size - 1 : 0) : clip(index(bounds.start, 0));
  const std::int64_t stop = is_none(bounds.stop) ? (down ? -1 : size) : clip(index(bounds.stop, 0));
  std::int64_t count = 0;
  // Magnitudes: -step of INT64_MIN does not fit.
  if (down && stop < start)
    count = (start - stop - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
  if (!down && start < stop) count = (stop - start - 1) / step + 1;
  return {start, stop, step, count};
}

Value slice_of_text(Interpreter& run, const Text& text, const Bounds& b) {
  run.heap().burn_bytes(text.bytes.size());
  if (b.step == 1) {
    const std::size_t begin = byte_of_char(text, static_cast<std::size_t>(b.start));
    const std::size_t end = byte_of_char(text, static_cast<std::size_t>(b.start + b.count));
    return piece(run, text, begin, std::max(begin, end));
  }
  std::vector<std::size_t> places;  // where each character begins
  for (std::size_t at = 0; at < text.bytes.size(); at += character_at(text.bytes, at).bytes)
    places.push_back(at);
  places.push_back(text.bytes.size());
  TextBuilder builder;
  for (std::int64_t i = 0; i < b.count; ++i) {
    const auto place = static_cast<std::size_t>(b.start + i * b.step);
    builder.append(text, places[place], places[place + 1]);
  }
  return run.heap().text(builder, text.markup);
}

Value slice_of_range(Interpreter& run, const RangeObject& range, const Bounds& b) {
  std::int64_t start = 0, stop = 0, step = 0;
  bool over = __builtin_mul_overflow(range.step, b.step, &step);
  over |= __builtin_mul_overflow(b.start, range.step, &start);
  over |= __builtin_add_overflow(start, range.start, &start);
  over |= __builtin_mul_overflow(b.stop, range.step, &stop);
  over |= __builtin_add_overflow(stop, range.start, &stop);
  if (over) throw Fault("integer overflow in the slice of a range");
  return static_cast<Object*>(run.heap().make<RangeObject>(start, stop, step, b.count));
}

}  // namespace

Value get_slice(Interpreter& run, const Value& of, const SliceBounds& bounds) {
  if (is_undefined(of)) run.undefined_used(of);
  if (!is_sequence(of)) throw Fault(cat("'", type_name(of), "' object cannot be sliced"));
  const Bounds b = adjusted(bounds, length(run, of));
  if (const Text* text = as_text(of)) return slice_of_text(run, *text, b);
  if (const auto* range = as_kind<RangeObject>(of, ObjectKind::range)) {
    return slice_of_range(run, *range, b);
  }
  const List& list = *as_list(of);
  std::vector<Value> items;
  run.heap().burn(static_cast<std::uint64_t>(b.count));
  for (std::int64_t i = 0; i < b.count; ++i)
    items.push_back(list.items[static_cast<std::size_t>(b.start + i * b.step)]);
  return static_cast<Object*>(run.heap().list(
      std::move(items), list.kind == ObjectKind::list ? ObjectKind::list : ObjectKind::tuple));
}

}  // namespace quern::jinja
