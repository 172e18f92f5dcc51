// Whether a value of enum or const is valid, and whether any value is.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/conjunction.hpp"

namespace quern::grammar {

bool Conjunctions::valid(const Value& value, SchemaId id) {
  const Schema& s = schema(id);
  if (fuel_ == 0 || --fuel_ == 0)
    base::reject(document_.where, "too many combinations of schemas");
  if (s.never || (s.kinds & value.kind) == 0) return false;
  if (s.values && std::none_of(s.values->begin(), s.values->end(),
                               [&](const Value& other) { return equal(value, other); }))
    return false;
  if (s.ref && !valid(value, *s.ref)) return false;
  for (const SchemaId part : s.all_of)
    if (!valid(value, part)) return false;
  for (const Alternatives& choice : s.choices) {
    const auto n = std::count_if(choice.schemas.begin(), choice.schemas.end(),
                                 [&](SchemaId part) { return valid(value, part); });
    if (n == 0 || (choice.exactly_one && !one_is_any_ && n != 1)) return false;
  }
  if ((value.kind & kNumber) != 0) return valid_number(value, s);
  if (value.kind == kString) return valid_string(value, id);
  if (value.kind == kArray) return valid_array(value, s);
  return value.kind != kObject || valid_object(value, s, id);
}

bool Conjunctions::valid_number(const Value& value, const Schema& s) const {
  if (s.minimum && (value.number < s.minimum->value || (s.minimum->exclusive && value.number == s.minimum->value)))
    return false;
  if (s.maximum && (value.number > s.maximum->value || (s.maximum->exclusive && value.number == s.maximum->value)))
    return false;
  return !s.multiple_of || std::fmod(value.number, static_cast<double>(*s.multiple_of)) == 0;
}

bool Conjunctions::valid_string(const Value& value, SchemaId id) {
  const std::u32string text = characters(value.text);
  if (plain_strings({id})) {
    const auto [least, most] = lengths({id});
    return text.size() >= least && (!most || text.size() <= *most);
  }
  return strings({id}).accepts(text);
}

bool Conjunctions::valid_array(const Value& value, const Schema& s) {
  const auto& items = value.items;
  if (items.size() < s.min_items || (s.max_items && items.size() > *s.max_items)) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i < s.prefix_items.size()) {
      if (!valid(items[i], s.prefix_items[i])) return false;
    } else if (s.items && !valid(items[i], *s.items)) {
      return false;
    }
    for (std::size_t j = 0; s.unique_items && j < i; ++j)
      if (equal(items[i], items[j])) return false;
  }
  return true;
}

bool Conjunctions::valid_object(const Value& value, const Schema& s, SchemaId id) {
  const auto& members = value.members;
  if (members.size() < s.min_properties || (s.max_properties && members.size() > *s.max_properties)) return false;
  for (const std::string& name : s.required)
    if (std::none_of(members.begin(), members.end(), [&](const auto& m) { return m.first == name; })) return false;
  for (const auto& [name, member] : members) {
    if (!name_allowed(closed({id}), name)) return false;
    for (const SchemaId part : of_property({id}, name))
      if (!valid(member, part)) return false;
  }
  return true;
}

// Depth bounds the work; beyond it nothing is certain.
bool Conjunctions::empty(const SchemaSet& set, const Written& written, int depth) {
  if (fuel_ == 0 || --fuel_ == 0) base::reject(document_.where, "too many combinations of schemas");
  const SchemaSet all = closed(set);
  if (never(all) || (kinds(all) & written.kinds) == 0) return true;
  for (const SchemaId id : all)
    for (const Alternatives& choice : schema(id).choices) {
      // Already chosen, or every alternative is impossible.
      const bool chosen = std::any_of(choice.schemas.begin(), choice.schemas.end(), [&](SchemaId part) {
        return std::binary_search(all.begin(), all.end(), part);
      });
      if (chosen || depth > 6) continue;
      const bool impossible = std::all_of(choice.schemas.begin(), choice.schemas.end(), [&](SchemaId part) {
        SchemaSet next = all;
        next.push_back(part);
        return empty(closed(std::move(next)), written, depth + 1);
      });
      if (impossible) return true;
    }
  return empty_leaf(all, written, depth);
}

bool Conjunctions::empty_leaf(const SchemaSet& set, const Written& written, int depth) {
  one_is_any_ = true;
  const auto list = values(set);
  one_is_any_ = false;
  if (list) return list->empty();
  const unsigned allowed = kinds(set) & written.kinds;
  if ((allowed & (kNull | kBoolean)) != 0) return false;
  if ((allowed & kNumber) != 0) {
    const IntegerRange range = integers(set);
    const auto low = bound(set, true), high = bound(set, false);
    const bool crossed = low && high && (low->value > high->value ||
                                         (low->value == high->value && (low->exclusive || high->exclusive)));
    const bool only_integers = (allowed & kFraction) == 0 || !multiples(set).empty();
    if (!crossed && (!only_integers || range.low <= range.high)) return false;
  }
  if ((allowed & kString) != 0) {
    const auto [least, most] = lengths(set);
    const bool none = plain_strings(set) ? most && *most < least : strings(set).empty();
    if (!none) return false;
  }
  if ((allowed & kArray) != 0 && !empty_array(set, depth)) return false;
  return (allowed & kObject) == 0 || empty_object(set, written, depth);
}

bool Conjunctions::empty_object(const SchemaSet& set, const Written& written, int depth) {
  std::size_t n_required = 0;
  std::uint32_t most = kUnboundedCount;
  for (const SchemaId id : set)
    if (const auto own = schema(id).max_properties) most = std::min(most, *own);
  for (const std::string& name : names(set)) {
    if (!required(set, name)) continue;
    ++n_required;
    if (written.names && !written.names->contains(name)) return true;
    // Choices that are still open may evaluate more names.
    const bool open = std::any_of(set.begin(), set.end(), [&](SchemaId id) { return schema(id).evaluated_only; });
    if (!open && !name_allowed(set, name)) return true;
    const SchemaSet value = of_property(set, name);
    if (never(value) || (depth < 6 && empty(value, {}, depth + 1))) return true;
  }
  return n_required > most;
}

bool Conjunctions::empty_array(const SchemaSet& set, int depth) {
  std::uint32_t least = 0, most = kUnboundedCount;
  for (const SchemaId id : set) {
    least = std::max(least, schema(id).min_items);
    if (const auto own = schema(id).max_items) most = std::min(most, *own);
  }
  if (least > most) return true;
  for (std::size_t i = 0; i < least && i <= n_prefix(set); ++i)
    if (depth < 6 && empty(of_item(set, i), {}, depth + 1)) return true;
  return false;
}

}  // namespace quern::grammar
