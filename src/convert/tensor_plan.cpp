#include "convert/tensor_plan.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "convert/glob.hpp"
#include "convert/transform.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::string_view kHead = "head.weight";
constexpr std::string_view kTokens = "embedding.tokens";

bool is_number_place(std::string_view rule) {
  return rule.size() >= 3 && rule[0] == '{' && rule[1] >= 'a' && rule[1] <= 'z' && rule[2] == '}';
}

// "decoder.{l}.0.q.*" against "decoder.12.0.q.bias": {l} = 12, * = bias.
bool match_rule(std::string_view rule, std::string_view name, RuleMatch& match) {
  match = {};
  while (!rule.empty()) {
    if (is_number_place(rule)) {
      const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
      if (digits == 0) return false;
      match.numbers.emplace_back(rule.substr(0, 3), name.substr(0, digits));
      rule.remove_prefix(3);
      name.remove_prefix(digits);
    } else if (rule == "*") {
      match.last = name;
      return !name.empty() && name.find('.') == std::string_view::npos;
    } else {
      if (name.empty() || name.front() != rule.front()) return false;
      rule.remove_prefix(1);
      name.remove_prefix(1);
    }
  }
  return name.empty();
}

std::string with_numbers(std::string text, const RuleMatch& match) {
  for (const auto& [place, digits] : match.numbers) text = replaced(text, place, digits);
  return text;
}

// A name as it stands in the first layer, for the choice of a prefix.
std::string first_name(const std::string& name, const std::string& prefix) {
  std::string text = replaced(replaced(name, "{p}", prefix), "*", "weight");
  for (std::size_t at = 0; at + 2 < text.size(); ++at)
    if (is_number_place(std::string_view(text).substr(at))) text.replace(at, 3, "0");
  return text;
}

std::vector<std::string> one_or_many(const Json& value, std::string_view where) {
  if (value.is_string()) return {value.get<std::string>()};
  std::vector<std::string> result;
  if (!value.is_array() || value.empty())
    base::reject(where, "not a tensor name or a list of them");
  for (const Json& element : value) {
    if (!element.is_string()) base::reject(where, "not a tensor name");
    result.push_back(element.get<std::string>());
  }
  return result;
}

// "group_rows $n_heads 0 $d_k" -> "group_rows 32 0 128".
std::string transform_text(const std::string& text, const Environment& values,
                           std::string_view where) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!result.empty()) result += ' ';
    const bool computed = word.find_first_of("$(") != std::string::npos;
    result += computed ? evaluate_all(word, values, where).dump() : word;
    at = end + 1;
  }
  return result;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t n : shape) text += cat(text.size() > 1 ? ", " : "", n);
  return text + "]";
}

bool same_values(const checkpoint::SourceTensor& a, const checkpoint::SourceTensor& b) {
  return a.type == b.type && a.shape == b.shape && a.bytes.size() == b.bytes.size() &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

void check_shape(const contract::TensorSpec& spec, const checkpoint::SourceTensor& tensor,
                 const TensorSource& source, std::string_view where) {
  const std::string place = cat(where, ": tensor ", base::printable(tensor.name));
  const RowView view(tensor, source.transforms, place);
  const bool vector = spec.rows == 1 && view.columns() == 1;
  const bool same = vector ? view.rows() == spec.columns
                           : view.rows() == spec.rows && view.columns() == spec.columns;
  if (same) return;
  base::reject(place, cat("shape for ", spec.name), shape_text(tensor.shape),
               source.transforms.empty() ? shape_text({spec.rows, spec.columns})
                                         : cat(shape_text({spec.rows, spec.columns}), " after ",
                                               source.transforms.size(), " transforms"));
}

[[noreturn]] void reject_missing(const contract::TensorSpec& spec, const TensorSource& source,
                                 const checkpoint::Checkpoint& checkpoint) {
  std::vector<std::string_view> tried(source.from.begin(), source.from.end()), known;
  for (const checkpoint::SourceTensor& tensor : checkpoint.tensors()) known.push_back(tensor.name);
  const std::string near = base::nearest(source.from.front(), known);
  base::reject(checkpoint.where(),
               cat("missing tensor for ", spec.name, ": no ", base::join(tried, " and no "),
                   near.empty() ? "" : cat(" (nearest: ", base::printable(near), ")")));
}

}  // namespace

NameMap::NameMap(const Json& section, const checkpoint::Checkpoint& checkpoint, std::string where)
    : checkpoint_(checkpoint), where_(std::move(where)) {
  for (const auto& [key, value] : section["tensors"].items()) rules_.push_back({key, value});
  for (const Json& entry : section["ignore_tensors"]) {
    if (entry.is_string()) {
      ignore_.push_back({entry.get<std::string>(), {}});
      continue;
    }
    base::JsonObject object(entry, cat(where_, ".ignore_tensors"));
    Ignore ignore{object.get_string("name"), {}};
    for (const Json& n : object.get("dims")) {
      if (!n.is_number_unsigned())
        base::reject(object.path_of("dims"), "not a number of dimensions");
      ignore.dims.push_back(n.get<std::size_t>());
    }
    object.finish();
    ignore_.push_back(std::move(ignore));
  }
  prefix_ = choose_prefix(section["prefixes"]);
}

// The prefix under which most names of the first layer exist; the first listed wins a tie.
std::string NameMap::choose_prefix(const Json& prefixes) const {
  std::string best;
  std::size_t best_count = 0;
  for (const Json& element : prefixes) {
    const std::string prefix = element.get<std::string>();
    std::size_t count = 0;
    for (const Rule& rule : rules_)
      for (const std::string& name :
           one_or_many(rule.value.is_object() ? rule.value.value("from", Json()) : rule.value,
                       cat(where_, ".tensors.", rule.canonical))) {
        if (name.find("{p}") == std::string::npos) continue;
        count += checkpoint_.find(first_name(name, prefix)) != nullptr;
      }
    if (count > best_count ||
        (best_count == 0 && best.empty() && count == 0 && &element == &prefixes.front())) {
      best = prefix;
      best_count = count;
    }
  }
  return best;
}

const NameMap::Rule* NameMap::rule_for(std::string_view canonical, RuleMatch& match) const {
  for (const Rule& rule : rules_)
    if (match_rule(rule.canonical, canonical, match)) return &rule;
  return nullptr;
}

bool NameMap::has_rule(std::string_view canonical) const {
  RuleMatch match;
  return rule_for(canonical, match) != nullptr;
}

TensorSource NameMap::source_of(std::string_view canonical, const Environment& values) const {
  RuleMatch match;
  const Rule* rule = rule_for(canonical, match);
  if (rule == nullptr) base::reject(where_, cat("the recipe has no source for tensor ", canonical));
  const std::string place = cat(where_, ".tensors.", rule->canonical);
  TensorSource source{.canonical = std::string(canonical)};
  const Json* from = &rule->value;
  if (rule->value.is_object()) {
    base::JsonObject object(rule->value, place);
    from = &object.get("from");
    if (const Json* then = object.find("then"))
      for (const std::string& text :
           then->empty() ? std::vector<std::string>{} : one_or_many(*then, place))
        source.transforms.push_back(transform_text(with_numbers(text, match), values, place));
    object.finish();
  }
  for (const std::string& name : one_or_many(*from, place))
    source.from.push_back(
        replaced(with_numbers(replaced(name, "{p}", prefix_), match), "*", match.last));
  return source;
}

const checkpoint::SourceTensor* NameMap::find_first(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const checkpoint::SourceTensor* tensor = checkpoint_.find(name)) return tensor;
  return nullptr;
}

bool NameMap::ignored(const checkpoint::SourceTensor& tensor) const {
  for (const Ignore& ignore : ignore_) {
    const bool any = ignore.dims.empty();
    if (glob_match(ignore.pattern, tensor.name) &&
        (any || std::find(ignore.dims.begin(), ignore.dims.end(), tensor.shape.size()) !=
                    ignore.dims.end()))
      return true;
  }
  return false;
}

std::optional<bool> tied_by_tensors(const NameMap& names, const Environment& values) {
  if (!names.has_rule(kHead) || !names.has_rule(kTokens)) return std::nullopt;
  const checkpoint::SourceTensor* head = names.find_first(names.source_of(kHead, values).from);
  const checkpoint::SourceTensor* tokens = names.find_first(names.source_of(kTokens, values).from);
  return head == nullptr || tokens == nullptr || same_values(*head, *tokens);
}

void plan_tensors(const NameMap& names, const Environment& values,
                  const checkpoint::Checkpoint& checkpoint, Resolved& resolved) {
  std::set<std::string, std::less<>> used;
  for (const contract::TensorSpec& spec : contract::expected_tensors(resolved.contract)) {
    if (spec.computed) {
      resolved.tensors.push_back({.canonical = spec.name});
      continue;
    }
    TensorSource source = names.source_of(spec.name, values);
    const checkpoint::SourceTensor* tensor = names.find_first(source.from);
    if (tensor == nullptr) reject_missing(spec, source, checkpoint);
    check_shape(spec, *tensor, source, checkpoint.where());
    used.insert(tensor->name);
    source.from = {tensor->name};
    resolved.tensors.push_back(std::move(source));
  }
  // A stored copy of a tied head is the embedding once more.
  if (resolved.contract.head.tied && names.has_rule(kHead))
    if (const auto* copy = names.find_first(names.source_of(kHead, values).from);
        copy != nullptr && used.insert(copy->name).second)
      resolved.notices.push_back(cat(copy->name, " equals the token embedding: stored once"));
  std::vector<std::string> surplus;
  for (const checkpoint::SourceTensor& tensor : checkpoint.tensors()) {
    if (used.count(tensor.name) != 0) continue;
    if (names.ignored(tensor))
      resolved.ignored.push_back(tensor.name);
    else
      surplus.push_back(base::printable(tensor.name, 100));
  }
  if (surplus.empty()) return;
  const std::size_t count = surplus.size();
  surplus.resize(std::min<std::size_t>(count, 5));
  base::reject(checkpoint.where(),
               cat(count, count == 1 ? " tensor is" : " tensors are",
                   " neither used nor on the recipe's ignore list: ",
                   base::join({surplus.begin(), surplus.end()}), count > 5 ? ", ..." : ""));
}

}  // namespace quern::convert
