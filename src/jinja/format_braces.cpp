// "{} of {total:>5}".format(...): fields by place or name, attributes, items, !r and !s, and the
// format specifications of str, int and float.
#include <algorithm>
#include <cmath>

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

namespace {

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', grouping = 0, type = 0;
  bool alternate = false;
  std::int64_t width = 0, precision = -1;
};

std::int64_t read_number(std::string_view text, std::size_t& at) {
  std::int64_t n = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    n = n * 10 + (text[at++] - '0');
    if (n > (std::int64_t{16} << 20)) throw Fault("output > 16 MiB");
  }
  return n;
}

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto peek = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  if (!text.empty()) {
    const std::size_t first = character_at(text, 0).bytes;
    if (is_align(peek(first))) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      at = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[at++];
    }
  }
  if (peek(at) == '+' || peek(at) == '-' || peek(at) == ' ') spec.sign = text[at++];
  if (peek(at) == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek(at) == '0') {
    ++at;
    if (spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
  }
  spec.width = read_number(text, at);
  if (peek(at) == ',' || peek(at) == '_') spec.grouping = text[at++];
  if (peek(at) == '.') {
    const std::size_t digits = ++at;
    spec.precision = read_number(text, at);
    if (at == digits) throw Fault("format specifier missing precision");
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) throw Fault("invalid format specifier");
  return spec;
}

std::string grouped_digits(const std::string& digits, char mark, std::size_t every) {
  const std::size_t whole =
      std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % every == 0) out += mark;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

void pad(Interpreter& run, TextBuilder& out, const Spec& spec, const std::string& sign,
         const Text& body, char natural) {
  const auto size = static_cast<std::int64_t>(char_count(body) + sign.size());
  const auto fill = static_cast<std::size_t>(std::max<std::int64_t>(spec.width - size, 0));
  run.heap().check_text(fill * spec.fill.size());
  const char align = spec.align != 0 ? spec.align : natural;
  const std::size_t left = align == '<' ? 0 : align == '^' ? fill / 2 : fill;
  if (align == '=') out.append(sign);
  for (std::size_t i = 0; i < left; ++i) out.append(spec.fill);
  if (align != '=') out.append(sign);
  out.append(body);
  for (std::size_t i = left; i < fill; ++i) out.append(spec.fill);
}

std::string sign_of(const Spec& spec, bool negative) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

void format_integer(Interpreter& run, TextBuilder& out, const Spec& spec, std::int64_t value) {
  const char type = spec.type == 0 || spec.type == 'n' ? 'd' : spec.type;
  if (spec.precision >= 0) throw Fault("precision not allowed in integer format specifier");
  std::string sign = sign_of(spec, value < 0);
  if (type == 'c') {
    if (value < 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      throw Fault("%c arg not in range(0x110000)");
    std::string bytes;
    append_character(bytes, static_cast<std::uint32_t>(value));
    return pad(run, out, spec, "", Text(bytes), '<');
  }
  std::string digits = digits_of(value, type);
  if (spec.alternate && type != 'd') sign += std::string("0") + type;
  if (spec.grouping != 0) digits = grouped_digits(digits, spec.grouping, type == 'd' ? 3 : 4);
  pad(run, out, spec, sign, Text(digits), '>');
}

void format_float(Interpreter& run, TextBuilder& out, const Spec& spec, double value) {
  if (spec.precision > 500) throw Fault("precision too big");
  std::string digits;
  const bool percent = spec.type == '%';
  if (spec.type == 0 && spec.precision < 0) {
    digits = float_repr(std::fabs(value));
  } else if (spec.type == 0) {  // as g, but with a fraction
    digits = float_digits(value, 'g', std::max(1, static_cast<int>(spec.precision)), false);
    if (std::isfinite(value) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
  } else {
    const char type = percent ? 'f' : spec.type == 'n' ? 'g' : spec.type;
    const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    digits = float_digits(percent ? value * 100 : value, type, precision, spec.alternate);
  }
  if (spec.grouping != 0) digits = grouped_digits(digits, spec.grouping, 3);
  if (percent) digits += '%';
  pad(run, out, spec, sign_of(spec, std::signbit(value) && !std::isnan(value)), Text(digits), '>');
}

void format_text(Interpreter& run, TextBuilder& out, const Spec& spec, const Text& text) {
  if (spec.type != 0 && spec.type != 's')
    throw Fault(cat("unknown format code '", base::printable(std::string(1, spec.type)),
                    "' for object of type 'str'"));
  if (spec.align == '=' || spec.grouping != 0 || spec.sign != '-')
    throw Fault("format specifier not allowed for a string");
  TextBuilder cut;
  cut.append(text, 0,
             spec.precision < 0 ? text.bytes.size()
                                : byte_of_char(text, static_cast<std::size_t>(spec.precision)));
  pad(run, out, spec, "", cut.take(), '<');
}

void format_value(Interpreter& run, TextBuilder& out, const Value& value, std::string_view text) {
  if (text.empty()) return append_text(run, out, value);
  const Spec spec = parse_spec(text);
  std::int64_t i = 0;
  if (const Text* string = as_text(value)) return format_text(run, out, spec, *string);
  constexpr std::string_view kFloat = "eEfFgG%", kInt = "bcdoxXn";
  const bool integer = as_integer(value, i), real = std::holds_alternative<double>(value);
  if (std::holds_alternative<bool>(value) && (spec.type == 0 || spec.type == 's')) {
    if (spec.type == 's') throw Fault("unknown format code 's' for object of type 'bool'");
    return format_integer(run, out, spec, i);
  }
  if (integer && (spec.type == 0 || kInt.find(spec.type) != std::string_view::npos))
    return format_integer(run, out, spec, i);
  if ((integer || real) &&
      (spec.type == 0 || spec.type == 'n' || kFloat.find(spec.type) != std::string_view::npos))
    return format_float(run, out, spec, real ? std::get<double>(value) : static_cast<double>(i));
  if (integer || real)
    throw Fault(cat("unknown format code '", base::printable(std::string(1, spec.type)),
                    "' for object of type '", type_name(value), "'"));
  throw Fault(cat("unsupported format string passed to ", type_name(value), ".__format__"));
}

class Braces {
 public:
  Braces(Interpreter& run, const Text& format, Arguments& arguments)
      : run_(run), format_(format), arguments_(arguments) {}

  Value run() {
    const std::string& bytes = format_.bytes;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
      out_.append(format_, at, brace);
      if (brace == bytes.size()) break;
      if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
        out_.append(format_, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (bytes[brace] == '}') throw Fault("single '}' encountered in format string");
      const std::size_t close = bytes.find('}', brace);
      if (close == std::string::npos) throw Fault("single '{' encountered in format string");
      field(std::string_view(bytes).substr(brace + 1, close - brace - 1));
      run_.heap().check_text(out_.size());
      at = close + 1;
    }
    return run_.heap().text(out_, format_.markup);
  }

 private:
  void field(std::string_view text) {
    if (text.find('{') != std::string_view::npos)
      throw Fault("nested fields in a format string are not supported");
    const std::size_t colon = std::min(text.find(':'), text.size());
    std::string_view name = text.substr(0, colon),
                     spec = colon < text.size() ? text.substr(colon + 1) : "";
    const std::size_t mark = name.find('!');
    const char conversion = mark == std::string_view::npos ? '\0'
                            : mark + 2 == name.size()      ? name[mark + 1]
                                                           : '?';
    name = name.substr(0, mark);
    Value value = lookup(name);
    if (conversion == 'r' || conversion == 'a')
      value = run_.heap().text(repr(run_, value));
    else if (conversion == 's')
      value = to_text(run_, value);
    else if (conversion != '\0')
      throw Fault("unknown conversion specifier in a format string");
    if (format_.markup && spec.empty()) return out_.append(*escape_html(run_, value));
    format_value(run_, out_, value, spec);
  }

  Value lookup(std::string_view name) {
    std::size_t at = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, at));
    while (at < name.size()) {
      const bool item = name[at] == '[';
      const std::size_t end =
          item ? name.find(']', at) : std::min(name.find_first_of(".[", at + 1), name.size());
      if (end == std::string_view::npos) throw Fault("missing ']' in format string");
      const std::string_view part = name.substr(at + 1, end - at - 1);
      if (part.empty()) throw Fault("empty attribute in format string");
      std::int64_t index = 0;
      const bool digits = part.find_first_not_of("0123456789") == std::string_view::npos;
      if (item && digits && parse_integer(part, 10, index))
        value = get_item(run_, value, index);
      else if (item)
        value = get_item(run_, value, run_.heap().text(std::string(part)));
      else
        value = get_attribute(run_, value, part);
      at = end + (item ? 1 : 0);
    }
    return value;
  }

  Value first(std::string_view name) {
    std::int64_t index = 0;
    if (name.empty()) {
      if (manual_)
        throw Fault("cannot switch from manual field specification to automatic field numbering");
      index = automatic_++;
    } else if (name.find_first_not_of("0123456789") == std::string_view::npos) {
      if (automatic_ != 0)
        throw Fault("cannot switch from automatic field numbering to manual field specification");
      manual_ = true;
      parse_integer(name, 10, index);
    } else {
      const Value* named = arguments_.find(name);
      if (named == nullptr)
        throw Fault(cat("format: no argument '", base::printable(name, 40), "'"));
      return *named;
    }
    if (static_cast<std::size_t>(index) >= arguments_.positional.size())
      throw Fault(cat("Replacement index ", index, " out of range for positional args tuple"));
    return arguments_.positional[static_cast<std::size_t>(index)];
  }

  Interpreter& run_;
  const Text& format_;
  Arguments& arguments_;
  TextBuilder out_;
  std::int64_t automatic_ = 0;
  bool manual_ = false;
};

}  // namespace

Value format_braces(Interpreter& run, const Text& format, Arguments& arguments) {
  return Braces(run, format, arguments).run();
}

}  // namespace quern::jinja
