// Arrays and objects of schemas as expressions.
#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/limits.hpp"
#include "grammar/nfa_builder.hpp"
#include "grammar/schema_compiler.hpp"

namespace quern::grammar {

namespace {

constexpr std::size_t kMaxUnique = 8;    // values of the items of an array with uniqueItems
constexpr std::size_t kMaxPatterns = 5;  // of patternProperties in one place
constexpr std::size_t kMaxPlaces = 100'000;

}  // namespace

// Items of their own schemas first, then repetitions of one.
NodeId SchemaCompiler::array(const SchemaSet& set) {
  std::uint32_t least = 0, most = kUnboundedCount;
  bool unique = false, more = false;
  auto n_prefix = static_cast<std::uint32_t>(conjunctions_.n_prefix(set));
  for (const SchemaId id : set) {
    const Schema& s = conjunctions_.schema(id);
    least = std::max(least, s.min_items);
    if (s.max_items) most = std::min(most, *s.max_items);
    unique = unique || s.unique_items;
    more = more || s.items;
  }
  // Without "items" nothing beyond prefixItems is written, but for what minItems demands.
  if (n_prefix != 0 && !more) most = std::min(most, std::max(least, n_prefix));
  const SchemaSet rest = conjunctions_.of_item(set, n_prefix);
  if (conjunctions_.never(rest)) most = std::min(most, n_prefix);
  if (least > most) return grammar_.nothing();
  if (most == 0) return json_.in_brackets('[', grammar_.nothing(), true);
  if (unique && most > 1) return unique_array(set, least, most);
  n_prefix = std::min(n_prefix, most);
  std::vector<Arc> arcs;
  std::uint32_t place = 0, n_places = 2;
  for (std::uint32_t i = 0; i <= n_prefix; ++i) {
    if (i >= std::max(least, 1u)) arcs.push_back({place, 1, std::nullopt});
    if (i == n_prefix) break;
    NodeId item = value(conjunctions_.of_item(set, i));
    if (i != 0) item = grammar_.sequence({json_.comma(), item});
    arcs.push_back({place, n_places, item});
    place = n_places++;
  }
  if (most > n_prefix) {
    const NodeId item = value(rest);
    const NodeId next = grammar_.sequence({json_.comma(), item});
    const std::uint32_t first = n_prefix == 0 ? 1 : 0;  // the first item has no comma before it
    const std::uint32_t low = std::max(least, n_prefix + first) - n_prefix - first;
    const std::uint32_t high = most == kUnboundedCount ? kUnbounded : most - n_prefix - first;
    NodeId tail = grammar_.repeat(next, low, high);
    if (first != 0) tail = grammar_.sequence({item, tail});
    arcs.push_back({place, 1, tail});
  }
  return json_.in_brackets('[', grammar_.network(n_places, std::move(arcs)), least == 0);
}

// Items of few values: a place for each set of values that are used up.
NodeId SchemaCompiler::unique_array(const SchemaSet& set, std::uint32_t least, std::uint32_t most) {
  const SchemaSet item = conjunctions_.of_item(set, 0);
  std::optional<std::vector<Value>> values;
  const bool choices = std::any_of(item.begin(), item.end(), [&](SchemaId id) {
    return !conjunctions_.schema(id).choices.empty();
  });
  if (conjunctions_.n_prefix(set) == 0 && !choices) values = conjunctions_.values(item);
  if (!values || values->size() > kMaxUnique)
    base::reject(at(set, "uniqueItems"),
                 base::cat("\"uniqueItems\" is supported for items of an enum of at most ", kMaxUnique,
                           " values, or for at most one item"));
  const auto n = static_cast<std::uint32_t>(values->size());
  std::vector<Arc> arcs;
  const auto place = [](std::uint32_t used) { return used == 0 ? 0 : used + 1; };
  for (std::uint32_t used = 0; used < 1u << n; ++used) {
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(used));
    if (count >= std::max(least, 1u) && count <= most) arcs.push_back({place(used), 1, std::nullopt});
    for (std::uint32_t i = 0; i < n && count < most; ++i) {
      if ((used >> i & 1) != 0) continue;
      NodeId text = grammar_.text(json_text((*values)[i]));
      if (used != 0) text = grammar_.sequence({json_.comma(), text});
      arcs.push_back({place(used), place(used | 1u << i), text});
    }
  }
  return json_.in_brackets('[', grammar_.network((1u << n) + 1, std::move(arcs)), least == 0);
}

namespace {

struct Member {
  NodeId node;  // "name": value
  bool required;
};

}  // namespace

// Properties in the order of the schema, those not required may be left out, then others. A place
// of the network is (properties decided, members written, as far as that counts).
NodeId SchemaCompiler::object(const SchemaSet& set) {
  std::uint32_t least = 0, most = kUnboundedCount, n_required = 0;
  for (const SchemaId id : set) {
    least = std::max(least, conjunctions_.schema(id).min_properties);
    if (const auto own = conjunctions_.schema(id).max_properties) most = std::min(most, *own);
  }
  const std::vector<std::string> names = conjunctions_.names(set);
  std::vector<Member> members;
  for (const std::string& name : names) {
    const bool required = conjunctions_.required(set, name);
    const SchemaSet inside = conjunctions_.of_property(set, name);
    n_required += required ? 1 : 0;
    if (!conjunctions_.name_allowed(set, name) || conjunctions_.never(inside)) {
      if (required) return grammar_.nothing();
      continue;
    }
    const NodeId key = grammar_.text(json_quoted(name));
    members.push_back({grammar_.sequence({key, json_.colon(), value(inside)}), required});
  }
  std::optional<NodeId> other;
  if (conjunctions_.writes_other_names(set)) other = other_member(set, names);
  if (other && least > std::max(n_required, 1u))
    base::reject(at(set, "minProperties"),
                 "\"minProperties\" above 1 is supported only where all names are in \"properties\"");
  const bool counts = least > 1 || most != kUnboundedCount;
  const std::uint32_t cap = !counts ? 1 : std::max({least, most == kUnboundedCount ? 0 : most, 1u});
  const auto n = static_cast<std::uint32_t>(members.size());
  const std::uint32_t width = std::min(cap, n + (other ? cap : 0)) + 1;
  if (std::size_t{n + 1} * width > kMaxPlaces)
    base::reject(at(set, "maxProperties"), "too many properties to count");
  if (most == 0) return n_required == 0 && least == 0 ? json_.in_brackets('{', grammar_.nothing(), true) : grammar_.nothing();
  const auto place = [&](std::uint32_t i, std::uint32_t count) {
    const std::uint32_t k = i * width + std::min(count, width - 1);
    return k == 0 ? 0 : k + 1;
  };
  std::vector<Arc> arcs;
  const auto write = [&](NodeId member, std::uint32_t from, std::uint32_t to, std::uint32_t count) {
    if (counts && count >= most) return;
    const NodeId node = count == 0 ? member : grammar_.sequence({json_.comma(), member});
    arcs.push_back({place(from, count), place(to, count + 1), node});
  };
  for (std::uint32_t count = 0; count < width; ++count) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!members[i].required) arcs.push_back({place(i, count), place(i + 1, count), std::nullopt});
      write(members[i].node, i, i + 1, count);
    }
    if (other) write(*other, n, n, count);
    if (count >= std::max(least, 1u)) arcs.push_back({place(n, count), 1, std::nullopt});
  }
  return json_.in_brackets('{', grammar_.network((n + 1) * width + 1, std::move(arcs)),
                           least == 0 && n_required == 0);
}

namespace {

Dfa names_automaton(Grammar& grammar, NodeId node, const FiniteLimits& limits) {
  const std::vector<std::uint8_t> none;
  return determinize(NfaBuilder(grammar, Alphabet::characters, none, limits).build(node), limits);
}

}  // namespace

// Names are told apart by the patterns that they match: one kind of member for each combination.
NodeId SchemaCompiler::other_member(const SchemaSet& set, const std::vector<std::string>& names) {
  const FiniteLimits limits{at(set, "patternProperties"), kMaxDfaStates};
  std::vector<std::string> patterns;
  std::vector<NodeId> known;
  Dfa free = names_automaton(grammar_, grammar_.repeat(grammar_.chars(CharSet::any()), 0), limits);
  bool any_name = names.empty();
  for (const std::string& name : names) known.push_back(grammar_.text(name));
  if (!names.empty())
    free = product(free, names_automaton(grammar_, grammar_.choice(std::move(known)), limits),
                   Product::first_only, limits);
  for (const SchemaId id : set) {
    const Schema& s = conjunctions_.schema(id);
    for (const auto& [pattern, inside] : s.pattern_properties)
      if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
    if (!s.property_names) continue;
    any_name = false;
    const SchemaSet of_names = conjunctions_.closed({*s.property_names});
    Dfa allowed;
    if (const auto values = conjunctions_.values(of_names)) {
      std::vector<NodeId> texts;
      for (const Value& value : *values)
        if (value.kind == kString) texts.push_back(grammar_.text(value.text));
      allowed = names_automaton(grammar_, grammar_.choice(std::move(texts)), limits);
    } else if ((conjunctions_.kinds(of_names) & kString) != 0 && !conjunctions_.never(of_names)) {
      for (const SchemaId part : of_names)
        if (!conjunctions_.schema(part).choices.empty())
          base::reject(at(set, "propertyNames"), "anyOf and oneOf are not supported in \"propertyNames\"");
      allowed = conjunctions_.strings(of_names);
    }
    free = product(free, allowed, Product::both, limits);
  }
  if (patterns.size() > kMaxPatterns)
    base::reject(limits.where, "too many patterns in one place", base::cat(patterns.size()), base::cat("at most ", kMaxPatterns));
  std::vector<NodeId> kinds;
  for (std::uint32_t matched = 0; matched < 1u << patterns.size(); ++matched) {
    Dfa keys = free;
    for (std::size_t i = 0; i < patterns.size(); ++i)
      keys = product(keys, conjunctions_.pattern(patterns[i]),
                     (matched >> i & 1) != 0 ? Product::both : Product::first_only, limits);
    SchemaSet inside;
    bool opened = any_name && patterns.empty(), closed = false;
    for (const SchemaId id : set) {
      const Schema& s = conjunctions_.schema(id);
      bool own = false;
      for (const auto& [pattern, part] : s.pattern_properties) {
        const auto index = std::find(patterns.begin(), patterns.end(), pattern) - patterns.begin();
        if ((matched >> index & 1) == 0) continue;
        inside.push_back(part);
        own = true;
      }
      if (!own && s.additional) inside.push_back(*s.additional);
      opened = opened || own || s.additional;
      closed = closed || s.evaluated_only;
    }
    if (!opened && !(names.empty() && patterns.empty() && !closed)) continue;
    inside = conjunctions_.closed(std::move(inside));
    if (keys.empty() || conjunctions_.never(inside)) continue;
    const NodeId key = any_name && patterns.empty() ? json_.string() : json_.string(keys);
    kinds.push_back(grammar_.sequence({key, json_.colon(), value(inside)}));
  }
  return grammar_.choice(std::move(kinds));
}

}  // namespace quern::grammar
