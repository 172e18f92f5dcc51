// Filters that lay out text: indent, center, truncate, wordwrap.
#include <algorithm>
#include <utility>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/numbers.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"
#include "jinja/text_tools.hpp"
#include "jinja/word_wrap.hpp"

namespace quern::jinja {

namespace {

bool flag(Interpreter& run, const Arguments& a, std::size_t index, bool otherwise) {
  const Value* value = a.get(index);
  return value != nullptr ? truth(run, *value) : otherwise;
}

const Text& need_text(Interpreter& run, const Value& v, std::string_view filter) {
  if (is_undefined(v)) run.undefined_used(v);
  const Text* text = as_text(v);
  if (text == nullptr) throw Fault(base::cat(filter, ": expected str, got ", type_name(v)));
  return *text;
}

Value filter_indent(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("indent", {"width", "first", "blank"});
  const Text& text = need_text(run, v, "indent");
  TextRef indention;
  if (a.get(0) != nullptr && as_text(*a.get(0)) != nullptr) {
    indention = std::get<TextRef>(*a.get(0));
  } else {
    const std::int64_t width = a.get(0) != nullptr ? need_integer(*a.get(0), "indent") : 4;
    indention = padded(run, Text(),
                       static_cast<std::size_t>(std::clamp<std::int64_t>(width, 0, INT32_MAX)), 0);
  }
  const bool blank = flag(run, a, 2, false);
  TextBuilder with_end;  // the reference adds a line end before it splits
  with_end.append(text);
  with_end.append("\n");
  const Text whole = with_end.take();
  TextBuilder builder;
  if (flag(run, a, 1, false)) builder.append(*indention);
  bool first = true;
  for (const LineRange& line : split_lines(whole)) {
    if (!first) builder.append("\n");
    if (!first && (blank || line.end > line.begin)) builder.append(*indention);
    builder.append(whole, line.begin, line.end);
    run.heap().check_text(builder.size());
    first = false;
  }
  return run.heap().text(builder, text.markup);
}

Value filter_center(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("center", {"width"});
  const TextRef text = soft_text(run, v);
  const std::int64_t width = a.integer_or(0, 80), size = length(run, text);
  if (width <= size) return text;
  if (width > INT32_MAX) run.heap().check_text(SIZE_MAX);
  const std::int64_t pad = width - size, left = pad / 2 + (pad & width & 1);
  return padded(run, *text, static_cast<std::size_t>(left), static_cast<std::size_t>(pad - left));
}

Value filter_truncate(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("truncate", {"length", "killwords", "end", "leeway"});
  const Text dots("...");
  const Text& end = a.text(2) != nullptr ? *a.text(2) : dots;
  const auto end_size = static_cast<std::int64_t>(char_count(end));
  double limit = 255, leeway = 5;
  if (a.get(0) != nullptr && !to_double(*a.get(0), limit))
    throw Fault("truncate: length must be a number");
  if (a.given(3) && !to_double(*a.get(3), leeway)) throw Fault("truncate: leeway must be a number");
  if (limit < static_cast<double>(end_size))
    throw Fault(base::cat("truncate: expected length >= ", end_size, ", got ", limit));
  if (leeway < 0) throw Fault(base::cat("truncate: expected leeway >= 0, got ", leeway));
  if (static_cast<double>(length(run, v)) <= limit + leeway) return v;
  const Text& text = need_text(run, v, "truncate");
  const std::int64_t most = a.integer_or(0, 255);
  std::size_t cut = byte_of_char(text, static_cast<std::size_t>(most - end_size));
  if (!flag(run, a, 1, false)) {
    const std::size_t space = std::string_view(text.bytes).substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  TextBuilder builder;
  builder.append(text, 0, cut);
  builder.append(end);
  return run.heap().text(builder, text.markup);
}

Value filter_wordwrap(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const Text& text = need_text(run, v, "wordwrap");
  const Text line_end("\n");
  const Text& between = a.text(2) != nullptr ? *a.text(2) : line_end;
  const std::int64_t width = a.integer_or(0, 79);
  if (width <= 0 && !text.bytes.empty()) throw Fault(base::cat("wordwrap: invalid width ", width, " (must be > 0)"));
  const WrapStyle style{static_cast<std::size_t>(width), flag(run, a, 1, true), flag(run, a, 3, true)};
  run.heap().burn_bytes(8 * text.bytes.size());
  TextBuilder builder;
  bool first = true;
  for (const LineRange& line : split_lines(text)) {
    std::vector<std::uint32_t> codes;
    std::vector<std::size_t> places;  // of the characters' bytes, and the end
    for (std::size_t at = line.begin; at < line.end;) {
      const Character c = character_at(text.bytes, at);
      codes.push_back(c.code);
      places.push_back(at);
      at += c.bytes;
    }
    places.push_back(line.end);
    if (!std::exchange(first, false)) builder.append(between);
    bool begins = true;
    for (const CharRange& part : wrapped_lines(codes, style)) {
      if (!std::exchange(begins, false)) builder.append(between);
      builder.append(text, places[part.begin], places[part.end]);
      run.heap().check_text(builder.size());
    }
  }
  return run.heap().text(builder, between.markup);
}

constexpr Filter kFilters[] = {{"center", filter_center},
                               {"indent", filter_indent},
                               {"truncate", filter_truncate},
                               {"wordwrap", filter_wordwrap}};

}  // namespace

std::span<const Filter> layout_filters() {
  return kFilters;
}

}  // namespace quern::jinja
