// Tokens to a program, as jinja2's parser reads them. Recursive descent; depth is counted.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "jinja/ast.hpp"
#include "jinja/lexer.hpp"
#include "jinja/limits.hpp"
#include "jinja/stack_guard.hpp"

namespace quern::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, const Limits& limits);
  std::unique_ptr<Program> run();  // throws SyntaxFault

 private:
  class Depth;  // counts one level of nesting while it lives

  // parser.cpp: tokens, nodes, bodies
  const Token& current() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take();
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect_block_end();
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void unexpected(std::string_view expected = {}) const;
  Expr* node(ExprKind kind, int line);
  Statement* statement(StatementKind kind, int line);
  Body body_until(const std::vector<std::string_view>& ends);  // stops at the end's name
  Body statements(const std::vector<std::string_view>& ends);  // after a tag's head
  void append_output(Body& body, const Expr* expression);

  // parser_statements.cpp
  const Statement* parse_statement();
  const Statement* parse_for();
  const Statement* parse_if();
  const Statement* parse_set();
  const Statement* parse_macro();
  const Statement* parse_call_block();
  const Statement* parse_filter_block();
  const Statement* parse_with();
  const Statement* parse_block();
  const Statement* parse_print();
  const Statement* parse_generation();
  const Statement* parse_loop_control(StatementKind kind);
  void parse_signature(MacroSignature& signature);
  Body macro_body(MacroSignature& signature, std::string_view end);
  Target parse_target(bool namespaces, bool until_in);
  Target target_of(const Expr* expression, bool namespaces);

  // parser_expressions.cpp
  const Expr* expression();  // with `if`
  const Expr* tuple_or_expression(bool conditions, std::string_view end_name = {},
                                  bool parenthesized = false);
  bool tuple_ends(std::string_view end_name) const;
  const Expr* binary(int least);
  const Expr* chain(const Expr* left, int level);
  const Expr* unary(bool filters);
  const Expr* primary();
  const Expr* postfix(const Expr* expression, bool filters);
  const Expr* subscript(const Expr* of);
  const Expr* subscript_item();
  const Expr* slice_rest(const Expr* first, int line);
  const Expr* filter(const Expr* of);
  const Expr* test(const Expr* of);
  const Expr* string_literal();
  const Expr* number();
  const Expr* list();
  const Expr* dict();
  void call_arguments(CallArguments& arguments);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Limits limits_;
  StackGuard stack_;
  int depth_ = 0;
  int loops_ = 0;                        // `break` has a loop to leave
  std::vector<MacroSignature*> macros_;  // around the place
  std::unique_ptr<Program> program_;
};

class Parser::Depth {
 public:
  explicit Depth(Parser& parser);
  ~Depth() { --parser_.depth_; }

 private:
  Parser& parser_;
};

}  // namespace quern::jinja
