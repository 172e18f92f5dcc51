// "%s of %d" % values: printf-style formatting as Python does it. "{}".format is in
// format_braces.cpp.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/characters.hpp"
#include "jinja/format_parts.hpp"
#include "jinja/numbers.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

using base::cat;

std::string digits_of(std::int64_t value, char type) {
  const char* spec = type == 'x' ? "%llx" : type == 'X' ? "%llX" : "%llo";
  const unsigned long long magnitude = value < 0 ? 0ULL - static_cast<unsigned long long>(value)
                                                 : static_cast<unsigned long long>(value);
  char buffer[72];
  if (type == 'b') {
    std::string bits;
    for (unsigned long long rest = magnitude; rest != 0 || bits.empty(); rest /= 2)
      bits += static_cast<char>('0' + rest % 2);
    return {bits.rbegin(), bits.rend()};
  }
  std::snprintf(buffer, sizeof buffer, type == 'd' ? "%llu" : spec, magnitude);
  return buffer;
}

std::string float_digits(double value, char type, int precision, bool alternate) {
  value = std::fabs(value);
  if (std::isnan(value)) return type >= 'A' && type <= 'Z' ? "NAN" : "nan";
  if (std::isinf(value)) return type >= 'A' && type <= 'Z' ? "INF" : "inf";
  const char spec[] = {'%',
                       alternate ? '#' : '.',
                       alternate ? '.' : '*',
                       alternate ? '*' : type,
                       alternate ? type : '\0',
                       '\0'};
  char buffer[1400];
  std::snprintf(buffer, sizeof buffer, spec, precision, value);
  return buffer;
}

namespace {

struct Spec {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  std::int64_t width = 0, precision = -1;
  char type = 0;
};

class Percent {
 public:
  Percent(Interpreter& run, const Text& format, const Value& values)
      : run_(run), format_(format), values_(values) {
    const List* list = as_list(values);
    tuple_ = list != nullptr && list->kind != ObjectKind::list ? list : nullptr;
    const Object* object = as_object(values);
    mapping_ = is_undefined(values) ||
               (tuple_ == nullptr && object != nullptr &&
                (object->kind == ObjectKind::dict || object->kind == ObjectKind::list ||
                 object->kind == ObjectKind::range));
  }

  Value run() {
    const std::string& bytes = format_.bytes;
    while (at_ < bytes.size()) {
      const std::size_t sign = std::min(bytes.find('%', at_), bytes.size());
      out_.append(format_, at_, sign);
      at_ = sign + 1;
      if (sign < bytes.size()) directive();
      run_.heap().check_text(out_.size());
    }
    const std::size_t given = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (!mapping_ && used_ < given)
      throw Fault("not all arguments converted during string formatting");
    return run_.heap().text(out_, format_.markup);
  }

 private:
  char peek() const {
    if (at_ >= format_.bytes.size()) throw Fault("incomplete format");
    return format_.bytes[at_];
  }

  Value next() {
    const std::size_t index = used_++;
    if (tuple_ == nullptr && index == 0) return values_;
    if (tuple_ == nullptr || index >= tuple_->items.size())
      throw Fault("not enough arguments for format string");
    return tuple_->items[index];
  }

  std::int64_t number() {
    if (peek() == '*') {
      ++at_;
      return need_integer(next(), "* in a format");
    }
    std::int64_t n = 0;
    while (peek() >= '0' && peek() <= '9') {
      n = n * 10 + (format_.bytes[at_++] - '0');
      if (n > (std::int64_t{16} << 20)) throw Fault("output > 16 MiB");
    }
    return n;
  }

  void directive() {
    Value value;
    bool named = false;
    if (peek() == '(') {
      const std::size_t close = format_.bytes.find(')', at_);
      if (close == std::string::npos) throw Fault("incomplete format key");
      const Dict* dict = as_dict(values_);
      if (dict == nullptr) throw Fault("format requires a mapping");
      const Value* found =
          find(*dict, std::string_view(format_.bytes).substr(at_ + 1, close - at_ - 1));
      if (found == nullptr) throw Fault("format: no value for a key of the format");
      value = *found;
      named = true;
      at_ = close + 1;
    }
    Spec spec;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-')
        spec.left = true;
      else if (c == '+')
        spec.plus = true;
      else if (c == ' ')
        spec.space = true;
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        spec.zero = true;
      else
        break;
    }
    spec.width = number();
    if (spec.width < 0) {
      spec.left = true;
      spec.width = spec.width == INT64_MIN ? INT64_MAX : -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(number(), 0);
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    spec.type = peek();
    ++at_;
    if (spec.type == '%') return out_.append("%");
    if (!named) value = next();
    convert(spec, value);
  }

  void convert(const Spec& spec, const Value& value) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        return text(spec, value);
      case 'c':
        return character(spec, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(spec, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(spec, value);
      default:
        throw Fault(
            cat("unsupported format character '", base::printable(std::string(1, spec.type)), "'"));
    }
  }

  void pad(const Spec& spec, const Text& shown, const std::string& sign = {}, bool zero = false) {
    const auto size = static_cast<std::int64_t>(char_count(shown) + sign.size());
    const auto fill = static_cast<std::size_t>(std::max<std::int64_t>(spec.width - size, 0));
    run_.heap().check_text(fill);
    if (!spec.left && !zero) out_.append(std::string(fill, ' '));
    out_.append(sign);
    if (!spec.left && zero) out_.append(std::string(fill, '0'));
    out_.append(shown);
    if (spec.left) out_.append(std::string(fill, ' '));
  }

  void text(const Spec& spec, const Value& value) {
    TextBuilder builder;
    if (spec.type != 's')
      append_repr(run_, builder, value);
    else if (format_.markup)
      builder.append(*escape_html(run_, value));
    else
      append_text(run_, builder, value);
    const Text whole = builder.take();
    if (spec.precision < 0) return pad(spec, whole);
    TextBuilder cut;
    cut.append(whole, 0, byte_of_char(whole, static_cast<std::size_t>(spec.precision)));
    pad(spec, cut.take());
  }

  void character(const Spec& spec, const Value& value) {
    if (const Text* text = as_text(value)) {
      if (char_count(*text) != 1) throw Fault("%c requires an int or a unicode character");
      return pad(spec, *text);
    }
    const std::int64_t code = need_integer(value, "%c");
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      throw Fault("%c arg not in range(0x110000)");
    std::string bytes;
    append_character(bytes, static_cast<std::uint32_t>(code));
    pad(spec, Text(bytes));
  }

  static std::string sign_of(const Spec& spec, bool negative) {
    return negative ? "-" : spec.plus ? "+" : spec.space ? " " : "";
  }

  void integer(const Spec& spec, const Value& value) {
    std::int64_t i = 0;
    if (const BigInteger* big = as_big(value); big != nullptr && is_decimal(spec)) {
      const bool negative = big->digits.starts_with('-');
      return digits(spec, big->digits.substr(negative ? 1 : 0), negative);
    }
    if (const double* d = std::get_if<double>(&value);
        d != nullptr && spec.type != 'x' && spec.type != 'X' && spec.type != 'o') {
      if (!std::isfinite(*d)) throw Fault("cannot convert float infinity or NaN to integer");
      i = std::get<std::int64_t>(truncated(*d));
    } else if (!as_integer(value, i)) {
      throw Fault(cat("%", std::string(1, spec.type), " format: a number is required, not ",
                      type_name(value)));
    }
    digits(spec, digits_of(i, is_decimal(spec) ? 'd' : spec.type), i < 0);
  }

  static bool is_decimal(const Spec& spec) { return spec.type == 'd' || spec.type == 'i' || spec.type == 'u'; }

  void digits(const Spec& spec, std::string digits, bool negative) {
    if (spec.precision > static_cast<std::int64_t>(digits.size())) {
      run_.heap().check_text(static_cast<std::size_t>(spec.precision));
      digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
    }
    std::string sign = sign_of(spec, negative);
    if (spec.alternate && !is_decimal(spec)) sign += std::string("0") + spec.type;
    pad(spec, Text(digits), sign, spec.zero);
  }

  void real(const Spec& spec, const Value& value) {
    double d = 0;
    if (!to_double(value, d)) throw Fault(cat("must be real number, not ", type_name(value)));
    if (spec.precision > 500) throw Fault("precision too big");
    const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    const std::string digits = float_digits(d, spec.type, precision, spec.alternate);
    pad(spec, Text(digits), sign_of(spec, std::signbit(d) && !std::isnan(d)),
        spec.zero && std::isfinite(d));
  }

  Interpreter& run_;
  const Text& format_;
  const Value& values_;
  const List* tuple_ = nullptr;
  bool mapping_ = false;
  std::size_t at_ = 0, used_ = 0;
  TextBuilder out_;
};

}  // namespace

Value format_percent(Interpreter& run, const Text& format, const Value& values) {
  return Percent(run, format, values).run();
}

}  // namespace quern::jinja
