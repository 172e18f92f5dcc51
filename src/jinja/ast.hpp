// A parsed template. Nodes belong to the program, which frees them one by one: no depth of nesting
// is ever taken apart recursively.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jinja/value.hpp"

namespace quern::jinja {

enum class ExprKind {
  constant,  // value
  name,      // name
  list,
  tuple,
  dict,       // items (dict: key, value, key, value)
  attribute,  // items[0].name
  item,       // items[0][items[1]]
  slice,      // items: start, stop, step, null where absent
  call,       // items[0](arguments)
  filter,     // items[0]|name(arguments); items[0] is null at the head of a filter block
  test,       // items[0] is name(arguments)
  negate,
  plus,
  logical_not,  // items[0]
  arithmetic,   // items[0] ops[0] items[1] ops[1] ... from the left
  concat,       // items joined by ~
  logical_and,
  logical_or,  // items
  compare,     // items[0] ops[0] items[1] ops[1] ...
  condition,   // items: test, then, else (null when absent)
};

enum class Op { add, sub, mul, div, floor_div, mod, pow, eq, ne, lt, le, gt, ge, in, not_in };

struct Expr;

struct CallArguments {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string, const Expr*>> named;
  const Expr* star = nullptr;       // *expression
  const Expr* star_star = nullptr;  // **expression
};

struct Expr {
  ExprKind kind;
  int line;
  std::string name;
  Value value;
  std::vector<const Expr*> items;
  std::vector<Op> ops;
  CallArguments arguments;
};

enum class StatementKind {
  output,  // expressions, printed one after the other; literal text is a constant
  for_loop,
  if_chain,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with,
  scope,
  break_loop,
  continue_loop
};

struct Statement;
using Body = std::vector<const Statement*>;

// What `set`, `for` and `with` assign to.
struct Target {
  std::string name;  // a name; with `attribute`, of a namespace
  std::string attribute;
  std::vector<Target> parts;  // a tuple
};

struct MacroSignature {
  std::string name;  // empty: the body of a call block
  std::vector<std::string> parameters;
  std::vector<const Expr*> defaults;  // of the last parameters
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
};

struct Branch {
  const Expr* test;  // null for else
  Body body;
};

struct Statement {
  StatementKind kind;
  int line;
  std::vector<const Expr*>
      expressions;              // output; set: value; for: what is iterated; call and filter block
  std::vector<Target> targets;  // set, set_block, for: one; with: several
  const Expr* test = nullptr;   // for ... if
  bool recursive = false;
  Body body, otherwise;  // for ... else
  std::vector<Branch> branches;
  MacroSignature signature;
};

struct Program {
  Body body;
  std::vector<std::unique_ptr<Expr>> expressions;
  std::vector<std::unique_ptr<Statement>> statements;
};

}  // namespace quern::jinja
