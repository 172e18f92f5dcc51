#include "jinja/interpreter.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/characters.hpp"
#include "jinja/operators.hpp"

namespace quern::jinja {

Value* Scope::find(std::string_view name) {
  for (auto& [key, value] : names)
    if (key == name) return &value;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* known = find(name)) {
    *known = std::move(value);
  } else {
    names.emplace_back(name, std::move(value));
  }
}

Cursor::Cursor(Interpreter& run, const Value& value) : run_(&run), value_(value) {
  if (!is_iterable(value))
    throw Fault(base::cat("'", type_name(value), "' object is not iterable"));
}

bool Cursor::next(Value& out) {
  run_->heap().burn(1);
  if (const Text* text = as_text(value_)) {
    if (at_ >= text->bytes.size()) return false;
    const std::size_t begin = at_;
    at_ += character_at(text->bytes, at_).bytes;
    TextBuilder builder;  // a character of markup is none, as in the reference
    builder.append(*text, begin, at_);
    out = run_->heap().text(builder);
    return true;
  }
  if (const List* list = as_list(value_)) {
    if (at_ >= list->items.size()) return false;
    out = list->items[at_++];
    return true;
  }
  const View* view = as_kind<View>(value_, ObjectKind::view);
  if (const Dict* dict = view != nullptr ? view->dict : as_dict(value_)) {
    if (at_ >= dict->entries.size()) return false;
    const auto& [key, value] = dict->entries[at_++];
    if (view == nullptr || view->part == ViewKind::keys)
      out = key;
    else if (view->part == ViewKind::values)
      out = value;
    else
      out = static_cast<Object*>(run_->heap().list({key, value}, ObjectKind::tuple));
    return true;
  }
  if (const auto* range = as_kind<RangeObject>(value_, ObjectKind::range)) {
    if (at_ >= static_cast<std::size_t>(range->size)) return false;
    out = range->start + static_cast<std::int64_t>(at_++) * range->step;
    return true;
  }
  if (auto* iterator = as_kind<Iterator>(value_, ObjectKind::iterator)) {
    const Interpreter::Deeper deeper(*run_);
    return iterator->next(out);
  }
  if (auto* loop = as_kind<Loop>(value_, ObjectKind::loop)) {
    Value item;
    if (!loop->advance(item)) return false;
    out = static_cast<Object*>(run_->heap().list({item, value_}, ObjectKind::tuple));
    return true;
  }
  return false;  // undefined: nothing
}

bool Loop::advance(Value& out) {
  Value next;
  if (has_after) {
    next = std::move(after);
    has_after = false;
  } else if (ended || !cursor.next(next)) {
    ended = true;
    return false;
  }
  has_before = ++index0 > 0;
  before = std::move(current);
  current = next;
  out = std::move(next);
  return true;
}

const Value* Loop::peek() {
  if (!has_after && !ended) {
    has_after = cursor.next(after);
    ended = !has_after;
  }
  return has_after ? &after : nullptr;
}

std::int64_t Loop::length(Interpreter& run) {
  if (known_length >= 0) return known_length;
  if (has_length(iterated)) return known_length = jinja::length(run, iterated);
  // A generator: what is left is taken out and kept.
  std::vector<Value> rest;
  Value item;
  while (!ended && cursor.next(item)) rest.push_back(item);
  known_length = static_cast<std::int64_t>(rest.size()) + index0 + 1 + (has_after ? 1 : 0);
  ended = false;
  cursor = Cursor(run, static_cast<Object*>(run.heap().list(std::move(rest))));
  return known_length;
}

void Interpreter::Deeper::too_deep() {
  throw Fault("nested too deeply");
}

Interpreter::Interpreter(const Program& program, const Template::Variables& variables,
                         const RenderOptions& options)
    : options_(options),
      program_(program),
      heap_(options.limits),
      root_(std::make_shared<Scope>()) {
  for (const auto& [name, data] : variables) {
    root_->set(name, from_data(data));
    if (name == options.blamed) blamed_ = as_list(*root_->find(name));
  }
  scope_ = std::make_shared<Scope>();
  scope_->parent = root_;
}

Value Interpreter::from_data(const Data& data) {
  const Deeper deeper(*this);
  switch (data.kind) {
    case Data::Kind::none:
      return None{};
    case Data::Kind::boolean:
      return data.boolean;
    case Data::Kind::integer:
      return data.integer;
    case Data::Kind::big:
      return static_cast<Object*>(heap_.make<BigInteger>(data.text.text));
    case Data::Kind::real:
      return data.real;
    case Data::Kind::text:
      return heap_.text(Text(data.text.text, data.text.untrusted));
    case Data::Kind::list: {
      std::vector<Value> items;
      items.reserve(data.items.size());
      for (const Data& item : data.items) items.push_back(from_data(item));
      return static_cast<Object*>(heap_.list(std::move(items)));
    }
    case Data::Kind::object:
      break;
  }
  Dict* dict = heap_.make<Dict>();
  for (const auto& [key, value] : data.members)
    insert(*this, *dict, heap_.text(Text(key.text, key.untrusted)), from_data(value));
  return static_cast<Object*>(dict);
}

base::MarkedText Interpreter::render() {
  TextBuilder out;
  out_ = &out;
  execute(program_.body);
  Text text = out.take();
  return {std::move(text.bytes), std::move(text.untrusted)};
}

void Interpreter::blame(const Value& item) {
  const Object* object = as_object(item);
  if (blamed_ == nullptr || object == nullptr || !blame_.empty()) return;
  for (std::size_t i = 0; i < blamed_->items.size(); ++i)
    if (as_object(blamed_->items[i]) == object) blame_ = base::cat(options_.blamed, "[", i, "]");
}

std::vector<Value> Interpreter::items_of(const Value& iterable) {
  std::vector<Value> out;
  Cursor cursor(*this, iterable);
  for (Value item; cursor.next(item);) {
    out.push_back(item);
    if (out.size() * sizeof(Value) > heap_.limits().heap_bytes / 4) throw Fault("too many items");
  }
  return out;
}

void Interpreter::undefined_used(const Value& value) const {
  const auto& why = std::get<Undefined>(value).why;
  throw Fault(why ? *why : std::string("an undefined value is used"));
}

}  // namespace quern::jinja
