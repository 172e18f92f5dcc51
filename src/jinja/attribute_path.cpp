#include "jinja/attribute_path.hpp"

#include <algorithm>

#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/numbers.hpp"

namespace quern::jinja {

namespace {

std::vector<Text> split_at(const Text& text, char separator) {
  std::vector<Text> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = std::min(text.bytes.find(separator, begin), text.bytes.size());
    TextBuilder builder;
    builder.append(text, begin, end);
    parts.push_back(builder.take());
    if (end == text.bytes.size()) return parts;
    begin = end + 1;
  }
}

}  // namespace

AttributePath::AttributePath(Interpreter& run, const Value& attribute) {
  if (is_none(attribute)) return;
  const Text* text = as_text(attribute);
  if (text == nullptr) {
    parts_.push_back(attribute);
    return;
  }
  for (Text& part : split_at(*text, '.')) {
    const bool digits =
        !part.bytes.empty() && std::all_of(part.bytes.begin(), part.bytes.end(),
                                           [](char c) { return c >= '0' && c <= '9'; });
    std::int64_t index = 0;
    if (digits && parse_integer(part.bytes, 10, index))
      parts_.push_back(index);
    else
      parts_.push_back(run.heap().text(std::move(part)));
  }
}

Value AttributePath::read(Interpreter& run, Value item, const Value& otherwise) const {
  for (const Value& part : parts_) {
    item = get_item(run, item, part);
    if (is_undefined(item) && !is_none(otherwise)) item = otherwise;
  }
  return item;
}

SortKey::SortKey(Interpreter& run, const Value& attribute, bool case_sensitive, bool several)
    : case_sensitive_(case_sensitive), several_(several) {
  const Text* text = as_text(attribute);
  if (!several || text == nullptr) {
    paths_.emplace_back(run, attribute);
    return;
  }
  for (Text& part : split_at(*text, ','))
    paths_.emplace_back(run, run.heap().text(std::move(part)));
}

Value SortKey::of(Interpreter& run, const Value& item, const Value& otherwise) const {
  const auto one = [&](const AttributePath& path) {
    Value value = path.read(run, item, otherwise);
    return case_sensitive_ ? value : lower_case(run, value);
  };
  if (!several_) return one(paths_[0]);
  std::vector<Value> key;
  for (const AttributePath& path : paths_) key.push_back(one(path));
  return static_cast<Object*>(run.heap().list(std::move(key)));
}

}  // namespace quern::jinja
