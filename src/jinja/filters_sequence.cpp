// Filters over sequences: their items, their order, what they add up to.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/attribute_path.hpp"
#include "jinja/builtins.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"
#include "jinja/text_tools.hpp"

namespace quern::jinja {

namespace {

bool flag(Interpreter& run, const Arguments& a, std::size_t index) {
  const Value* value = a.get(index);
  return value != nullptr && truth(run, *value);
}

Value made_list(Interpreter& run, std::vector<Value> items) {
  return static_cast<Object*>(run.heap().list(std::move(items)));
}

Value filter_length(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("length", {});
  return length(run, v);
}

Value filter_first(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("first", {});
  Cursor cursor(run, v);
  Value item;
  return cursor.next(item) ? item : run.heap().undefined("No first item, sequence was empty.");
}

Value filter_last(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("last", {});
  if (!has_length(v) || as_kind<Loop>(v, ObjectKind::loop) != nullptr)
    throw Fault(base::cat("'", type_name(v), "' object is not reversible"));
  if (const std::int64_t size = length(run, v);
      size > 0 && as_dict(v) == nullptr && as_kind<View>(v, ObjectKind::view) == nullptr)
    return get_item(run, v, std::int64_t{-1});
  Value item;
  bool any = false;
  Cursor cursor(run, v);
  while (cursor.next(item)) any = true;
  return any ? item : run.heap().undefined("No last item, sequence was empty.");
}

Value filter_list(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("list", {});
  return made_list(run, run.items_of(v));
}

Value filter_reverse(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("reverse", {});
  if (!is_iterable(v)) throw Fault("reverse: argument must be iterable");
  return reversed_value(run, v);
}

Value filter_join(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("join", {"d", "attribute"});
  const TextRef separator = a.get(0) != nullptr ? to_text(run, *a.get(0)) : run.heap().text("");
  const AttributePath path(run, a.get_or(1, None{}));
  TextBuilder builder;
  bool first = true;
  Cursor cursor(run, v);
  for (Value item; cursor.next(item); first = false) {
    if (!first) builder.append(*separator);
    append_text(run, builder, path.read(run, item));
    run.heap().check_text(builder.size());
  }
  return run.heap().text(builder);
}

Value filter_items(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("items", {});
  const Dict* dict = as_dict(v);
  const bool nothing = is_undefined(v);
  auto at = std::make_shared<std::size_t>(0);
  return run.heap().make<Iterator>([&run, dict, nothing, at](Value& out) {
    if (nothing) return false;
    if (dict == nullptr) throw Fault("Can only get item pairs from a mapping.");
    if (*at >= dict->entries.size()) return false;
    const auto& [key, value] = dict->entries[(*at)++];
    out = static_cast<Object*>(run.heap().list({key, value}, ObjectKind::tuple));
    return true;
  });
}

struct Keyed {
  Value key, item;
};

void sort_keyed(Interpreter& run, std::vector<Keyed>& items, bool reverse) {
  const auto before = [&run](const Keyed& x, const Keyed& y) { return less(run, x.key, y.key); };
  if (reverse) std::reverse(items.begin(), items.end());  // so that equal ones keep their order
  std::stable_sort(items.begin(), items.end(), before);
  if (reverse) std::reverse(items.begin(), items.end());
}

std::vector<Value> items_only(std::vector<Keyed>& items) {
  std::vector<Value> out;
  for (Keyed& item : items) out.push_back(std::move(item.item));
  return out;
}

Value filter_sort(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("sort", {"reverse", "case_sensitive", "attribute"});
  const SortKey key(run, a.get_or(2, None{}), flag(run, a, 1), true);
  std::vector<Keyed> items;
  for (const Value& item : run.items_of(v)) items.push_back({key.of(run, item), item});
  sort_keyed(run, items, flag(run, a, 0));
  return made_list(run, items_only(items));
}

Value filter_dictsort(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("dictsort", {"case_sensitive", "by", "reverse"});
  const std::string by = a.text(1) != nullptr ? a.text(1)->bytes : "key";
  if (by != "key" && by != "value")
    throw Fault("dictsort: you can only sort by either \"key\" or \"value\"");
  if (is_undefined(v)) run.undefined_used(v);
  const Dict* dict = as_dict(v);
  if (dict == nullptr) throw Fault(base::cat("dictsort: expected a mapping, got ", type_name(v)));
  std::vector<Keyed> items;
  for (const auto& [key, value] : dict->entries) {
    const Value& sorted = by == "key" ? key : value;
    items.push_back({flag(run, a, 0) ? sorted : lower_case(run, sorted),
                     static_cast<Object*>(run.heap().list({key, value}, ObjectKind::tuple))});
  }
  sort_keyed(run, items, flag(run, a, 2));
  return made_list(run, items_only(items));
}

Value filter_unique(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("unique", {"case_sensitive", "attribute"});
  auto key = std::make_shared<SortKey>(run, a.get_or(1, None{}), flag(run, a, 0), false);
  Dict* seen = run.heap().make<Dict>();
  auto cursor = std::make_shared<Cursor>(run, v);
  return run.heap().make<Iterator>([&run, key, seen, cursor](Value& out) {
    while (cursor->next(out)) {
      const Value value = key->of(run, out);
      if (find(run, *seen, value) != nullptr) continue;
      insert(run, *seen, value, None{});
      return true;
    }
    return false;
  });
}

Value best(Interpreter& run, const Value& v, Arguments& a, bool greatest) {
  a.bind(greatest ? "max" : "min", {"case_sensitive", "attribute"});
  const SortKey key(run, a.get_or(1, None{}), flag(run, a, 0), false);
  Cursor cursor(run, v);
  Value out, item;
  if (!cursor.next(out)) return run.heap().undefined("No aggregated item, sequence was empty.");
  Value best_key = key.of(run, out);
  while (cursor.next(item)) {
    Value other = key.of(run, item);
    if (!(greatest ? less(run, best_key, other) : less(run, other, best_key))) continue;
    best_key = std::move(other);
    out = item;
  }
  return out;
}

Value filter_min(Interpreter& run, const Value& v, Arguments& a) {
  return best(run, v, a, false);
}

Value filter_max(Interpreter& run, const Value& v, Arguments& a) {
  return best(run, v, a, true);
}

Value filter_sum(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("sum", {"attribute", "start"});
  const AttributePath path(run, a.get_or(0, None{}));
  Value sum = a.get_or(1, std::int64_t{0});
  if (as_text(sum) != nullptr) throw Fault("sum() can't sum strings");
  Cursor cursor(run, v);
  for (Value item; cursor.next(item);) sum = arithmetic(run, Op::add, sum, path.read(run, item));
  return sum;
}

Value filter_batch(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("batch", {"linecount", "fill_with"}, 1);
  const std::int64_t size = need_integer(*a.get(0), "batch");
  const Value fill = a.get_or(1, None{});
  if (!is_none(fill) && size > static_cast<std::int64_t>(run.heap().limits().range_items))
    throw Fault("batch: too long a line");
  auto cursor = std::make_shared<Cursor>(run, v);
  auto ahead = std::make_shared<std::vector<Value>>();  // the item that began the next line
  return run.heap().make<Iterator>([&run, size, fill, cursor, ahead](Value& out) {
    std::vector<Value> line;
    line.swap(*ahead);
    bool ended = true;
    for (Value item; cursor->next(item);) {
      if (static_cast<std::int64_t>(line.size()) == size) {
        ahead->push_back(item);
        ended = false;
        break;
      }
      line.push_back(item);
    }
    if (line.empty() && ended) return false;
    while (ended && !is_none(fill) && static_cast<std::int64_t>(line.size()) < size)
      line.push_back(fill);
    out = made_list(run, std::move(line));
    return true;
  });
}

Value filter_slice(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("slice", {"slices", "fill_with"}, 1);
  const std::int64_t slices = need_integer(*a.get(0), "slice");
  if (slices == 0) throw Fault("integer division or modulo by zero");
  if (slices > static_cast<std::int64_t>(run.heap().limits().range_items))
    throw Fault("slice: too many slices");
  const std::vector<Value> items = run.items_of(v);
  const auto size = static_cast<std::int64_t>(items.size());
  std::vector<Value> out;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    const bool extra = i < size % slices;
    const auto count = static_cast<std::size_t>(size / slices + (extra ? 1 : 0));
    std::vector<Value> part(items.begin() + static_cast<std::ptrdiff_t>(at),
                            items.begin() + static_cast<std::ptrdiff_t>(at + count));
    at += count;
    if (a.given(1) && !extra) part.push_back(*a.get(1));
    out.push_back(made_list(run, std::move(part)));
  }
  auto cursor = std::make_shared<Cursor>(run, made_list(run, std::move(out)));
  return run.heap().make<Iterator>([cursor](Value& next) { return cursor->next(next); });
}

Value filter_groupby(Interpreter& run, const Value& v, Arguments& a) {
  a.bind("groupby", {"attribute", "default", "case_sensitive"}, 1);
  const Value otherwise = a.get_or(1, None{});
  const SortKey key(run, *a.get(0), flag(run, a, 2), false);
  const SortKey shown(run, *a.get(0), true, false);
  std::vector<Keyed> items;
  for (const Value& item : run.items_of(v)) items.push_back({key.of(run, item, otherwise), item});
  sort_keyed(run, items, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    std::vector<Value> group;
    for (end = begin; end < items.size() && equal(run, items[end].key, items[begin].key); ++end)
      group.push_back(items[end].item);
    if (end == begin) throw Fault("groupby: a key that does not equal itself");
    const Value name = shown.of(run, items[begin].item, otherwise);
    groups.push_back(static_cast<Object*>(
        run.heap().list({name, made_list(run, std::move(group))}, ObjectKind::group)));
  }
  return made_list(run, std::move(groups));
}

constexpr Filter kFilters[] = {
    {"batch", filter_batch},     {"count", filter_length},    {"dictsort", filter_dictsort},
    {"first", filter_first},     {"groupby", filter_groupby}, {"items", filter_items},
    {"join", filter_join},       {"last", filter_last},       {"length", filter_length},
    {"list", filter_list},       {"max", filter_max},         {"min", filter_min},
    {"reverse", filter_reverse}, {"slice", filter_slice},     {"sort", filter_sort},
    {"sum", filter_sum},         {"unique", filter_unique},
};

}  // namespace

std::span<const Filter> sequence_filters() {
  return kFilters;
}

// A text backwards; else what gives the items backwards.
Value reversed_value(Interpreter& run, const Value& value) {
  if (as_text(value) != nullptr) return get_slice(run, value, {None{}, None{}, std::int64_t{-1}});
  std::vector<Value> items = run.items_of(value);
  std::reverse(items.begin(), items.end());
  const bool once = as_kind<Iterator>(value, ObjectKind::iterator) == nullptr;
  const Value list = made_list(run, std::move(items));
  if (!once) return list;
  auto cursor = std::make_shared<Cursor>(run, list);
  return run.heap().make<Iterator>([cursor](Value& next) { return cursor->next(next); },
                                   "list_reverseiterator");
}

}  // namespace quern::jinja
