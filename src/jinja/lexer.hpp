// Template source to tokens, with the white space rules of trim_blocks and lstrip_blocks applied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::jinja {

enum class TokenKind {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenKind kind;
  int line;
  std::string
      text;  // data and strings: their value; names and operators: as written; numbers: no "_"

  bool is(TokenKind k, std::string_view t) const { return kind == k && text == t; }
  bool is_op(std::string_view t) const { return is(TokenKind::op, t); }
  bool is_name(std::string_view t) const { return is(TokenKind::name, t); }
};

// A syntax error and its line.
struct SyntaxFault {
  int line;
  std::string what;
};

// Ends with a token of kind `end`. Throws SyntaxFault. The source must be valid UTF-8.
std::vector<Token> tokenize(std::string_view source);

// What a quoted literal means: Python's "unicode-escape" of its inside.
std::string unescape_literal(std::string_view inside, int line);

}  // namespace quern::jinja
