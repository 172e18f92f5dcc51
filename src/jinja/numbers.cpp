#include "jinja/numbers.hpp"

#include <cmath>
#include <cstdlib>
#include <string>

#include "jinja/characters.hpp"
#include "jinja/heap.hpp"

namespace quern::jinja {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty()) {
    const Character c = character_at(text, 0);
    if (!is_space(c.code)) break;
    text.remove_prefix(c.bytes);
  }
  while (!text.empty()) {
    const std::size_t start = character_before(text, text.size());
    if (!is_space(character_at(text, start).code)) break;
    text = text.substr(0, start);
  }
  return text;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 32);
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Underscores only between digits; the text without them.
bool without_underscores(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return false;
    }
  }
  return true;
}

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

}  // namespace

bool to_double(const Value& v, double& out) {
  if (const double* d = std::get_if<double>(&v)) {
    out = *d;
    return true;
  }
  if (const BigInteger* big = as_big(v)) {
    out = std::strtod(big->digits.c_str(), nullptr);
    if (!std::isfinite(out)) throw Fault("int too large to convert to float");
    return true;
  }
  std::int64_t i = 0;
  if (!as_integer(v, i)) return false;
  out = static_cast<double>(i);
  return true;
}

bool parse_integer(std::string_view text, int base, std::int64_t& out) {
  text = trimmed(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int prefix = 0;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 32);
    prefix = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  }
  if (prefix != 0 && (base == 0 || base == prefix)) {
    base = prefix;
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
  }
  const bool plain_zero_only = base == 0 && !text.empty() && text[0] == '0';
  if (base == 0) base = 10;
  if (text.empty()) return false;
  std::int64_t value = 0;
  bool overflow = false, digit_before = false;
  for (const char c : text) {
    if (c == '_' && digit_before) {
      digit_before = false;
      continue;
    }
    const int digit = digit_of(c);
    if (digit >= base) return false;
    if (plain_zero_only && digit != 0) return false;
    overflow |= __builtin_mul_overflow(value, std::int64_t{base}, &value);
    overflow |=
        __builtin_sub_overflow(value, std::int64_t{digit}, &value);  // negative: reaches INT64_MIN
    digit_before = true;
  }
  if (!digit_before) return false;
  if (overflow || (!negative && value == INT64_MIN))
    throw Fault("integer overflow: beyond 64 bits");
  out = negative ? value : -value;
  return true;
}

bool parse_float(std::string_view text, double& out) {
  std::string clean;
  if (!without_underscores(trimmed(text), clean)) return false;
  std::size_t at = !clean.empty() && (clean[0] == '+' || clean[0] == '-') ? 1 : 0;
  std::string word;
  for (const char c : clean.substr(at)) word += static_cast<char>(c | 32);
  if (word == "inf" || word == "infinity" || word == "nan") {
    out = std::strtod(clean.c_str(), nullptr);
    return true;
  }
  const std::size_t whole = skip_digits(clean, at);
  std::size_t digits = whole - at, end = whole;
  if (end < clean.size() && clean[end] == '.') {
    const std::size_t fraction = skip_digits(clean, end + 1);
    digits += fraction - end - 1;
    end = fraction;
  }
  if (digits == 0) return false;
  if (end < clean.size() && (clean[end] | 32) == 'e') {
    std::size_t power = end + 1;
    if (power < clean.size() && (clean[power] == '+' || clean[power] == '-')) ++power;
    const std::size_t last = skip_digits(clean, power);
    if (last == power) return false;
    end = last;
  }
  if (end != clean.size()) return false;
  out = std::strtod(clean.c_str(), nullptr);
  return true;
}

Value truncated(double value) {
  const double whole = std::trunc(value);
  if (!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0))
    throw Fault("integer overflow: beyond 64 bits");
  return static_cast<std::int64_t>(whole);
}

}  // namespace quern::jinja
