// Filters about numbers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/characters.hpp"
#include "jinja/numbers.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"
#include "jinja/text_tools.hpp"

namespace quern::jinja {

namespace {

Value filter_abs(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("abs", {});
  if (is_undefined(v)) run.undefined_used(v);
  if (const double* d = std::get_if<double>(&v)) return std::fabs(*d);
  if (const BigInteger* big = as_big(v)) return big->digits.starts_with('-') ? negate(run, v, false) : v;
  std::int64_t i = 0;
  if (!as_integer(v, i)) throw Fault(base::cat("bad operand type for abs(): '", type_name(v), "'"));
  return i < 0 ? negate(run, i, false) : Value(i);
}

Value filter_int(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("int", {"default", "base"});
  if (is_undefined(v)) run.undefined_used(v);
  std::int64_t i = 0;
  double d = 0;
  if (const Text* text = as_text(v)) {
    const std::int64_t base = a.integer_or(1, 10);
    if (base != 0 && (base < 2 || base > 36)) throw Fault("int: base must be >= 2 and <= 36, or 0");
    if (parse_integer(text->bytes, static_cast<int>(base), i)) return i;
    if (parse_float(text->bytes, d) && std::isfinite(d)) return truncated(d);
  } else if (as_integer(v, i) || as_big(v) != nullptr) {
    return as_big(v) != nullptr ? v : i;
  } else if (const double* real = std::get_if<double>(&v)) {
    if (std::isinf(*real)) throw Fault("cannot convert float infinity to integer");
    if (!std::isnan(*real)) return truncated(*real);
  }
  return a.get_or(0, std::int64_t{0});
}

Value filter_float(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("float", {"default"});
  if (is_undefined(v)) run.undefined_used(v);
  double d = 0;
  if (const Text* text = as_text(v)) {
    if (parse_float(text->bytes, d)) return d;
  } else if (to_double(v, d)) {
    return d;
  }
  return a.get_or(0, 0.0);
}

// Exact decimal rounding, halves to even, as Python's float rounds.
double rounded(double value, std::int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < 0) {
    const double scale =
        std::pow(10.0, static_cast<double>(std::min<std::int64_t>(-precision, 400)));
    return std::isinf(scale) ? std::copysign(0.0, value) : std::nearbyint(value / scale) * scale;
  }
  char buffer[700];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), value);
  return std::strtod(buffer, nullptr);
}

Value rounded_integer(std::int64_t value, std::int64_t precision) {
  if (precision >= 0) return value;
  if (precision < -18) return std::int64_t{0};
  std::int64_t scale = 1;
  for (std::int64_t i = 0; i < -precision; ++i) scale *= 10;
  std::int64_t rest = value % scale;
  if (rest < 0) rest += scale;
  std::int64_t down = 0;
  if (__builtin_sub_overflow(value, rest, &down)) throw Fault("integer overflow in round");
  const bool up = rest > scale - rest || (rest == scale - rest && (down / scale) % 2 != 0);
  if (up && __builtin_add_overflow(down, scale, &down)) throw Fault("integer overflow in round");
  return down;
}

Value filter_round(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("round", {"precision", "method"});
  if (is_undefined(v)) run.undefined_used(v);
  const std::int64_t precision = a.integer_or(0, 0);
  const std::string method = a.text(1) != nullptr ? a.text(1)->bytes : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    throw Fault("round: method must be common, ceil or floor");
  double d = 0;
  std::int64_t i = 0;
  if (!to_double(v, d))
    throw Fault(base::cat("type ", type_name(v), " doesn't define __round__ method"));
  if (method == "common" && as_big(v) != nullptr) {
    if (precision < 0) throw Fault("round: integer beyond 64 bits");
    return v;
  }
  if (method == "common")
    return as_integer(v, i) ? rounded_integer(i, precision) : Value(rounded(d, precision));
  if (precision < -300 || precision > 300) throw Fault("round: precision out of range");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = d * scale;
  if (!std::isfinite(scaled)) throw Fault("round: cannot convert to integer");
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

Value filter_filesizeformat(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("filesizeformat", {"binary"});
  double bytes = 0;
  if (!to_double(v, bytes) && !(as_text(v) != nullptr && parse_float(as_text(v)->bytes, bytes)))
    throw Fault("filesizeformat: not a number");
  const bool binary = a.get(0) != nullptr && truth(run, *a.get(0));
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return run.heap().text("1 Byte");
  if (bytes < base) return run.heap().text(base::cat(static_cast<std::int64_t>(bytes), " Bytes"));
  constexpr std::string_view kUnits = "kMGTPEZY";
  double unit = base;
  std::size_t i = 0;
  while (i + 1 < kUnits.size() && bytes >= unit * base) {
    unit *= base;
    ++i;
  }
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.1f %c%sB", bytes / unit,
                binary && i == 0 ? 'K' : kUnits[i], binary ? "i" : "");
  return run.heap().text(std::string(buffer));
}

constexpr Filter kFilters[] = {
    {"abs", filter_abs},     {"filesizeformat", filter_filesizeformat},
    {"float", filter_float}, {"int", filter_int},
    {"round", filter_round},
};

}  // namespace

std::span<const Filter> number_filters() {
  return kFilters;
}

}  // namespace quern::jinja
