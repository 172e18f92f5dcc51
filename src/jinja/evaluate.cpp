#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/interpreter.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

// Small on purpose: its frame is on the stack once for each level of an expression.
Value Interpreter::evaluate(const Expr& e) {
  if (e.kind == ExprKind::constant) return e.value;
  const Deeper deeper(*this);
  heap_.burn(1);
  line_ = e.line;
  switch (e.kind) {
    case ExprKind::constant:
      return e.value;
    case ExprKind::name:
      return evaluate_name(e);
    case ExprKind::list:
    case ExprKind::tuple:
      return evaluate_sequence(e);
    case ExprKind::dict:
      return evaluate_dict(e);
    case ExprKind::attribute:
      return get_attribute(*this, evaluate(*e.items[0]), e.name);
    case ExprKind::item:
      return evaluate_item(e);
    case ExprKind::slice:
      return evaluate_slice(e);
    case ExprKind::call:
      return evaluate_call(e, nullptr);
    case ExprKind::filter:
      return evaluate_filter(e, nullptr);
    case ExprKind::test:
      return evaluate_test(e);
    case ExprKind::negate:
    case ExprKind::plus:
      return negate(*this, evaluate(*e.items[0]), e.kind == ExprKind::plus);
    case ExprKind::logical_not:
      return !truth(*this, evaluate(*e.items[0]));
    case ExprKind::arithmetic:
      return evaluate_arithmetic(e);
    case ExprKind::concat:
      return evaluate_concat(e);
    case ExprKind::logical_and:
    case ExprKind::logical_or:
      return evaluate_logic(e);
    case ExprKind::compare:
      return evaluate_compare(e);
    case ExprKind::condition:
      break;
  }
  if (truth(*this, evaluate(*e.items[0]))) return evaluate(*e.items[1]);
  if (e.items[2] != nullptr) return evaluate(*e.items[2]);
  return heap_.undefined(
      "the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::evaluate_name(const Expr& e) {
  for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get())
    if (const Value* value = scope->find(e.name)) return *value;
  Value global = find_global(*this, e.name);
  if (!is_undefined(global)) return global;
  return heap_.undefined(base::cat("'", e.name, "' is undefined"));
}

Value Interpreter::evaluate_sequence(const Expr& e) {
  std::vector<Value> items;
  items.reserve(e.items.size());
  for (const Expr* item : e.items) items.push_back(evaluate(*item));
  return static_cast<Object*>(heap_.list(
      std::move(items), e.kind == ExprKind::list ? ObjectKind::list : ObjectKind::tuple));
}

Value Interpreter::evaluate_dict(const Expr& e) {
  Dict* dict = heap_.make<Dict>();
  for (std::size_t i = 0; i + 1 < e.items.size(); i += 2) {
    const Value key = evaluate(*e.items[i]);
    insert(*this, *dict, key, evaluate(*e.items[i + 1]));
  }
  return static_cast<Object*>(dict);
}

Value Interpreter::evaluate_item(const Expr& e) {
  const Value of = evaluate(*e.items[0]);
  const Expr& key = *e.items[1];
  if (key.kind == ExprKind::slice) {
    SliceBounds bounds{None{}, None{}, None{}};
    if (key.items[0] != nullptr) bounds.start = evaluate(*key.items[0]);
    if (key.items[1] != nullptr) bounds.stop = evaluate(*key.items[1]);
    if (key.items[2] != nullptr) bounds.step = evaluate(*key.items[2]);
    line_ = e.line;
    return get_slice(*this, of, bounds);
  }
  const Value at = evaluate(key);
  line_ = e.line;
  return get_item(*this, of, at);
}

// A slice among several subscripts ("x[1:2, 3]"): no container here takes it.
Value Interpreter::evaluate_slice(const Expr&) {
  throw Fault("a slice among several subscripts is not supported");
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments out;
  for (const Expr* value : arguments.positional) out.positional.push_back(evaluate(*value));
  if (arguments.star != nullptr)
    for (Value& value : items_of(evaluate(*arguments.star)))
      out.positional.push_back(std::move(value));
  for (const auto& [name, value] : arguments.named) out.named.emplace_back(name, evaluate(*value));
  if (arguments.star_star == nullptr) return out;
  const Value more = evaluate(*arguments.star_star);
  const Dict* dict = as_dict(more);
  if (dict == nullptr)
    throw Fault(base::cat("argument after ** must be a mapping, not ", type_name(more)));
  for (const auto& [key, value] : dict->entries) {
    const Text* name = as_text(key);
    if (name == nullptr) throw Fault("keywords must be strings");
    if (out.find(name->bytes) != nullptr)
      throw Fault(base::cat("got multiple values for keyword argument '",
                            base::printable(name->bytes, 40), "'"));
    out.named.emplace_back(name->bytes, value);
  }
  return out;
}

Value Interpreter::evaluate_call(const Expr& e, const Value* caller) {
  const Value callee = evaluate(*e.items[0]);
  Arguments arguments = evaluate_arguments(e.arguments);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  line_ = e.line;
  return call(callee, arguments);
}

Value Interpreter::evaluate_filter(const Expr& e, const Value* subject) {
  const Value value = e.items[0] != nullptr ? evaluate(*e.items[0]) : *subject;
  Arguments arguments = evaluate_arguments(e.arguments);
  line_ = e.line;
  return apply_filter(e.name, value, arguments);
}

// Filters of a filter block: the innermost has no subject of its own.
Value Interpreter::filter_chain(const Expr& e, const Value& subject) {
  const Deeper deeper(*this);
  if (e.items[0] == nullptr) return evaluate_filter(e, &subject);
  const Value value = filter_chain(*e.items[0], subject);
  Arguments arguments = evaluate_arguments(e.arguments);
  line_ = e.line;
  return apply_filter(e.name, value, arguments);
}

Value Interpreter::evaluate_test(const Expr& e) {
  const Value value = evaluate(*e.items[0]);
  Arguments arguments = evaluate_arguments(e.arguments);
  line_ = e.line;
  return apply_test(e.name, value, arguments);
}

Value Interpreter::evaluate_arithmetic(const Expr& e) {
  Value left = evaluate(*e.items[0]);
  for (std::size_t i = 0; i < e.ops.size(); ++i) {
    const Value right = evaluate(*e.items[i + 1]);
    line_ = e.line;
    left = arithmetic(*this, e.ops[i], left, right);
  }
  return left;
}

Value Interpreter::evaluate_concat(const Expr& e) {
  std::vector<Value> values;
  for (const Expr* item : e.items) values.push_back(evaluate(*item));
  line_ = e.line;
  TextBuilder builder;
  for (const Value& value : values) {
    append_text(*this, builder, value);
    heap_.check_text(builder.size());
  }
  return heap_.text(builder);
}

Value Interpreter::evaluate_logic(const Expr& e) {
  const bool stops_at = e.kind == ExprKind::logical_or;
  Value value;
  for (std::size_t i = 0; i < e.items.size(); ++i) {
    value = evaluate(*e.items[i]);
    if (i + 1 < e.items.size() && truth(*this, value) == stops_at) break;
  }
  return value;
}

Value Interpreter::evaluate_compare(const Expr& e) {
  Value left = evaluate(*e.items[0]);
  for (std::size_t i = 0; i < e.ops.size(); ++i) {
    Value right = evaluate(*e.items[i + 1]);
    line_ = e.line;
    if (!compare(*this, e.ops[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

}  // namespace quern::jinja
