#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/interpreter.hpp"
#include "jinja/interpreter_guards.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement* statement : body) {
    const Flow flow = execute(*statement);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Deeper deeper(*this);
  heap_.burn(1);
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::output:
      execute_output(statement);
      break;
    case StatementKind::if_chain:
      return execute_if(statement);
    case StatementKind::for_loop: {
      const Value iterable = evaluate(*statement.expressions[0]);
      execute_for(statement, iterable, 1);
      break;
    }
    case StatementKind::set:
      assign(statement.targets[0], evaluate(*statement.expressions[0]));
      break;
    case StatementKind::set_block:
      execute_set_block(statement);
      break;
    case StatementKind::macro:
      scope_->set(statement.signature.name,
                  heap_.make<Macro>(&statement.signature, &statement.body, scope_));
      break;
    case StatementKind::call_block:
      execute_call_block(statement);
      break;
    case StatementKind::filter_block:
      execute_filter_block(statement);
      break;
    case StatementKind::with:
      execute_with(statement);
      break;
    case StatementKind::scope: {
      const ScopeGuard scope(*this, scope_);
      execute(statement.body);
      break;
    }
    case StatementKind::break_loop:
      return Flow::break_loop;
    case StatementKind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::normal;
}

void Interpreter::check_output() {
  heap_.check_text(out_->size());
}

void Interpreter::write(const Value& value) {
  const std::size_t before = out_->size();
  append_text(*this, *out_, value);
  heap_.burn_bytes(out_->size() - before);
  check_output();
}

void Interpreter::execute_output(const Statement& statement) {
  for (const Expr* expression : statement.expressions) {
    if (expression->kind == ExprKind::constant)
      write(expression->value);
    else
      write(evaluate(*expression));
  }
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  for (const Branch& branch : statement.branches)
    if (branch.test == nullptr || truth(*this, evaluate(*branch.test))) return execute(branch.body);
  return Flow::normal;
}

// for ... if: the items that pass, tested one by one as the loop asks for them.
Value Interpreter::filtered_items(const Statement& statement, const Value& iterable) {
  auto cursor = std::make_shared<Cursor>(*this, iterable);
  return heap_.make<Iterator>([this, cursor, &statement, where = scope_](Value& out) {
    while (cursor->next(out)) {
      const ScopeGuard scope(*this, where);
      assign(statement.targets[0], out);
      if (truth(*this, evaluate(*statement.test))) return true;
    }
    return false;
  });
}

void Interpreter::execute_for(const Statement& statement, const Value& iterable,
                              std::int64_t depth) {
  const std::shared_ptr<Scope> outer = scope_;
  const Value items = statement.test != nullptr ? filtered_items(statement, iterable) : iterable;
  Loop* loop = heap_.make<Loop>(Cursor(*this, items), items);
  loop->depth = depth;
  loop->where = outer;
  if (statement.recursive) loop->statement = &statement;
  const bool any = loop_items(statement, *loop, outer);
  if (!any && !statement.otherwise.empty()) {
    const ScopeGuard scope(*this, outer);
    execute(statement.otherwise);
  }
}

// Whether the body came to its end for some item. As in the reference, `else` runs only when it never did: a
// first item left by break counts as none.
bool Interpreter::loop_items(const Statement& statement, Loop& loop,
                             const std::shared_ptr<Scope>& outer) {
  bool any = false;
  Value item;
  try {
    while (loop.advance(item)) {
      const ScopeGuard scope(*this, outer);
      assign(statement.targets[0], item);
      scope_->set("loop", static_cast<Object*>(&loop));
      const Flow flow = execute(statement.body);
      if (flow == Flow::break_loop) break;
      any = any || flow == Flow::normal;
    }
  } catch (const Fault&) {
    blame(item);
    throw;
  }
  return any;
}

void Interpreter::execute_with(const Statement& statement) {
  std::vector<Value> values;
  for (const Expr* expression : statement.expressions) values.push_back(evaluate(*expression));
  const ScopeGuard scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(statement.targets[i], values[i]);
  execute(statement.body);
}

TextRef Interpreter::capture(const Body& body) {
  TextBuilder builder;
  const ScopeGuard scope(*this, scope_);
  const OutputGuard output(out_, builder);
  execute(body);
  return heap_.text(builder);
}

void Interpreter::execute_set_block(const Statement& statement) {
  Value value = capture(statement.body);
  if (!statement.expressions.empty()) value = filter_chain(*statement.expressions[0], value);
  assign(statement.targets[0], value);
}

void Interpreter::execute_filter_block(const Statement& statement) {
  const Value text = capture(statement.body);
  write(filter_chain(*statement.expressions[0], text));
}

void Interpreter::execute_call_block(const Statement& statement) {
  const Value caller =
      static_cast<Object*>(heap_.make<Macro>(&statement.signature, &statement.body, scope_));
  write(evaluate_call(*statement.expressions[0], &caller));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) return assign_parts(target, value);
  if (target.attribute.empty()) return scope_->set(target.name, value);
  for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    const Value* known = scope->find(target.name);
    if (known == nullptr) continue;
    auto* space = as_kind<Namespace>(*known, ObjectKind::name_space);
    if (space == nullptr) break;
    if (target.attribute[0] == '_')
      throw Fault(base::cat("a namespace cannot store the attribute '", target.attribute,
                            "': it begins with _"));
    for (auto& [name, old] : space->attributes)
      if (name == target.attribute) {
        old = value;
        return;
      }
    heap_.charge(64);
    space->attributes.emplace_back(target.attribute, value);
    return;
  }
  throw Fault(base::cat("cannot assign attribute on non-namespace object '", target.name, "'"));
}

void Interpreter::assign_parts(const Target& target, const Value& value) {
  if (as_object(value) == nullptr && as_text(value) == nullptr && !is_undefined(value))
    throw Fault(base::cat("cannot unpack non-iterable ", type_name(value), " object"));
  const std::vector<Value> items = items_of(value);
  if (items.size() != target.parts.size())
    throw Fault(base::cat(items.size() < target.parts.size() ? "not enough" : "too many",
                          " values to unpack (expected ", target.parts.size(), ", got ",
                          items.size(), ")"));
  for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
}

}  // namespace quern::jinja
