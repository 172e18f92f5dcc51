#include <algorithm>

#include "base/strings.hpp"
#include "jinja/parser.hpp"

namespace quern::jinja {

namespace {

constexpr std::string_view kRefused[] = {"include", "import", "from", "extends"};

}  // namespace

const Statement* Parser::parse_statement() {
  if (current().kind != TokenKind::name) unexpected("the name of a statement");
  const std::string word = current().text;
  if (word == "for") return parse_for();
  if (word == "if") return parse_if();
  if (word == "set") return parse_set();
  if (word == "macro") return parse_macro();
  if (word == "call") return parse_call_block();
  if (word == "filter") return parse_filter_block();
  if (word == "with") return parse_with();
  if (word == "block") return parse_block();
  if (word == "print") return parse_print();
  if (word == "generation") return parse_generation();
  if (word == "break") return parse_loop_control(StatementKind::break_loop);
  if (word == "continue") return parse_loop_control(StatementKind::continue_loop);
  if (std::find(std::begin(kRefused), std::end(kRefused), word) != std::end(kRefused))
    fail(base::cat("'", word, "' is not supported: a chat template is one text"));
  fail(base::cat("unknown statement '", base::printable(word, 40), "'"));
}

const Statement* Parser::parse_for() {
  Statement* out = statement(StatementKind::for_loop, take().line);
  out->targets.push_back(parse_target(false, true));
  if (!skip_name("in")) unexpected("'in'");
  out->expressions.push_back(tuple_or_expression(false, "recursive"));
  if (skip_name("if")) out->test = expression();
  out->recursive = skip_name("recursive");
  ++loops_;
  out->body = statements({"endfor", "else"});
  --loops_;
  if (take().text == "else") {
    out->otherwise = statements({"endfor"});
    ++at_;
  }
  return out;
}

const Statement* Parser::parse_if() {
  Statement* out = statement(StatementKind::if_chain, current().line);
  for (;;) {
    const std::string word = take().text;  // if, elif, else, endif
    if (word == "endif") return out;
    Branch branch{nullptr, {}};
    if (word == "else") {
      branch.body = statements({"endif"});
    } else {
      branch.test = tuple_or_expression(false);
      branch.body = statements({"elif", "else", "endif"});
    }
    out->branches.push_back(std::move(branch));
  }
}

const Statement* Parser::parse_set() {
  const int line = take().line;
  Target target = parse_target(true, false);
  Statement* out = statement(StatementKind::set, line);
  out->targets.push_back(std::move(target));
  if (skip_op("=")) {
    out->expressions.push_back(tuple_or_expression(true));
    return out;
  }
  out->kind = StatementKind::set_block;
  const Expr* filtered = nullptr;  // the head of its chain has no subject
  while (skip_op("|")) filtered = filter(filtered);
  if (filtered != nullptr) out->expressions.push_back(filtered);
  out->body = statements({"endset"});
  ++at_;
  return out;
}

void Parser::parse_signature(MacroSignature& signature) {
  expect_op("(");
  while (!current().is_op(")")) {
    if (!signature.parameters.empty()) expect_op(",");
    signature.parameters.push_back(expect_name());
    if (skip_op("=")) {
      signature.defaults.push_back(expression());
    } else if (!signature.defaults.empty()) {
      fail("non-default argument follows default argument");
    }
  }
  expect_op(")");
}

Body Parser::macro_body(MacroSignature& signature, std::string_view end) {
  const int loops = loops_;
  loops_ = 0;
  macros_.push_back(&signature);
  Body body = statements({end});
  macros_.pop_back();
  loops_ = loops;
  ++at_;
  return body;
}

const Statement* Parser::parse_macro() {
  Statement* out = statement(StatementKind::macro, take().line);
  out->signature.name = expect_name();
  parse_signature(out->signature);
  out->body = macro_body(out->signature, "endmacro");
  return out;
}

const Statement* Parser::parse_call_block() {
  Statement* out = statement(StatementKind::call_block, take().line);
  if (current().is_op("(")) parse_signature(out->signature);
  out->expressions.push_back(expression());
  if (out->expressions[0]->kind != ExprKind::call) fail("expected a call");
  out->body = macro_body(out->signature, "endcall");
  return out;
}

const Statement* Parser::parse_filter_block() {
  Statement* out = statement(StatementKind::filter_block, take().line);
  const Expr* filtered = filter(nullptr);
  while (skip_op("|")) filtered = filter(filtered);
  out->expressions.push_back(filtered);
  out->body = statements({"endfilter"});
  ++at_;
  return out;
}

const Statement* Parser::parse_with() {
  Statement* out = statement(StatementKind::with, take().line);
  while (current().kind != TokenKind::block_end && !current().is_op(":")) {
    if (!out->targets.empty()) expect_op(",");
    out->targets.push_back(parse_target(false, false));
    expect_op("=");
    out->expressions.push_back(expression());
  }
  out->body = statements({"endwith"});
  ++at_;
  return out;
}

// Without inheritance a block is its body.
const Statement* Parser::parse_block() {
  Statement* out = statement(StatementKind::scope, take().line);
  const std::string name = expect_name();
  skip_name("scoped");
  skip_name("required");
  const int loops = loops_;
  loops_ = 0;
  out->body = statements({"endblock"});
  loops_ = loops;
  ++at_;
  skip_name(name);
  return out;
}

const Statement* Parser::parse_print() {
  Statement* out = statement(StatementKind::output, take().line);
  while (current().kind != TokenKind::block_end) {
    if (!out->expressions.empty()) expect_op(",");
    out->expressions.push_back(expression());
  }
  return out;
}

// {% generation %}: marks what training learns; here its body, in a scope of its own.
const Statement* Parser::parse_generation() {
  Statement* out = statement(StatementKind::scope, take().line);
  const int loops = loops_;
  loops_ = 0;
  out->body = statements({"endgeneration"});
  loops_ = loops;
  ++at_;
  return out;
}

const Statement* Parser::parse_loop_control(StatementKind kind) {
  const Token word = take();
  if (loops_ == 0) fail(base::cat("'", word.text, "' outside loop"));
  return statement(kind, word.line);
}

Target Parser::target_of(const Expr* expression, bool namespaces) {
  Target out;
  if (expression->kind == ExprKind::name) {
    out.name = expression->name;
  } else if (namespaces && expression->kind == ExprKind::attribute &&
             expression->items[0]->kind == ExprKind::name) {
    out.name = expression->items[0]->name;
    out.attribute = expression->name;
  } else if (expression->kind == ExprKind::tuple) {
    for (const Expr* item : expression->items) out.parts.push_back(target_of(item, namespaces));
    if (out.parts.empty()) fail("cannot assign to an empty tuple");
  } else {
    fail("cannot assign to this expression");
  }
  return out;
}

// Names separated by commas; a name may be `namespace.attribute`.
Target Parser::parse_target(bool namespaces, bool until_in) {
  std::vector<Target> parts;
  bool is_tuple = false;
  for (;;) {
    if (current().kind == TokenKind::block_end || (until_in && current().is_name("in"))) break;
    const Token first = current();
    const Expr* part = primary();
    if (namespaces && part->kind == ExprKind::name && current().is_op(".")) {
      ++at_;
      Target reference;
      reference.name = first.text;
      reference.attribute = expect_name();
      parts.push_back(std::move(reference));
    } else {
      parts.push_back(target_of(part, namespaces));
    }
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (parts.empty()) unexpected("a name to assign to");
  if (!is_tuple) return std::move(parts[0]);
  Target out;
  out.parts = std::move(parts);
  return out;
}

}  // namespace quern::jinja
