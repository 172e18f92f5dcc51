// Methods of str that make another text or a number.
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

const Text& need(const Arguments& a, std::size_t index, std::string_view method) {
  const Value* value = a.get(index);
  const Text* text = value != nullptr ? as_text(*value) : nullptr;
  if (text == nullptr)
    throw Fault(base::cat(method, ": argument ", index + 1, " must be str, not ",
                          value != nullptr ? type_name(*value) : "nothing"));
  return *text;
}

template <Case to>
Value method_case(Interpreter& run, const Value& self, Arguments& a) {
  a.only("case method", 0, 0);
  return in_case(run, *as_text(self), to);
}

Value method_capitalize(Interpreter& run, const Value& self, Arguments& a) {
  a.only("capitalize", 0, 0);
  return capitalized(run, *as_text(self));
}

// Every run of letters begins with a capital.
Value method_title(Interpreter& run, const Value& self, Arguments& a) {
  a.only("title", 0, 0);
  bool inside = false;
  return mapped(run, *as_text(self), [&inside](std::string& out, const Character& c) {
    append_in_case(out, c.code, inside ? Case::lower : Case::title);
    inside = is_upper(c.code) || is_lower(c.code) || is_title(c.code);
  });
}

Value method_swapcase(Interpreter& run, const Value& self, Arguments& a) {
  a.only("swapcase", 0, 0);
  return mapped(run, *as_text(self), [](std::string& out, const Character& c) {
    append_in_case(out, c.code, is_upper(c.code) ? Case::lower : Case::upper);
  });
}

template <bool left, bool right>
Value method_strip(Interpreter& run, const Value& self, Arguments& a) {
  a.only("strip", 0, 1);
  const Text* chars = a.given(0) ? &need(a, 0, "strip") : nullptr;
  return stripped(run, *as_text(self), chars, left, right);
}

Value method_replace(Interpreter& run, const Value& self, Arguments& a) {
  a.bind("replace", {"old", "new", "count"}, 2);
  const Text& text = *as_text(self);
  const Text& old = need(a, 0, "replace");
  need(a, 1, "replace");
  const TextRef fresh = text.markup ? escape_html(run, *a.get(1)) : to_text(run, *a.get(1));
  const Value* count = a.get(2);
  return replaced(run, text, old, *fresh, count != nullptr ? need_integer(*count, "replace") : -1);
}

// startswith, endswith: a text or a tuple of them, within [start, end).
template <bool at_start>
Value method_affix(Interpreter& run, const Value& self, Arguments& a) {
  const std::string_view name = at_start ? "startswith" : "endswith";
  a.only(name, 1, 3);
  const Value part = get_slice(run, self, {a.get_or(1, None{}), a.get_or(2, None{}), None{}});
  // A start behind the end holds nothing, not even an empty text.
  if (a.given(1) && need_integer(*a.get(1), name) > length(run, self)) return false;
  const std::string& text = as_text(part)->bytes;
  const auto fits = [&](const Value& v) {
    const Text* affix = as_text(v);
    if (affix == nullptr)
      throw Fault(base::cat(name, " first arg must be str or a tuple of str, not ", type_name(v)));
    return at_start ? text.starts_with(affix->bytes) : text.ends_with(affix->bytes);
  };
  const List* tuple = as_list(a.positional[0]);
  if (tuple == nullptr || tuple->kind == ObjectKind::list) return fits(a.positional[0]);
  return std::any_of(tuple->items.begin(), tuple->items.end(), fits);
}

// Where the first argument is, in characters; -1 for nowhere.
std::int64_t place_of(Interpreter& run, const Value& self, Arguments& a, std::string_view name,
                      bool last) {
  a.only(name, 1, 3);
  const Text& word = need(a, 0, name);
  const std::int64_t size = length(run, self);
  std::int64_t start = a.integer_or(1, 0);
  if (start < 0) start = std::max<std::int64_t>(start < -size ? 0 : start + size, 0);
  if (start > size) return -1;
  const Value part = get_slice(run, self, {start, a.get_or(2, None{}), None{}});
  const Text& text = *as_text(part);
  run.heap().burn_bytes(text.bytes.size());
  const std::size_t hit =
      last ? find_bytes_last(text.bytes, word.bytes) : find_bytes(text.bytes, word.bytes, 0);
  return hit == std::string::npos ? -1 : start + static_cast<std::int64_t>(char_of_byte(text, hit));
}

template <bool last, bool raises>
Value method_find(Interpreter& run, const Value& self, Arguments& a) {
  const std::int64_t place = place_of(run, self, a,
                                      last     ? (raises ? "rindex" : "rfind")
                                      : raises ? "index"
                                               : "find",
                                      last);
  if (raises && place < 0) throw Fault("substring not found");
  return place;
}

Value method_count(Interpreter& run, const Value& self, Arguments& a) {
  a.only("count", 1, 3);
  const Text& word = need(a, 0, "count");
  const Value part = get_slice(run, self, {a.get_or(1, None{}), a.get_or(2, None{}), None{}});
  const Text& text = *as_text(part);
  run.heap().burn_bytes(text.bytes.size());
  if (word.bytes.empty()) return static_cast<std::int64_t>(char_count(text)) + 1;
  std::int64_t count = 0;
  for (std::size_t at = find_bytes(text.bytes, word.bytes, 0); at != std::string::npos;
       at = find_bytes(text.bytes, word.bytes, at + word.bytes.size()))
    ++count;
  return count;
}

template <int side>  // 0 center, 1 ljust, 2 rjust
Value method_justify(Interpreter& run, const Value& self, Arguments& a) {
  a.only("justification", 1, 2);
  const std::int64_t width = need_integer(a.positional[0], "justification"),
                     size = length(run, self);
  const std::string fill = a.given(1) ? need(a, 1, "justification").bytes : " ";
  if (char_count(Text(fill)) != 1)
    throw Fault("the fill character must be exactly one character long");
  if (width <= size) return self;
  if (width > INT32_MAX) run.heap().check_text(SIZE_MAX);
  const std::int64_t pad = width - size;
  const std::int64_t left = side == 1 ? 0 : side == 2 ? pad : pad / 2 + (pad & width & 1);
  return padded(run, *as_text(self), static_cast<std::size_t>(left),
                static_cast<std::size_t>(pad - left), fill);
}

Value method_zfill(Interpreter& run, const Value& self, Arguments& a) {
  a.only("zfill", 1, 1);
  const std::int64_t width = need_integer(a.positional[0], "zfill"), size = length(run, self);
  if (width <= size) return self;
  if (width > INT32_MAX) run.heap().check_text(SIZE_MAX);
  const Text& text = *as_text(self);
  const std::size_t sign =
      !text.bytes.empty() && (text.bytes[0] == '+' || text.bytes[0] == '-') ? 1 : 0;
  const TextRef digits = piece(run, text, sign, text.bytes.size());
  const TextRef zeros = padded(run, *digits, static_cast<std::size_t>(width - size), 0, "0");
  TextBuilder builder;
  builder.append(text, 0, sign);
  builder.append(*zeros);
  return run.heap().text(builder, text.markup);
}

template <bool prefix>
Value method_remove(Interpreter& run, const Value& self, Arguments& a) {
  a.only("removal", 1, 1);
  const Text& text = *as_text(self);
  const std::string& affix = need(a, 0, "removal").bytes;
  if (!(prefix ? text.bytes.starts_with(affix) : text.bytes.ends_with(affix))) return self;
  return prefix ? piece(run, text, affix.size(), text.bytes.size())
                : piece(run, text, 0, text.bytes.size() - affix.size());
}

Value method_expandtabs(Interpreter& run, const Value& self, Arguments& a) {
  a.bind("expandtabs", {"tabsize"});
  const std::int64_t size = a.integer_or(0, 8);
  if (size > 1000) throw Fault("expandtabs: tabsize > 1000");
  std::int64_t column = 0;
  return mapped(run, *as_text(self), [size, &column](std::string& out, const Character& c) {
    if (c.code == '\t') {
      const std::int64_t n = size > 0 ? size - column % size : 0;
      out.append(static_cast<std::size_t>(n), ' ');
      column += n;
    } else {
      append_character(out, c.code);
      column = c.code == '\n' || c.code == '\r' ? 0 : column + 1;
    }
  });
}

Value method_format(Interpreter& run, const Value& self, Arguments& a) {
  return format_braces(run, *as_text(self), a);
}

constexpr MethodEntry kMethods[] = {
    {"capitalize", method_capitalize},
    {"casefold", method_case<Case::fold>},
    {"center", method_justify<0>},
    {"count", method_count},
    {"encode", nullptr},
    {"endswith", method_affix<false>},
    {"expandtabs", method_expandtabs},
    {"find", method_find<false, false>},
    {"format", method_format},
    {"format_map", nullptr},
    {"index", method_find<false, true>},
    {"ljust", method_justify<1>},
    {"lower", method_case<Case::lower>},
    {"lstrip", method_strip<true, false>},
    {"maketrans", nullptr},
    {"removeprefix", method_remove<true>},
    {"removesuffix", method_remove<false>},
    {"replace", method_replace},
    {"rfind", method_find<true, false>},
    {"rindex", method_find<true, true>},
    {"rjust", method_justify<2>},
    {"rstrip", method_strip<false, true>},
    {"startswith", method_affix<true>},
    {"strip", method_strip<true, true>},
    {"swapcase", method_swapcase},
    {"title", method_title},
    {"translate", nullptr},
    {"upper", method_case<Case::upper>},
    {"zfill", method_zfill},
};

}  // namespace

std::span<const MethodEntry> text_methods() {
  return kMethods;
}

}  // namespace quern::jinja
