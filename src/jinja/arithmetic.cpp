#include <cmath>

#include "base/strings.hpp"
#include "jinja/builtins.hpp"
#include "jinja/numbers.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

using base::cat;

namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

std::string_view sign_of(Op op) {
  return kSigns[static_cast<int>(op)];
}

[[noreturn]] void wrong_kinds(Op op, const Value& a, const Value& b) {
  throw Fault(cat("unsupported operand type(s) for ", sign_of(op), ": '", type_name(a), "' and '",
                  type_name(b), "'"));
}

[[noreturn]] void overflow(Op op) {
  throw Fault(cat("integer overflow in ", sign_of(op), ": beyond 64 bits"));
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw Fault("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t out = 1;
  if (base == 0 || base == 1 || base == -1)
    return base == -1 && exponent % 2 == 0 ? std::int64_t{1}
           : exponent == 0                 ? std::int64_t{1}
                                           : base;
  for (std::int64_t i = 0; i < exponent; ++i)  // at most 63 rounds before it overflows
    if (__builtin_mul_overflow(out, base, &out)) overflow(Op::pow);
  return out;
}

Value integers(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &out)) overflow(op);
      return out;
    case Op::sub:
      if (__builtin_sub_overflow(a, b, &out)) overflow(op);
      return out;
    case Op::mul:
      if (__builtin_mul_overflow(a, b, &out)) overflow(op);
      return out;
    case Op::div:
      if (b == 0) throw Fault("division by zero");
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case Op::floor_div:
      if (b == 0) throw Fault("integer division or modulo by zero");
      if (a == INT64_MIN && b == -1) overflow(op);
      return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
    case Op::mod:
      if (b == 0) throw Fault("integer modulo by zero");
      if (b == -1) return std::int64_t{0};
      return a % b + ((a % b != 0 && (a % b < 0) != (b < 0)) ? b : 0);
    default:
      return power(a, b);
  }
}

double float_mod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) mod += b;
  } else {
    mod = std::copysign(0.0, b);
  }
  return mod;
}

// As CPython's float_divmod.
double float_floor_div(double a, double b) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1.0;
  if (div == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(div);
  return div - floored > 0.5 ? floored + 1.0 : floored;
}

Value floats(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      if (b == 0) throw Fault("float division by zero");
      return a / b;
    case Op::floor_div:
      if (b == 0) throw Fault("float floor division by zero");
      return float_floor_div(a, b);
    case Op::mod:
      if (b == 0) throw Fault("float modulo by zero");
      return float_mod(a, b);
    default:
      break;
  }
  if (a == 0 && b < 0) throw Fault("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    throw Fault("complex numbers are not supported");
  const double out = std::pow(a, b);
  if (std::isinf(out) && std::isfinite(a) && std::isfinite(b)) throw Fault("float overflow in **");
  return out;
}

// text + text: markup escapes what is none.
Value joined_texts(Interpreter& run, const Value& left, const Value& right) {
  const Text *a = as_text(left), *b = as_text(right);
  const bool markup = a->markup || b->markup;
  run.heap().check_text(a->bytes.size() + b->bytes.size());
  TextBuilder builder;
  builder.append(markup ? *escape_html(run, left) : *a);
  builder.append(markup ? *escape_html(run, right) : *b);
  return run.heap().text(builder, markup);
}

Value repeated(Interpreter& run, const Value& value, std::int64_t count) {
  if (const Text* text = as_text(value)) {
    TextBuilder builder;
    if (count > 0 && !text->bytes.empty()) {
      if (static_cast<std::uint64_t>(count) > run.heap().limits().text_bytes)
        run.heap().check_text(SIZE_MAX);
      run.heap().check_text(text->bytes.size() * static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) builder.append(*text);
    }
    return run.heap().text(builder, text->markup);
  }
  const List* list = as_list(value);
  std::vector<Value> items;
  for (std::int64_t i = 0; i < count && !list->items.empty(); ++i) {
    run.heap().burn(1 + list->items.size());
    items.insert(items.end(), list->items.begin(), list->items.end());
    if (items.size() * sizeof(Value) > run.heap().limits().heap_bytes / 4)
      throw Fault("too many items");
  }
  return static_cast<Object*>(run.heap().list(
      std::move(items), list->kind == ObjectKind::list ? ObjectKind::list : ObjectKind::tuple));
}

Value added(Interpreter& run, const Value& a, const Value& b) {
  const Text *s = as_text(a), *t = as_text(b);
  if (s != nullptr && t != nullptr) return joined_texts(run, a, b);
  if (s != nullptr)
    throw Fault(cat("can only concatenate str (not \"", type_name(b), "\") to str"));
  const List *x = as_list(a), *y = as_list(b);
  if (x != nullptr) {
    const bool list = x->kind == ObjectKind::list;
    if (y == nullptr || (y->kind == ObjectKind::list) != list)
      throw Fault(cat("can only concatenate ", list ? "list" : "tuple", " (not \"", type_name(b),
                      "\") to ", list ? "list" : "tuple"));
    run.heap().burn(x->items.size() + y->items.size());
    std::vector<Value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    return static_cast<Object*>(
        run.heap().list(std::move(items), list ? ObjectKind::list : ObjectKind::tuple));
  }
  wrong_kinds(Op::add, a, b);
}

}  // namespace

Value arithmetic(Interpreter& run, Op op, const Value& a, const Value& b) {
  if (op == Op::mod && as_text(a) != nullptr) return format_percent(run, *as_text(a), b);
  if (is_undefined(a)) run.undefined_used(a);
  if (is_undefined(b)) run.undefined_used(b);
  std::int64_t i = 0, j = 0;
  const bool left_int = as_integer(a, i), right_int = as_integer(b, j);
  if (left_int && right_int) return integers(op, i, j);
  const bool any_big = as_big(a) != nullptr || as_big(b) != nullptr;
  if (any_big && (left_int || as_big(a) != nullptr) && (right_int || as_big(b) != nullptr)) overflow(op);
  double x = 0, y = 0;
  if (to_double(a, x) && to_double(b, y)) return floats(op, x, y);
  if (op == Op::add) return added(run, a, b);
  if (op == Op::mul) {
    if (right_int && (as_text(a) != nullptr || as_list(a) != nullptr)) return repeated(run, a, j);
    if (left_int && (as_text(b) != nullptr || as_list(b) != nullptr)) return repeated(run, b, i);
    if (as_text(a) != nullptr || as_list(a) != nullptr)
      throw Fault(cat("can't multiply sequence by non-int of type '", type_name(b), "'"));
  }
  wrong_kinds(op, a, b);
}

Value negate(Interpreter& run, const Value& value, bool keep_sign) {
  if (is_undefined(value)) run.undefined_used(value);
  if (const double* d = std::get_if<double>(&value)) return keep_sign ? *d : -*d;
  if (const BigInteger* big = as_big(value)) {
    if (keep_sign) return value;
    if (big->digits == "9223372036854775808") return INT64_MIN;
    const bool negative = big->digits.starts_with('-');
    return static_cast<Object*>(run.heap().make<BigInteger>(negative ? big->digits.substr(1) : "-" + big->digits));
  }
  std::int64_t i = 0;
  if (!as_integer(value, i))
    throw Fault(
        cat("bad operand type for unary ", keep_sign ? "+" : "-", ": '", type_name(value), "'"));
  if (!keep_sign && __builtin_sub_overflow(std::int64_t{0}, i, &i)) overflow(Op::sub);
  return i;
}

}  // namespace quern::jinja
