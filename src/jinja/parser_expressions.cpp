#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/strings.hpp"
#include "jinja/parser.hpp"

namespace quern::jinja {

namespace {

// Levels of binary operators, from the loosest.
enum Level { kOr = 1, kAnd, kNot, kCompare, kSum, kConcat, kProduct, kPower };

struct Operator {
  std::string_view text;
  Level level;
  Op op;
};
constexpr Operator kOperators[] = {
    {"==", kCompare, Op::eq}, {"!=", kCompare, Op::ne}, {"<", kCompare, Op::lt},
    {"<=", kCompare, Op::le}, {">", kCompare, Op::gt},  {">=", kCompare, Op::ge},
    {"+", kSum, Op::add},     {"-", kSum, Op::sub},     {"~", kConcat, Op::add},
    {"*", kProduct, Op::mul}, {"/", kProduct, Op::div}, {"//", kProduct, Op::floor_div},
    {"%", kProduct, Op::mod}, {"**", kPower, Op::pow}};

// The operator at the token; level 0 for none. `not in` counts as one.
Operator operator_at(const Token& token, const Token& after) {
  if (token.kind == TokenKind::op) {
    for (const Operator& entry : kOperators)
      if (entry.text == token.text) return entry;
  } else if (token.kind == TokenKind::name) {
    if (token.text == "or") return {"or", kOr, Op::eq};
    if (token.text == "and") return {"and", kAnd, Op::eq};
    if (token.text == "in") return {"in", kCompare, Op::in};
    if (token.text == "not" && after.is_name("in")) return {"not in", kCompare, Op::not_in};
  }
  return {"", Level{}, Op::eq};
}

}  // namespace

// Every way into a deeper expression leads through binary() or counts itself.
const Expr* Parser::expression() {
  const Expr* value = binary(kOr);
  while (current().is_name("if")) {
    const Depth depth(*this);
    Expr* out = node(ExprKind::condition, take().line);
    const Expr* test = binary(kOr);
    out->items = {test, value, skip_name("else") ? expression() : nullptr};
    value = out;
  }
  return value;
}

const Expr* Parser::binary(int least) {
  const Depth depth(*this);
  const Expr* left = nullptr;
  if (least <= kNot && current().is_name("not")) {
    Expr* out = node(ExprKind::logical_not, take().line);
    out->items = {binary(kNot)};
    left = out;
  } else {
    left = unary(true);
  }
  for (;;) {
    const int level = operator_at(current(), after()).level;
    if (level == 0 || level < least) return left;
    left = chain(left, level);
  }
}

// left and all that follows at this level: one node, so that long sums take no depth.
const Expr* Parser::chain(const Expr* left, int level) {
  const ExprKind kind = level == kOr        ? ExprKind::logical_or
                        : level == kAnd     ? ExprKind::logical_and
                        : level == kCompare ? ExprKind::compare
                        : level == kConcat  ? ExprKind::concat
                                            : ExprKind::arithmetic;
  Expr* out = node(kind, current().line);
  out->items.push_back(left);
  for (;;) {
    const Operator found = operator_at(current(), after());
    if (found.level != level) return out;
    at_ += found.op == Op::not_in ? 2 : 1;
    out->ops.push_back(found.op);
    out->items.push_back(binary(level + 1));
  }
}

const Expr* Parser::unary(bool filters) {
  if (!current().is_op("-") && !current().is_op("+")) return postfix(primary(), filters);
  const Depth depth(*this);
  Expr* out = node(current().is_op("-") ? ExprKind::negate : ExprKind::plus, current().line);
  ++at_;
  out->items = {unary(false)};
  return postfix(out, filters);
}

bool Parser::tuple_ends(std::string_view end_name) const {
  const Token& token = current();
  return token.kind == TokenKind::variable_end || token.kind == TokenKind::block_end ||
         token.is_op(")") || (!end_name.empty() && token.is_name(end_name));
}

const Expr* Parser::tuple_or_expression(bool conditions, std::string_view end_name,
                                        bool parenthesized) {
  const int line = current().line;
  std::vector<const Expr*> items;
  bool is_tuple = false;
  for (;;) {
    if (tuple_ends(end_name)) break;
    items.push_back(conditions ? expression() : binary(kOr));
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!parenthesized) unexpected("an expression");
  }
  Expr* out = node(ExprKind::tuple, line);
  out->items = std::move(items);
  return out;
}

const Expr* Parser::string_literal() {
  Expr* out = node(ExprKind::constant, current().line);
  std::string text;
  while (current().kind == TokenKind::string) text += take().text;
  out->value = std::make_shared<const Text>(std::move(text));
  return out;
}

const Expr* Parser::number() {
  const Token token = take();
  Expr* out = node(ExprKind::constant, token.line);
  if (token.kind == TokenKind::real) {
    out->value = std::strtod(token.text.c_str(), nullptr);
    return out;
  }
  errno = 0;
  const char* digits = token.text.c_str();
  int base = 10;
  if (token.text.size() > 2 && token.text[0] == '0' && (token.text[1] | 32) > '9') {
    base = (token.text[1] | 32) == 'b' ? 2 : (token.text[1] | 32) == 'o' ? 8 : 16;
    digits += 2;
  }
  out->value = static_cast<std::int64_t>(std::strtoll(digits, nullptr, base));
  if (errno == ERANGE) throw SyntaxFault{token.line, base::cat("integer overflow: ", token.text)};
  return out;
}

const Expr* Parser::primary() {
  const Token& token = current();
  if (token.kind == TokenKind::string) return string_literal();
  if (token.kind == TokenKind::integer || token.kind == TokenKind::real) return number();
  if (token.is_op("[")) return list();
  if (token.is_op("{")) return dict();
  if (token.is_op("(")) {
    ++at_;
    const Expr* out = tuple_or_expression(true, {}, true);
    expect_op(")");
    return out;
  }
  if (token.kind != TokenKind::name) unexpected("an expression");
  const Token word = take();
  const std::string& text = word.text;
  const bool truth = text == "true" || text == "True";
  if (truth || text == "false" || text == "False" || text == "none" || text == "None") {
    Expr* out = node(ExprKind::constant, word.line);
    if (text == "none" || text == "None")
      out->value = None{};
    else
      out->value = truth;
    return out;
  }
  Expr* out = node(ExprKind::name, word.line);
  out->name = text;
  for (MacroSignature* macro : macros_) {
    macro->takes_varargs |= text == "varargs";
    macro->takes_kwargs |= text == "kwargs";
    macro->takes_caller |= text == "caller";
  }
  return out;
}

const Expr* Parser::list() {
  Expr* out = node(ExprKind::list, take().line);
  while (!current().is_op("]")) {
    if (!out->items.empty()) expect_op(",");
    if (current().is_op("]")) break;
    out->items.push_back(expression());
  }
  expect_op("]");
  return out;
}

const Expr* Parser::dict() {
  Expr* out = node(ExprKind::dict, take().line);
  while (!current().is_op("}")) {
    if (!out->items.empty()) expect_op(",");
    if (current().is_op("}")) break;
    out->items.push_back(expression());
    expect_op(":");
    out->items.push_back(expression());
  }
  expect_op("}");
  return out;
}

// .name [item] (call), and with `filters` |filter and `is test`, in the order of jinja2.
const Expr* Parser::postfix(const Expr* of, bool filters) {
  bool filtering = false;
  for (int links = 0;; ++links) {
    if (links >= limits_.parse_depth)
      fail(base::cat("nested too deeply: a chain of more than ", limits_.parse_depth, " links"));
    const Token& token = current();
    if (!filtering && (token.is_op(".") || token.is_op("["))) {
      of = subscript(of);
    } else if (token.is_op("(")) {
      Expr* out = node(ExprKind::call, token.line);
      out->items = {of};
      call_arguments(out->arguments);
      of = out;
    } else if (filters && token.is_op("|")) {
      ++at_;
      filtering = true;
      of = filter(of);
    } else if (filters && token.is_name("is")) {
      filtering = true;
      of = test(of);
    } else {
      return of;
    }
  }
}

const Expr* Parser::subscript(const Expr* of) {
  const int line = current().line;
  if (skip_op(".")) {
    if (current().kind == TokenKind::integer) {
      Expr* out = node(ExprKind::item, line);
      out->items = {of, number()};
      return out;
    }
    Expr* out = node(ExprKind::attribute, line);
    out->items = {of};
    out->name = expect_name();
    return out;
  }
  expect_op("[");
  std::vector<const Expr*> items;
  while (!current().is_op("]")) {
    if (!items.empty()) expect_op(",");
    items.push_back(subscript_item());
  }
  expect_op("]");
  Expr* out = node(ExprKind::item, line);
  if (items.size() == 1) {
    out->items = {of, items[0]};
  } else {
    Expr* tuple = node(ExprKind::tuple, line);
    tuple->items = std::move(items);
    out->items = {of, tuple};
  }
  return out;
}

const Expr* Parser::subscript_item() {
  const int line = current().line;
  if (skip_op(":")) return slice_rest(nullptr, line);
  const Expr* first = expression();
  return skip_op(":") ? slice_rest(first, line) : first;
}

const Expr* Parser::slice_rest(const Expr* first, int line) {
  const auto ends = [this] { return current().is_op("]") || current().is_op(","); };
  Expr* out = node(ExprKind::slice, line);
  const Expr* stop = ends() || current().is_op(":") ? nullptr : expression();
  const Expr* step = nullptr;
  if (skip_op(":") && !ends()) step = expression();
  out->items = {first, stop, step};
  return out;
}

const Expr* Parser::filter(const Expr* of) {
  Expr* out = node(ExprKind::filter, current().line);
  out->items = {of};
  out->name = expect_name();
  while (skip_op(".")) out->name += "." + expect_name();
  if (current().is_op("(")) call_arguments(out->arguments);
  return out;
}

const Expr* Parser::test(const Expr* of) {
  const int line = take().line;
  const bool negated = skip_name("not");
  Expr* out = node(ExprKind::test, line);
  out->items = {of};
  out->name = expect_name();
  while (skip_op(".")) out->name += "." + expect_name();
  const Token& token = current();
  const bool starts_primary = token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                              token.kind == TokenKind::real || token.is_op("[") ||
                              token.is_op("{") ||
                              (token.kind == TokenKind::name && token.text != "else" &&
                               token.text != "or" && token.text != "and");
  if (token.is_op("(")) {
    call_arguments(out->arguments);
  } else if (starts_primary) {
    if (token.is_name("is")) fail("tests cannot be chained with 'is'");
    const Depth depth(*this);
    out->arguments.positional.push_back(postfix(primary(), false));
  }
  if (!negated) return out;
  Expr* inverse = node(ExprKind::logical_not, line);
  inverse->items = {out};
  return inverse;
}

void Parser::call_arguments(CallArguments& out) {
  expect_op("(");
  const auto ensure = [this](bool good) {
    if (!good) fail("invalid syntax for function call expression");
  };
  for (bool first = true; !current().is_op(")"); first = false) {
    if (!first) {
      expect_op(",");
      if (current().is_op(")")) break;
    }
    if (skip_op("*")) {
      ensure(out.star == nullptr && out.star_star == nullptr);
      out.star = expression();
    } else if (skip_op("**")) {
      ensure(out.star_star == nullptr);
      out.star_star = expression();
    } else if (current().kind == TokenKind::name && after().is_op("=")) {
      ensure(out.star_star == nullptr);
      std::string name = take().text;
      ++at_;
      for (const auto& given : out.named)
        if (given.first == name) fail(base::cat("keyword argument repeated: ", name));
      out.named.emplace_back(std::move(name), expression());
    } else {
      ensure(out.star == nullptr && out.star_star == nullptr && out.named.empty());
      out.positional.push_back(expression());
    }
  }
  expect_op(")");
}

}  // namespace quern::jinja
