// json.dumps of a value (print.hpp).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/characters.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"

namespace quern::jinja {

namespace {

void append_unit(std::string& out, std::uint32_t unit) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(unit));
  out += buffer;
}

std::string escaped(const Character& c, std::string_view bytes, bool ascii) {
  switch (c.code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  std::string out;
  if (c.code < 0x20 || (ascii && c.code >= 0x7F && c.code < 0x10000)) {
    append_unit(out, c.code);
  } else if (ascii && c.code >= 0x10000) {
    append_unit(out, 0xD800 + ((c.code - 0x10000) >> 10));
    append_unit(out, 0xDC00 + ((c.code - 0x10000) & 0x3FF));
  } else {
    out = bytes;
  }
  return out;
}

void json_text(TextBuilder& out, const Text& text, bool ascii) {
  MarkReader marks(text);
  out.append("\"");
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = character_at(text.bytes, at);
    out.append(escaped(c, std::string_view(text.bytes).substr(at, c.bytes), ascii),
               marks.untrusted(at));
    at += c.bytes;
  }
  out.append("\"");
}

std::string json_number(const Value& value) {
  if (const BigInteger* big = as_big(value)) return big->digits;
  if (const double* d = std::get_if<double>(&value))
    return std::isnan(*d)   ? "NaN"
           : std::isinf(*d) ? (*d < 0 ? "-Infinity" : "Infinity")
                            : float_repr(*d);
  return std::to_string(std::get<std::int64_t>(value));
}

class Writer {
 public:
  Writer(Interpreter& run, TextBuilder& out, const JsonStyle& style)
      : run_(run), out_(out), style_(style) {}

  void write(const Value& value) {
    const Interpreter::Deeper deeper(run_);
    run_.heap().burn(1);
    run_.heap().check_text(out_.size());
    if (const Text* text = as_text(value)) {
      run_.heap().burn_bytes(text->bytes.size());
      return json_text(out_, *text, style_.ascii);
    }
    if (is_none(value)) return out_.append("null");
    if (const bool* b = std::get_if<bool>(&value)) return out_.append(*b ? "true" : "false");
    if (const List* list = as_list(value)) return write_list(*list);
    if (const Dict* dict = as_dict(value)) return write_dict(*dict);
    if (is_undefined(value) || (as_object(value) != nullptr && as_big(value) == nullptr))
      throw Fault(base::cat("Object of type ", type_name(value), " is not JSON serializable"));
    out_.append(json_number(value));
  }

 private:
  void line_end() {
    if (!style_.lines) return;
    out_.append("\n");
    for (int i = 0; i < depth_; ++i) out_.append(style_.indent);
  }

  void write_list(const List& list) {
    if (list.items.empty()) return out_.append("[]");
    out_.append("[");
    ++depth_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i != 0) out_.append(style_.item_separator);
      line_end();
      write(list.items[i]);
    }
    --depth_;
    line_end();
    out_.append("]");
  }

  void write_key(const Value& key) {
    if (const Text* text = as_text(key)) return json_text(out_, *text, style_.ascii);
    if (is_undefined(key) || (as_object(key) != nullptr && as_big(key) == nullptr))
      throw Fault(base::cat("keys must be str, int, float, bool or None, not ", type_name(key)));
    out_.append("\"");
    write(key);
    out_.append("\"");
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) return out_.append("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return less(run_, a->first, b->first);
      });
    out_.append("{");
    ++depth_;
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      line_end();
      write_key(entry->first);
      out_.append(style_.key_separator);
      write(entry->second);
    }
    --depth_;
    line_end();
    out_.append("}");
  }

  Interpreter& run_;
  TextBuilder& out_;
  const JsonStyle& style_;
  int depth_ = 0;
};

}  // namespace

void append_json(Interpreter& run, TextBuilder& out, const Value& value, const JsonStyle& style) {
  Writer(run, out, style).write(value);
}

}  // namespace quern::jinja
