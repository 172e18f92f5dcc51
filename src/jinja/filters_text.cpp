// Filters that make text of text.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/characters.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"
#include "jinja/text_tools.hpp"

namespace quern::jinja {

namespace {

Value filter_lower(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("lower", {});
  return in_case(run, *soft_text(run, v), Case::lower);
}

Value filter_upper(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("upper", {});
  return in_case(run, *soft_text(run, v), Case::upper);
}

Value filter_capitalize(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("capitalize", {});
  return capitalized(run, *soft_text(run, v));
}

// Words begin after white space, - ( { [ and <.
Value filter_title(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("title", {});
  const TextRef text = soft_text(run, v);
  TextBuilder builder;
  MarkReader marks(*text);
  bool start = true;
  for (std::size_t at = 0; at < text->bytes.size();) {
    const Character c = character_at(text->bytes, at);
    std::string out;
    append_in_case(out, c.code, start ? Case::upper : Case::lower);
    builder.append(out, marks.untrusted(at));
    start = is_space(c.code) || c.code == '-' || c.code == '(' || c.code == '{' || c.code == '[' ||
            c.code == '<';
    at += c.bytes;
  }
  return run.heap().text(builder);
}

Value filter_trim(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("trim", {"chars"});
  const TextRef text = soft_text(run, v);
  return stripped(run, *text, a.text(0), true, true);
}

Value filter_replace(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("replace", {"old", "new", "count"}, 2);
  const TextRef text = to_text(run, v), old = to_text(run, *a.get(0)),
                fresh = to_text(run, *a.get(1));
  return replaced(run, *text, *old, *fresh, a.integer_or(2, -1));
}

Value filter_string(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("string", {});
  return soft_text(run, v);
}

Value filter_safe(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("safe", {});
  const TextRef text = soft_text(run, v);
  TextBuilder builder;
  builder.append(*text);
  return run.heap().text(builder, true);
}

Value filter_escape(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("escape", {});
  return escape_html(run, v);
}

Value filter_forceescape(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("forceescape", {});
  return escape_html(run, to_text(run, v));
}

Value filter_format(Interpreter& run, const Value& v, Arguments& a) {
  if (!a.positional.empty() && !a.named.empty())
    throw Fault("format: can't handle positional and keyword arguments at the same time");
  const TextRef text = soft_text(run, v);
  if (a.named.empty())
    return format_percent(run, *text,
                          static_cast<Object*>(run.heap().list(a.positional, ObjectKind::tuple)));
  Dict* dict = run.heap().make<Dict>();
  for (auto& [name, value] : a.named) insert(run, *dict, run.heap().text(name), value);
  return format_percent(run, *text, static_cast<Object*>(dict));
}

std::string separator(const Value& v) {
  const Text* text = as_text(v);
  if (text == nullptr) throw Fault("tojson: separators must be two strings");
  return text->bytes;
}

Value filter_tojson(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = a.get(0) != nullptr && truth(run, *a.get(0));
  style.sort_keys = a.get(3) != nullptr && truth(run, *a.get(3));
  if (a.given(1)) {
    style.lines = true;
    style.item_separator = ",";
    if (const Text* indent = as_text(*a.get(1))) {
      style.indent = indent->bytes;
    } else {
      const std::int64_t width = a.integer_or(1, 0);
      if (width > 1000) throw Fault("tojson: indent > 1000");
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  if (a.given(2)) {
    const List* pair = as_list(*a.get(2));
    if (pair == nullptr || pair->items.size() != 2)
      throw Fault("tojson: separators must be two strings");
    style.item_separator = separator(pair->items[0]);
    style.key_separator = separator(pair->items[1]);
  }
  TextBuilder builder;
  append_json(run, builder, v, style);
  return run.heap().text(builder);
}

// Tags and comments go, white space becomes single spaces, entities their characters.
Value filter_striptags(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("striptags", {});
  const TextRef text = to_text(run, v);
  return stripped_of_tags(run, *text);
}

Value filter_urlencode(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("urlencode", {});
  TextBuilder builder;
  if (as_text(v) != nullptr || !is_iterable(v)) {
    append_url_quoted(builder, *to_text(run, v), false);
    return run.heap().text(builder);
  }
  const Dict* dict = as_dict(v);
  const Value pairs =
      dict != nullptr ? Value(static_cast<Object*>(run.heap().make<View>(dict, ViewKind::items)))
                      : v;
  for (const Value& pair : run.items_of(pairs)) {
    const std::vector<Value> parts = run.items_of(pair);
    if (parts.size() != 2) throw Fault("urlencode: not a sequence of pairs");
    if (builder.size() != 0) builder.append("&");
    append_url_quoted(builder, *to_text(run, parts[0]), true);
    builder.append("=");
    append_url_quoted(builder, *to_text(run, parts[1]), true);
  }
  return run.heap().text(builder);
}

Value filter_wordcount(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("wordcount", {});
  const TextRef text = soft_text(run, v);
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text->bytes.size();) {
    const Character c = character_at(text->bytes, at);
    const bool word = is_word(c.code);
    words += word && !inside ? 1 : 0;
    inside = word;
    at += c.bytes;
  }
  return words;
}

Value filter_xmlattr(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("xmlattr", {"autospace"});
  const Dict* dict = as_dict(v);
  if (dict == nullptr) throw Fault("xmlattr: not a mapping");
  TextBuilder builder;
  const bool space = a.get(0) == nullptr || truth(run, *a.get(0));
  for (const auto& [key, value] : dict->entries) {
    if (is_none(value) || is_undefined(value)) continue;
    const Text* name = as_text(key);
    if (name == nullptr || name->bytes.find_first_of(" />=\t\n\r\f\v") != std::string::npos)
      throw Fault("xmlattr: invalid character in attribute name");
    if (builder.size() != 0 || space) builder.append(" ");
    builder.append(*escape_html(run, key));
    builder.append("=\"");
    builder.append(*escape_html(run, value));
    builder.append("\"");
  }
  return run.heap().text(builder);
}

constexpr Filter kFilters[] = {
    {"capitalize", filter_capitalize},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"lower", filter_lower},
    {"replace", filter_replace},
    {"safe", filter_safe},
    {"string", filter_string},
    {"striptags", filter_striptags},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"upper", filter_upper},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
    {"xmlattr", filter_xmlattr},
};

}  // namespace

std::span<const Filter> text_filters() {
  return kFilters;
}

Value lower_case(Interpreter& run, const Value& value) {
  const Text* text = as_text(value);
  return text != nullptr ? Value(in_case(run, *text, Case::lower)) : value;
}

}  // namespace quern::jinja
