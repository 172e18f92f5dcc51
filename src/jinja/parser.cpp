#include "jinja/parser.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace quern::jinja {

Parser::Parser(std::vector<Token> tokens, const Limits& limits)
    : tokens_(std::move(tokens)), limits_(limits), program_(std::make_unique<Program>()) {}

std::unique_ptr<Program> Parser::run() {
  program_->body = body_until({});
  return std::move(program_);
}

Parser::Depth::Depth(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > parser_.limits_.parse_depth || parser_.stack_.exhausted()) {
    --parser_.depth_;
    parser_.fail(
        base::cat("nested too deeply, more than ", parser_.limits_.parse_depth, " levels"));
  }
}

Token Parser::take() {
  Token token = current();
  if (token.kind != TokenKind::end) ++at_;
  return token;
}

bool Parser::skip_op(std::string_view op) {
  if (!current().is_op(op)) return false;
  ++at_;
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  ++at_;
  return true;
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) unexpected(base::cat("'", op, "'"));
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::name) unexpected("a name");
  return take().text;
}

void Parser::expect_block_end() {
  if (current().kind != TokenKind::block_end) unexpected("'%}'");
  ++at_;
}

void Parser::fail(const std::string& what) const {
  throw SyntaxFault{current().line, what};
}

void Parser::unexpected(std::string_view expected) const {
  const Token& token = current();
  std::string got;
  switch (token.kind) {
    case TokenKind::end:
      got = "the end of the template";
      break;
    case TokenKind::variable_end:
      got = "'}}'";
      break;
    case TokenKind::block_end:
      got = "'%}'";
      break;
    default:
      got = base::cat("'", base::printable(token.text, 40), "'");
  }
  fail(base::cat("unexpected ", got, expected.empty() ? "" : base::cat(", expected ", expected)));
}

Expr* Parser::node(ExprKind kind, int line) {
  program_->expressions.push_back(std::make_unique<Expr>());
  Expr* out = program_->expressions.back().get();
  out->kind = kind;
  out->line = line;
  return out;
}

Statement* Parser::statement(StatementKind kind, int line) {
  program_->statements.push_back(std::make_unique<Statement>());
  Statement* out = program_->statements.back().get();
  out->kind = kind;
  out->line = line;
  return out;
}

void Parser::append_output(Body& body, const Expr* expression) {
  Statement* output = statement(StatementKind::output, expression->line);
  output->expressions.push_back(expression);
  body.push_back(output);
}

Body Parser::body_until(const std::vector<std::string_view>& ends) {
  const Depth depth(*this);
  Body body;
  for (;;) {
    const Token& token = current();
    if (token.kind == TokenKind::end) {
      if (!ends.empty())
        fail(base::cat("unexpected end of the template, expected '", base::join(ends, "' or '"),
                       "'"));
      return body;
    }
    if (token.kind == TokenKind::data) {
      Expr* constant = node(ExprKind::constant, token.line);
      constant->value = std::make_shared<const Text>(token.text);
      ++at_;
      append_output(body, constant);
    } else if (token.kind == TokenKind::variable_begin) {
      ++at_;
      append_output(body, tuple_or_expression(true));
      if (current().kind != TokenKind::variable_end) unexpected("'}}'");
      ++at_;
    } else {
      ++at_;  // block_begin
      if (current().kind == TokenKind::name &&
          std::find(ends.begin(), ends.end(), current().text) != ends.end())
        return body;
      body.push_back(parse_statement());
      expect_block_end();
    }
  }
}

Body Parser::statements(const std::vector<std::string_view>& ends) {
  skip_op(":");
  expect_block_end();
  return body_until(ends);
}

}  // namespace quern::jinja
