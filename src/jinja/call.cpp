#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/interpreter.hpp"
#include "jinja/interpreter_guards.hpp"
#include "jinja/operators.hpp"

namespace quern::jinja {

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  const Deeper deeper(*this);
  heap_.burn(1);
  if (is_undefined(callee)) undefined_used(callee);
  if (const auto* macro = as_kind<Macro>(callee, ObjectKind::macro))
    return call_macro(*macro, arguments);
  if (auto* loop = as_kind<Loop>(callee, ObjectKind::loop)) return call_loop(*loop, arguments);
  if (auto* function = as_kind<Function>(callee, ObjectKind::function))
    return function->body(*this, arguments);
  throw Fault(base::cat("'", type_name(callee), "' object is not callable"));
}

Value Interpreter::call_macro(const Macro& macro, Arguments& arguments) {
  const CallGuard call(*this);
  TextBuilder builder;
  const ScopeGuard scope(*this, macro.where);
  bind_parameters(macro, arguments, *scope_);
  const OutputGuard output(out_, builder);
  execute(*macro.body);
  return heap_.text(builder);
}

// Parameters, then `caller`, `kwargs` and `varargs` where the body uses them, as jinja2's Macro
// does it.
void Interpreter::bind_parameters(const Macro& macro, Arguments& arguments, Scope& scope) {
  const MacroSignature& signature = *macro.signature;
  const std::vector<std::string>& names = signature.parameters;
  const std::string shown = signature.name.empty() ? "None" : base::cat("'", signature.name, "'");
  const std::size_t n_given = std::min(arguments.positional.size(), names.size());
  const std::size_t first_default = names.size() - signature.defaults.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i < n_given) {
      scope.set(names[i], arguments.positional[i]);
    } else if (arguments.find(names[i]) != nullptr) {
      scope.set(names[i], arguments.take(names[i], None{}));
    } else if (i >= first_default) {
      scope.set(names[i], evaluate(*signature.defaults[i - first_default]));
    } else {
      scope.set(names[i],
                heap_.undefined(base::cat("parameter '", names[i], "' was not provided")));
    }
  }
  if (signature.takes_caller && std::find(names.begin(), names.end(), "caller") == names.end())
    scope.set("caller", arguments.take("caller", heap_.undefined("No caller defined")));
  if (signature.takes_kwargs) {
    Dict* kwargs = heap_.make<Dict>();
    for (auto& [name, value] : arguments.named)
      insert(*this, *kwargs, heap_.text(name), std::move(value));
    scope.set("kwargs", static_cast<Object*>(kwargs));
  } else if (!arguments.named.empty()) {
    throw Fault(base::cat("macro ", shown, " takes no keyword argument '",
                          base::printable(arguments.named[0].first, 40), "'"));
  }
  if (signature.takes_varargs) {
    std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(n_given),
                            arguments.positional.end());
    scope.set("varargs", static_cast<Object*>(heap_.list(std::move(rest), ObjectKind::tuple)));
  } else if (arguments.positional.size() > names.size()) {
    throw Fault(base::cat("macro ", shown, " takes not more than ", names.size(), " argument(s)"));
  }
}

// loop(items) in a recursive loop: the same block over other items, as text.
Value Interpreter::call_loop(Loop& loop, Arguments& arguments) {
  if (loop.statement == nullptr)
    throw Fault("the loop must have the 'recursive' marker to be called recursively");
  const CallGuard call(*this);
  arguments.only("loop", 1, 1);
  TextBuilder builder;
  const ScopeGuard scope(*this, loop.where);
  const OutputGuard output(out_, builder);
  execute_for(*loop.statement, arguments.positional[0], loop.depth + 1);
  return heap_.text(builder);
}

Value Interpreter::apply_filter(std::string_view name, const Value& subject, Arguments& arguments) {
  const Deeper deeper(*this);
  heap_.burn(1);
  const Filter* filter = find_filter(name);
  if (filter == nullptr) {
    const std::string near = base::nearest(name, filter_names());
    throw Fault(base::cat("unknown filter '", base::printable(name, 40), "'",
                          near.empty() ? "" : base::cat(", did you mean '", near, "'?")));
  }
  return filter->run(*this, subject, arguments);
}

bool Interpreter::apply_test(std::string_view name, const Value& subject, Arguments& arguments) {
  const Deeper deeper(*this);
  heap_.burn(1);
  const Test* test = find_test(name);
  if (test == nullptr) {
    const std::string near = base::nearest(name, test_names());
    throw Fault(base::cat("unknown test '", base::printable(name, 40), "'",
                          near.empty() ? "" : base::cat(", did you mean '", near, "'?")));
  }
  return test->run(*this, subject, arguments);
}

}  // namespace quern::jinja
