#include "grammar/schema_compiler.hpp"

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "grammar/json_schema.hpp"
#include "grammar/limits.hpp"
#include "grammar/number_nodes.hpp"

namespace quern::grammar {

Grammar SchemaCompiler::run() {
  const RuleId root = grammar_.add_rule("root", Inlining::never);
  grammar_.set_root(root);
  const SchemaSet set = conjunctions_.closed({0});
  rules_[set] = root;
  work_.emplace_back(set, root);
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const auto [next, rule] = work_[i];
    grammar_.define(rule, define(next));
  }
  return std::move(grammar_);
}

// Of its own: what $ref and allOf add is in the set as well.
bool SchemaCompiler::says_nothing(SchemaId id) const {
  const Schema& s = conjunctions_.schema(id);
  return !s.never && s.kinds == kAnyKind && !s.has_kinds && s.speaks_of == 0 && !s.values && s.choices.empty();
}

NodeId SchemaCompiler::value(const SchemaSet& set) {
  SchemaSet key = set;
  std::erase_if(key, [&](SchemaId id) { return says_nothing(id); });
  if (key.empty()) return json_.value();
  const auto found = rules_.find(key);
  if (found != rules_.end()) return grammar_.rule(found->second);
  const RuleId rule = grammar_.add_rule(rule_name(key));
  rules_[key] = rule;
  work_.emplace_back(key, rule);
  return grammar_.rule(rule);
}

// The last names of the schema's place, so that people find it: "address-zip", "tags-items".
std::string SchemaCompiler::rule_name(const SchemaSet& set) {
  const std::string& place = conjunctions_.schema(set.front()).place;
  std::string name;
  std::size_t begin = place.size(), parts = 0;
  while (begin != 0 && parts < 3) {
    begin = place.rfind('/', begin - 1);
    ++parts;
  }
  for (const char c : place.substr(begin)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
    else if (!name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min<std::size_t>(name.size(), 60));
  if (name.empty()) name = "schema";
  return unique_name(name);
}

// Names that json_nodes.hpp gives are taken from the start.
std::string SchemaCompiler::unique_name(const std::string& name) {
  std::string out = name;
  for (int n = 2; !names_.insert(out).second; ++n) out = base::cat(name, "-", n);
  return out;
}

std::string SchemaCompiler::at(const SchemaSet& set, std::string_view keyword) const {
  return conjunctions_.at(conjunctions_.schema(set.front()).place + "/" + std::string(keyword));
}

NodeId SchemaCompiler::define(const SchemaSet& set) {
  std::vector<NodeId> parts;
  for (const SchemaSet& alternative : conjunctions_.alternatives(set)) parts.push_back(leaf(alternative));
  return grammar_.choice(std::move(parts));
}

NodeId SchemaCompiler::leaf(const SchemaSet& set) {
  if (const auto values = conjunctions_.values(set)) {
    std::vector<NodeId> texts;
    for (const Value& value : *values) texts.push_back(grammar_.text(json_text(value)));
    return grammar_.choice(std::move(texts));
  }
  const unsigned kinds = conjunctions_.kinds_to_write(set);
  if (kinds == kAnyKind && std::all_of(set.begin(), set.end(), [&](SchemaId id) {
        return conjunctions_.schema(id).speaks_of == 0;
      }))
    return json_.value();
  std::vector<NodeId> parts;
  if ((kinds & kObject) != 0) parts.push_back(object(set));
  if ((kinds & kArray) != 0) parts.push_back(array(set));
  if ((kinds & kString) != 0) parts.push_back(string(set));
  if ((kinds & kNumber) != 0) parts.push_back(number(set, (kinds & kFraction) != 0));
  if ((kinds & kBoolean) != 0) parts.push_back(json_.boolean());
  if ((kinds & kNull) != 0) parts.push_back(json_.null());
  return grammar_.choice(std::move(parts));
}

// One rule for all places with the same limits, whose masks are then made once.
NodeId SchemaCompiler::string(const SchemaSet& set) {
  const auto [least, most] = conjunctions_.lengths(set);
  const bool plain = conjunctions_.plain_strings(set);
  if (plain && least == 0 && !most) return json_.string();
  if (most && *most < least) return grammar_.nothing();
  std::string key = base::cat(least, " ", most ? base::cat(*most) : "", " ");
  for (const SchemaId id : set) {
    for (const std::string& pattern : conjunctions_.schema(id).patterns) key += "/" + pattern;
    for (const std::string& format : conjunctions_.schema(id).formats) key += "\\" + format;
  }
  const auto found = strings_.find(key);
  if (found != strings_.end()) return grammar_.rule(found->second);
  const RuleId rule = grammar_.add_rule(unique_name("string"), Inlining::never);
  strings_[key] = rule;
  grammar_.define(rule, plain ? json_.string(least, most) : json_.string(conjunctions_.strings(set)));
  return grammar_.rule(rule);
}

namespace {

struct Signed {
  bool negative;
  Decimal decimal;
};

std::optional<Signed> decimal_of(const std::optional<Bound>& bound) {
  if (!bound || bound->text.empty()) return std::nullopt;
  Signed out{bound->text[0] == '-', {}};
  const std::string digits = bound->text.substr(out.negative ? 1 : 0);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  out.decimal = {digits.substr(0, point), point < digits.size() ? digits.substr(point + 1) : "", bound->exclusive};
  if (bound->value == 0) out.negative = false;
  return out;
}

// Numbers with the absolute values of a range, none when the range is empty.
std::optional<NodeId> magnitudes(Grammar& grammar, const Decimal& low, const std::optional<Decimal>& high) {
  DecimalRange range{low, high, 10, 0};
  if (low.whole.size() > 10) range.max_whole = 15;
  const std::size_t whole = high ? high->whole.size() : range.max_whole;
  range.max_fraction = whole < 15 ? std::min<std::size_t>(10, 15 - whole) : 0;  // exact as doubles
  return decimal_node(grammar, range);
}

}  // namespace

NodeId SchemaCompiler::number(const SchemaSet& set, bool fractions) {
  const std::vector<std::int64_t> multiples = conjunctions_.multiples(set);
  const auto low = conjunctions_.bound(set, true), high = conjunctions_.bound(set, false);
  if (!fractions || !multiples.empty()) {
    if (!low && !high && multiples.empty()) return json_.integer();
    const Conjunctions::IntegerRange range = conjunctions_.integers(set);
    return integer_node(grammar_, {range.low, range.high, multiples});
  }
  if (!low && !high) return json_.number();
  for (const auto& bound : {low, high})
    if (bound && bound->text.empty())
      base::reject(at(set, "minimum, maximum"), "bounds of numbers are supported with at most 15 digits",
                   base::cat(bound->value));
  if (low && high && (low->value > high->value || (low->value == high->value && (low->exclusive || high->exclusive))))
    return grammar_.nothing();
  const auto from = decimal_of(low), to = decimal_of(high);
  std::vector<NodeId> parts;
  if (!to || !to->negative) {  // 0 or more
    const Decimal least = from && !from->negative ? from->decimal : Decimal{};
    parts.push_back(*magnitudes(grammar_, least, to ? std::optional(to->decimal) : std::nullopt));
  }
  if (!from || from->negative) {  // below 0
    const Decimal least = to && to->negative ? to->decimal : Decimal{"0", "", true};
    parts.push_back(grammar_.sequence(
        {grammar_.text("-"), *magnitudes(grammar_, least, from ? std::optional(from->decimal) : std::nullopt)}));
  }
  return grammar_.choice(std::move(parts));
}

Grammar json_schema_grammar(std::string_view text, const std::string& where) {
  const SchemaDocument document = read_schema(text, where);
  return SchemaCompiler(document).run();
}

}  // namespace quern::grammar
