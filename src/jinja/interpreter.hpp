// One rendering: runs a program over its variables. Statements in execute.cpp, expressions in
// evaluate.cpp, calls in call.cpp; what values can do is in operators.hpp, access.hpp and the
// tables of builtins.hpp.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/arguments.hpp"
#include "jinja/ast.hpp"
#include "jinja/heap.hpp"
#include "jinja/stack_guard.hpp"
#include "jinja/template.hpp"

namespace quern::jinja {

// Names of one block. Macros keep the scope they were made in.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> names;

  Value* find(std::string_view name);  // here only
  void set(std::string_view name, Value value);
};

struct Macro final : Object {
  Macro(const MacroSignature* s, const Body* b, std::shared_ptr<Scope> w)
      : Object(ObjectKind::macro), signature(s), body(b), where(std::move(w)) {}
  const MacroSignature* signature;
  const Body* body;
  std::shared_ptr<Scope> where;
};

// Gives the items of a value one by one; the object behind it must be alive.
class Cursor {
 public:
  Cursor(Interpreter& run, const Value& value);  // a Fault when it cannot be iterated
  bool next(Value& out);

 private:
  Interpreter* run_;
  Value value_;
  std::size_t at_ = 0;
};

// The `loop` of a for block.
struct Loop final : Object {
  Loop(Cursor c, Value i)
      : Object(ObjectKind::loop), cursor(std::move(c)), iterated(std::move(i)) {}
  bool advance(Value& out);  // next item
  const Value* peek();       // the item after the current one; null at the end
  std::int64_t length(Interpreter& run);

  Cursor cursor;
  Value iterated;
  std::int64_t index0 = -1;
  std::int64_t depth = 1;
  bool has_before = false, has_after = false, ended = false;
  Value before, current, after;
  std::int64_t known_length = -1;
  std::vector<Value> changed_value;  // of loop.changed()
  bool changed_before = false;
  const Statement* statement = nullptr;  // when it is recursive
  std::shared_ptr<Scope> where;
};

class Interpreter {
 public:
  Interpreter(const Program& program, const Template::Variables& variables,
              const RenderOptions& options);
  base::MarkedText render();  // throws Fault

  Heap& heap() { return heap_; }
  const std::tm& now() const { return options_.now; }
  int line() const { return line_; }
  const std::string& blamed_item() const {
    return blame_;
  }  // "messages[3]"; "" when no loop was at one

  // What filters, tests and functions need of it.
  Value call(const Value& callee, Arguments& arguments);
  Value apply_filter(std::string_view name, const Value& subject, Arguments& arguments);
  bool apply_test(std::string_view name, const Value& subject, Arguments& arguments);
  std::vector<Value> items_of(const Value& iterable);
  [[noreturn]] void undefined_used(const Value& value) const;

  // Counts recursion of any kind while it lives.
  class Deeper {
   public:
    explicit Deeper(Interpreter& run) {
      if (run.stack_.exhausted()) too_deep();
    }

   private:
    [[noreturn]] static void too_deep();
  };

 private:
  friend class Cursor;
  enum class Flow { normal, break_loop, continue_loop };
  class ScopeGuard;
  class CallGuard;

  Value from_data(const Data& data);

  // execute.cpp
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  void execute_output(const Statement& statement);
  Flow execute_if(const Statement& statement);
  void execute_for(const Statement& statement, const Value& iterable, std::int64_t depth);
  void blame(const Value& item);
  bool loop_items(const Statement& statement, Loop& loop, const std::shared_ptr<Scope>& outer);
  Value filtered_items(const Statement& statement, const Value& iterable);
  void execute_with(const Statement& statement);
  void execute_set_block(const Statement& statement);
  void execute_filter_block(const Statement& statement);
  void execute_call_block(const Statement& statement);
  void assign(const Target& target, const Value& value);
  void assign_parts(const Target& target, const Value& value);
  TextRef capture(const Body& body);  // what it prints, in a scope of its own
  void write(const Value& value);
  void check_output();

  // evaluate.cpp
  Value evaluate(const Expr& e);
  Value evaluate_name(const Expr& e);
  Value evaluate_sequence(const Expr& e);
  Value evaluate_dict(const Expr& e);
  Value evaluate_item(const Expr& e);
  Value evaluate_slice(const Expr& e);
  Value evaluate_filter(const Expr& e, const Value* subject);
  Value evaluate_test(const Expr& e);
  Value evaluate_arithmetic(const Expr& e);
  Value evaluate_concat(const Expr& e);
  Value evaluate_logic(const Expr& e);
  Value evaluate_compare(const Expr& e);
  Value evaluate_call(const Expr& e, const Value* caller);
  Arguments evaluate_arguments(const CallArguments& arguments);
  Value filter_chain(const Expr& e, const Value& subject);

  // call.cpp
  Value call_macro(const Macro& macro, Arguments& arguments);
  void bind_parameters(const Macro& macro, Arguments& arguments, Scope& scope);
  Value call_loop(Loop& loop, Arguments& arguments);

  const RenderOptions& options_;
  const Program& program_;
  Heap heap_;
  StackGuard stack_;
  std::shared_ptr<Scope> scope_;
  std::shared_ptr<Scope> root_;
  TextBuilder* out_ = nullptr;
  const List* blamed_ = nullptr;  // RenderOptions::blamed
  std::string blame_;             // its item that the innermost loop was at when a Fault passed
  int call_depth_ = 0;
  int line_ = 1;
};

}  // namespace quern::jinja
