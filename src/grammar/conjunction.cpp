#include "grammar/conjunction.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/nfa_builder.hpp"
#include "grammar/regex.hpp"
#include "grammar/schema_formats.hpp"

namespace quern::grammar {

namespace {

constexpr std::int64_t kLargest = 999'999'999'999'999;  // exact as a double, with any reader

SchemaSet sorted(SchemaSet set) {
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

}  // namespace

std::string Conjunctions::at(const std::string& place) const {
  return base::cat(document_.where, ": #", base::printable(place, 200));
}

SchemaSet Conjunctions::closed(SchemaSet set) const {
  set = sorted(std::move(set));
  std::set<SchemaId> seen(set.begin(), set.end());
  SchemaSet work = set;
  while (!work.empty()) {
    const Schema& s = schema(work.back());
    work.pop_back();
    const auto add = [&](SchemaId id) {
      if (seen.insert(id).second) work.push_back(id);
    };
    if (s.ref) add(*s.ref);
    for (const SchemaId id : s.all_of) add(id);
  }
  return {seen.begin(), seen.end()};
}

std::vector<SchemaSet> Conjunctions::alternatives(const SchemaSet& set) {
  std::vector<SchemaSet> out;
  std::set<const Alternatives*> decided;
  choose(closed(set), decided, out);
  return out;
}

void Conjunctions::choose(const SchemaSet& set, std::set<const Alternatives*>& decided,
                          std::vector<SchemaSet>& out) {
  if (fuel_ == 0 || --fuel_ == 0) base::reject(document_.where, "too many combinations of schemas");
  if (never(set) || kinds(set) == 0) return;
  for (const SchemaId id : set) {
    for (const Alternatives& choice : schema(id).choices) {
      if (decided.contains(&choice)) continue;
      if (choice.exactly_one) check_exactly_one(set, choice);
      decided.insert(&choice);
      for (const SchemaId alternative : choice.schemas) {
        SchemaSet next = set;
        next.push_back(alternative);
        choose(closed(std::move(next)), decided, out);
      }
      decided.erase(&choice);
      return;
    }
  }
  if (out.size() >= kMaxAlternatives)
    base::reject(document_.where, "too many combinations of anyOf and oneOf", {}, base::cat("at most ", kMaxAlternatives));
  if (std::find(out.begin(), out.end(), set) == out.end()) out.push_back(set);
}

// What is written for one alternative must not be valid for another.
void Conjunctions::check_exactly_one(const SchemaSet& set, const Alternatives& choice) {
  if (!checked_.insert({&choice, set}).second) return;
  for (const SchemaId a : choice.schemas) {
    SchemaSet own = set;
    own.push_back(a);
    own = closed(std::move(own));
    if (empty(own, {})) continue;
    // Choices that are still open may add properties and kinds.
    std::size_t n_choices = 0;
    for (const SchemaId id : own) n_choices += schema(id).choices.size();
    Written written;
    if (n_choices == 1) {
      written.kinds = kinds_to_write(own);
      if (!writes_other_names(own)) {
        const std::vector<std::string> known = names(own);
        written.names.emplace(known.begin(), known.end());
      }
    }
    for (const SchemaId b : choice.schemas) {
      SchemaSet both = own;
      both.push_back(b);
      if (a != b && !empty(closed(std::move(both)), written))
        base::reject(at(choice.place),
                     base::cat("the alternatives at ", base::printable(schema(a).place, 80), " and ",
                               base::printable(schema(b).place, 80),
                               " may both hold; oneOf is supported when they exclude each other (use anyOf)"));
    }
  }
}

unsigned Conjunctions::kinds(const SchemaSet& set) const {
  unsigned out = kAnyKind;
  for (const SchemaId id : set) out &= schema(id).kinds;
  return out;
}

unsigned Conjunctions::kinds_to_write(const SchemaSet& set) const {
  unsigned speaks = 0;
  for (const SchemaId id : set) {
    if (schema(id).has_kinds) return kinds(set);
    speaks |= schema(id).speaks_of;
  }
  return speaks == 0 ? kinds(set) : kinds(set) & speaks;
}

bool Conjunctions::never(const SchemaSet& set) const {
  return std::any_of(set.begin(), set.end(), [&](SchemaId id) { return schema(id).never; });
}

std::optional<std::vector<Value>> Conjunctions::values(const SchemaSet& set) {
  const std::vector<Value>* list = nullptr;
  for (const SchemaId id : set)
    if (list == nullptr && schema(id).values) list = &*schema(id).values;
  if (list == nullptr) return std::nullopt;
  std::vector<Value> out;
  for (const Value& value : *list)
    if (std::all_of(set.begin(), set.end(), [&](SchemaId id) { return valid(value, id); }))
      out.push_back(value);
  return out;
}

SchemaSet Conjunctions::of_property(const SchemaSet& set, const std::string& name) {
  SchemaSet out;
  for (const SchemaId id : set) {
    const Schema& s = schema(id);
    bool known = false;
    if (const SchemaId* own = s.property(name)) {
      out.push_back(*own);
      known = true;
    }
    for (const auto& [regex, value] : s.pattern_properties) {
      if (!pattern(regex).accepts(characters(name))) continue;
      out.push_back(value);
      known = true;
    }
    if (!known && s.additional) out.push_back(*s.additional);
  }
  return closed(std::move(out));
}

bool Conjunctions::reaches(SchemaId from, SchemaId to) {
  const auto [found, added] = reach_.try_emplace(from);
  if (added) {
    std::vector<SchemaId> work{from};
    std::set<SchemaId>& seen = found->second;
    seen.insert(from);
    while (!work.empty()) {
      const Schema& s = schema(work.back());
      work.pop_back();
      const auto add = [&](SchemaId id) {
        if (seen.insert(id).second) work.push_back(id);
      };
      if (s.ref) add(*s.ref);
      for (const SchemaId id : s.all_of) add(id);
      for (const Alternatives& choice : s.choices)
        for (const SchemaId id : choice.schemas) add(id);
    }
  }
  return found->second.contains(to);
}

// By propertyNames and unevaluatedProperties; additionalProperties speaks through of_property().
bool Conjunctions::name_allowed(const SchemaSet& set, const std::string& name) {
  for (const SchemaId id : set) {
    const Schema& s = schema(id);
    if (s.property_names) {
      Value value;
      value.kind = kString;
      value.text = name;
      if (!valid(value, *s.property_names)) return false;
    }
    if (!s.evaluated_only) continue;
    const bool evaluated = std::any_of(set.begin(), set.end(), [&](SchemaId other) {
      if (!reaches(id, other)) return false;
      const Schema& o = schema(other);
      if (o.property(name) != nullptr || o.additional) return true;
      return std::any_of(o.pattern_properties.begin(), o.pattern_properties.end(), [&](const auto& entry) {
        return pattern(entry.first).accepts(characters(name));
      });
    });
    if (!evaluated) return false;
  }
  return true;
}

std::vector<std::string> Conjunctions::names(const SchemaSet& set) const {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const SchemaId id : set)
    for (const auto& [name, value] : schema(id).properties)
      if (seen.insert(name).second) out.push_back(name);
  for (const SchemaId id : set)
    for (const std::string& name : schema(id).required)
      if (seen.insert(name).second) out.push_back(name);
  return out;
}

bool Conjunctions::required(const SchemaSet& set, const std::string& name) const {
  return std::any_of(set.begin(), set.end(), [&](SchemaId id) {
    const auto& list = schema(id).required;
    return std::find(list.begin(), list.end(), name) != list.end();
  });
}

// A schema that says so, or one that names no property at all.
bool Conjunctions::writes_other_names(const SchemaSet& set) const {
  bool says_so = false, closed = false;
  for (const SchemaId id : set) {
    const Schema& s = schema(id);
    says_so = says_so || !s.pattern_properties.empty() || (s.additional && !schema(*s.additional).never);
    closed = closed || s.evaluated_only || s.additional;
  }
  return says_so || (names(set).empty() && !closed);
}

SchemaSet Conjunctions::of_item(const SchemaSet& set, std::size_t index) const {
  SchemaSet out;
  for (const SchemaId id : set) {
    const Schema& s = schema(id);
    if (index < s.prefix_items.size()) out.push_back(s.prefix_items[index]);
    else if (s.items) out.push_back(*s.items);
  }
  return closed(std::move(out));
}

std::size_t Conjunctions::n_prefix(const SchemaSet& set) const {
  std::size_t n = 0;
  for (const SchemaId id : set) n = std::max(n, schema(id).prefix_items.size());
  return n;
}

std::u32string characters(std::string_view text) {
  std::u32string out;
  char32_t c = 0;
  for (std::size_t at = 0; at < text.size() && next_char(text, at, c);) out += c;
  return out;
}

const Dfa& Conjunctions::pattern(const std::string& pattern) {
  const auto [found, added] = patterns_.try_emplace(pattern);
  if (added) found->second = regex_automaton(pattern, Matches::part, document_.where);
  return found->second;
}

bool Conjunctions::plain_strings(const SchemaSet& set) const {
  return std::all_of(set.begin(), set.end(), [&](SchemaId id) {
    return schema(id).patterns.empty() && schema(id).formats.empty();
  });
}

std::pair<std::uint32_t, std::optional<std::uint32_t>> Conjunctions::lengths(const SchemaSet& set) const {
  std::uint32_t least = 0;
  std::optional<std::uint32_t> most;
  for (const SchemaId id : set) {
    least = std::max(least, schema(id).min_length);
    if (const auto own = schema(id).max_length) most = std::min(most.value_or(*own), *own);
  }
  return {least, most};
}

const Dfa& Conjunctions::strings(const SchemaSet& set) {
  const auto [found, added] = strings_.try_emplace(set);
  if (!added) return found->second;
  const FiniteLimits limits{document_.where, kMaxDfaStates};
  const auto [least, most] = lengths(set);
  Grammar grammar(document_.where);
  const std::vector<std::uint8_t> none;
  Dfa out;
  if (!most || *most >= least) {
    const NodeId any = grammar.repeat(grammar.chars(CharSet::any()), least, most.value_or(kUnbounded));
    out = determinize(NfaBuilder(grammar, Alphabet::characters, none, limits).build(any), limits);
  }
  for (const SchemaId id : set) {
    for (const std::string& regex : schema(id).patterns)
      out = product(out, pattern(regex), Product::both, limits);
    for (const std::string& format : schema(id).formats)
      out = product(out, pattern("^(?:" + *format_pattern(format) + ")$"), Product::both, limits);
  }
  return found->second = std::move(out);
}

std::optional<Bound> Conjunctions::bound(const SchemaSet& set, bool lower) const {
  std::optional<Bound> out;
  for (const SchemaId id : set) {
    const auto& own = lower ? schema(id).minimum : schema(id).maximum;
    if (!own) continue;
    const bool tighter = !out || (lower ? own->value > out->value : own->value < out->value) ||
                         (own->value == out->value && own->exclusive);
    if (tighter) out = own;
  }
  return out;
}

Conjunctions::IntegerRange Conjunctions::integers(const SchemaSet& set) const {
  constexpr double kEdge = 9.2e18;
  const IntegerRange nothing{1, 0};
  const auto low = bound(set, true), high = bound(set, false);
  IntegerRange range{-kLargest, kLargest};
  if (low) {
    if (!low->integer && low->value >= kEdge) return nothing;
    const double up = std::max(std::ceil(low->value), -kEdge);
    range.low = low->integer ? *low->integer : static_cast<std::int64_t>(up);
    if (low->exclusive && range.low == INT64_MAX) return nothing;
    if (low->exclusive && (low->integer || up == low->value)) ++range.low;
  }
  if (high) {
    if (!high->integer && high->value <= -kEdge) return nothing;
    const double down = std::min(std::floor(high->value), kEdge);
    range.high = high->integer ? *high->integer : static_cast<std::int64_t>(down);
    if (high->exclusive && range.high == INT64_MIN) return nothing;
    if (high->exclusive && (high->integer || down == high->value)) --range.high;
  }
  // Without a bound on one side, further than usual when the other bound lies far out.
  if (!high && range.low > kLargest) range.high = INT64_MAX;
  if (!low && range.high < -kLargest) range.low = -INT64_MAX;
  return range;
}

std::vector<std::int64_t> Conjunctions::multiples(const SchemaSet& set) const {
  std::vector<std::int64_t> out;
  for (const SchemaId id : set)
    if (const auto own = schema(id).multiple_of; own && *own > 1) out.push_back(*own);
  return out;
}

}  // namespace quern::grammar
