#include "jinja/print.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/characters.hpp"

namespace quern::jinja {

namespace {

void append_hex(std::string& out, const char* prefix, std::uint32_t code, int digits) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%s%0*x", prefix, digits, static_cast<unsigned>(code));
  out += buffer;
}

void repr_text(TextBuilder& out, const Text& text) {
  const bool both = text.bytes.find('"') != std::string::npos;
  const char quote = text.bytes.find('\'') != std::string::npos && !both ? '"' : '\'';
  MarkReader marks(text);
  out.append(std::string_view(&quote, 1));
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    std::string shown;
    if (c.code == static_cast<unsigned char>(quote) || c.code == '\\') {
      shown = {'\\', static_cast<char>(c.code)};
    } else if (c.code == '\n') {
      shown = "\\n";
    } else if (c.code == '\r') {
      shown = "\\r";
    } else if (c.code == '\t') {
      shown = "\\t";
    } else if (is_printable(c.code)) {
      shown = text.bytes.substr(at, c.bytes);
    } else if (c.code < 0x100) {
      append_hex(shown, "\\x", c.code, 2);
    } else {
      append_hex(shown, c.code < 0x10000 ? "\\u" : "\\U", c.code, c.code < 0x10000 ? 4 : 8);
    }
    out.append(shown, marks.untrusted(at));
    at += c.bytes;
  }
  out.append(std::string_view(&quote, 1));
}

void repr_list(Interpreter& run, TextBuilder& out, const List& list) {
  const bool is_list = list.kind == ObjectKind::list;
  out.append(is_list ? "[" : "(");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i != 0) out.append(", ");
    append_repr(run, out, list.items[i]);
  }
  if (!is_list && list.items.size() == 1) out.append(",");
  out.append(is_list ? "]" : ")");
}

void repr_dict(Interpreter& run, TextBuilder& out, const Dict& dict) {
  const char* separator = "{";
  for (const auto& [key, value] : dict.entries) {
    out.append(separator);
    append_repr(run, out, key);
    out.append(": ");
    append_repr(run, out, value);
    separator = ", ";
  }
  out.append(dict.entries.empty() ? "{}" : "}");
}

void repr_view(Interpreter& run, TextBuilder& out, const Value& value) {
  out.append(type_name(value));
  out.append("([");
  Cursor cursor(run, value);
  bool first = true;
  for (Value item; cursor.next(item); first = false) {
    if (!first) out.append(", ");
    append_repr(run, out, item);
  }
  out.append("])");
}

void repr_object(Interpreter& run, TextBuilder& out, const Value& value, Object& object) {
  switch (object.kind) {
    case ObjectKind::list:
    case ObjectKind::tuple:
    case ObjectKind::group:
      return repr_list(run, out, static_cast<const List&>(object));
    case ObjectKind::dict:
      return repr_dict(run, out, static_cast<const Dict&>(object));
    case ObjectKind::view:
      return repr_view(run, out, value);
    case ObjectKind::range: {
      const auto& range = static_cast<const RangeObject&>(object);
      out.append(base::cat("range(", range.start, ", ", range.stop));
      return out.append(range.step == 1 ? ")" : base::cat(", ", range.step, ")"));
    }
    case ObjectKind::name_space: {
      const char* separator = "<Namespace {";
      const auto& attributes = static_cast<const Namespace&>(object).attributes;
      for (const auto& [name, item] : attributes) {
        out.append(separator);
        repr_text(out, Text(name));
        out.append(": ");
        append_repr(run, out, item);
        separator = ", ";
      }
      return out.append(attributes.empty() ? "<Namespace {}>" : "}>");
    }
    case ObjectKind::macro: {
      const std::string& name = static_cast<const Macro&>(object).signature->name;
      return out.append(name.empty() ? "<Macro anonymous>" : base::cat("<Macro '", name, "'>"));
    }
    case ObjectKind::loop: {
      auto& loop = static_cast<Loop&>(object);
      return out.append(base::cat("<LoopContext ", loop.index0 + 1, "/", loop.length(run), ">"));
    }
    case ObjectKind::big_integer:
      return out.append(static_cast<const BigInteger&>(object).digits);
    default:
      return out.append(base::cat("<", type_name(value), " object>"));
  }
}

void append_plain(TextBuilder& out, const Value& value) {
  if (is_none(value)) return out.append("None");
  if (const bool* b = std::get_if<bool>(&value)) return out.append(*b ? "True" : "False");
  if (const std::int64_t* i = std::get_if<std::int64_t>(&value))
    return out.append(std::to_string(*i));
  if (const double* d = std::get_if<double>(&value)) return out.append(float_repr(*d));
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string text(buffer, end);  // shortest digits: d.ddde+XX
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return text;  // as Python spells it: at least two digits
  const bool negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  if (exponent < 0) {
    digits = "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole)
      digits = digits + std::string(whole - digits.size(), '0') + ".0";
    else
      digits.insert(whole, ".");
  }
  return negative ? "-" + digits : digits;
}

void append_repr(Interpreter& run, TextBuilder& out, const Value& value) {
  const Interpreter::Deeper deeper(run);
  run.heap().burn(1);
  run.heap().check_text(out.size());
  if (const Text* text = as_text(value)) {
    run.heap().burn_bytes(text->bytes.size());
    if (!text->markup) return repr_text(out, *text);
    out.append("Markup(");
    repr_text(out, *text);
    return out.append(")");
  }
  if (is_undefined(value)) return out.append("Undefined");
  if (Object* object = as_object(value)) return repr_object(run, out, value, *object);
  append_plain(out, value);
}

void append_text(Interpreter& run, TextBuilder& out, const Value& value) {
  if (const Text* text = as_text(value)) return out.append(*text);
  if (is_undefined(value)) return;
  if (as_object(value) != nullptr) return append_repr(run, out, value);
  append_plain(out, value);
}

TextRef to_text(Interpreter& run, const Value& value) {
  if (const TextRef* text = std::get_if<TextRef>(&value); text != nullptr && !(*text)->markup)
    return *text;
  TextBuilder builder;
  append_text(run, builder, value);
  return run.heap().text(builder);
}

TextRef soft_text(Interpreter& run, const Value& value) {
  const TextRef* text = std::get_if<TextRef>(&value);
  return text != nullptr ? *text : to_text(run, value);
}

std::string repr(Interpreter& run, const Value& value) {
  TextBuilder builder;
  append_repr(run, builder, value);
  return builder.take().bytes;
}

TextRef escape_html(Interpreter& run, const Value& value) {
  if (const TextRef* text = std::get_if<TextRef>(&value); text != nullptr && (*text)->markup)
    return *text;
  const TextRef plain = to_text(run, value);
  TextBuilder builder;
  MarkReader marks(*plain);
  for (std::size_t at = 0; at < plain->bytes.size(); ++at) {
    const char c = plain->bytes[at];
    const char* escaped = c == '&'    ? "&amp;"
                          : c == '<'  ? "&lt;"
                          : c == '>'  ? "&gt;"
                          : c == '\'' ? "&#39;"
                          : c == '"'  ? "&#34;"
                                      : nullptr;
    builder.append(escaped != nullptr ? std::string_view(escaped) : std::string_view(&c, 1),
                   marks.untrusted(at));
  }
  return run.heap().text(builder, true);
}

}  // namespace quern::jinja
