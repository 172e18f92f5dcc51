#include "convert/tensor_names.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "convert/glob.hpp"
#include "convert/layer_groups.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::int64_t kMaxStack = 65536;
// Rules are tried one after the other for every tensor; the longest recipe has some 60.
constexpr std::size_t kMaxRules = 4096;
// In front of a model's names where it is a part of another model.
constexpr std::string_view kWrappers[] = {"language_model.", "model.language_model."};

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

struct Alternative {
  std::vector<std::string> from{}, then{};
  std::string times{};  // name of a matrix
  std::string stack{};  // expression, "" for one tensor
  std::string when{};   // expression, "" for always
};

Alternative read_alternative(const Json& value, const std::string& where) {
  if (!value.is_object()) return {.from = one_or_many(value, where)};
  base::JsonObject object(value, where);
  Alternative result{.from = one_or_many(object.get("from"), where)};
  if (const Json* then = object.find("then"); then != nullptr && !then->empty())
    result.then = one_or_many(*then, where);
  if (object.has("times")) result.times = object.get_string("times");
  if (object.has("when")) result.when = object.get_string("when");
  if (object.has("stack")) result.stack = object.get_string("stack");
  object.finish();
  return result;
}

// A rule's right side: a name, {"from", "then"}, or a list of either, to be tried in order.
std::vector<Alternative> alternatives(const Json& value, const std::string& where) {
  if (!value.is_array() || value.empty()) return {read_alternative(value, where)};
  std::vector<Alternative> result;
  for (const Json& element : value) result.push_back(read_alternative(element, where));
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

std::size_t stack_size(const std::string& expression, const Environment& values,
                       const std::string& where) {
  if (expression.empty()) return 0;
  const Json count = evaluate_all(expression, values, where);
  if (!count.is_number_integer() || count.get<std::int64_t>() < 1 ||
      count.get<std::int64_t>() > kMaxStack)
    base::reject(cat(where, ".stack"), "number of tensors", count.dump(), cat("1 .. ", kMaxStack));
  return count.get<std::size_t>();
}

// "model.layers.{l}.*": whether the number at {l} is `first` or more.
bool beyond(std::string_view pattern, std::string_view name, const Json& first) {
  const std::size_t place = pattern.find("{l}");
  if (place == std::string_view::npos || !first.is_number_integer() || name.size() <= place ||
      name.substr(0, place) != pattern.substr(0, place))
    return false;
  const std::string_view rest = name.substr(place);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > 9 || !glob_match(pattern.substr(place + 3), rest.substr(digits))) return false;
  return std::stoll(std::string(rest.substr(0, digits))) >= first.get<std::int64_t>();
}

}  // namespace

std::vector<std::string> element_names(std::vector<std::string> names, std::size_t i) {
  for (std::string& name : names) name = replaced(name, "{i}", cat(i));
  return names;
}

NameMap::NameMap(const Json& section, const checkpoint::Checkpoint& checkpoint, std::string where)
    : checkpoint_(checkpoint), where_(std::move(where)) {
  const std::size_t n =
      std::max({section["tensors"].size(), section["ignore_tensors"].size(), section["prefixes"].size()});
  if (n > kMaxRules)
    base::reject(where_, "number of rules about tensors", cat(n), cat("at most ", kMaxRules));
  for (const auto& [key, value] : section["tensors"].items()) rules_.push_back({key, value});
  for (const Json& entry : section["ignore_tensors"]) {
    if (entry.is_string()) {
      ignore_.push_back({entry.get<std::string>(), {}, {}});
      continue;
    }
    base::JsonObject object(entry, cat(where_, ".ignore_tensors"));
    Ignore ignore{object.get_string("name"), {}, object.has("beyond") ? object.get_string("beyond") : ""};
    for (const Json& size : object.has("dims") ? object.get("dims") : Json::array()) {
      if (!size.is_number_unsigned())
        base::reject(object.path_of("dims"), "not a number of dimensions");
      ignore.dims.push_back(size.get<std::size_t>());
    }
    object.finish();
    ignore_.push_back(std::move(ignore));
  }
  if (section.contains("numbers"))
    for (const auto& [letter, expression] : section["numbers"].items())
      numbers_.emplace_back(cat("{", letter, "}"), expression.get<std::string>());
  choose_prefix(section["prefixes"]);
}

// The prefix under which most names of the first layer exist; the first listed wins a tie. Models
// inside a wrapper (text part of a model of several kinds of input) have its prefix in front.
void NameMap::choose_prefix(const Json& prefixes) {
  std::vector<std::string> candidates = prefixes.get<std::vector<std::string>>();
  const std::size_t n_plain = candidates.size();
  if (checkpoint_.kind() == checkpoint::SourceKind::hugging_face) {
    for (std::size_t i = 0; i < n_plain; ++i)
      for (const std::string_view wrapper : kWrappers)
        candidates.push_back(cat(wrapper, candidates[i]));
    for (const char* bare : {"", "model.", "language_model.", "model.language_model."})
      candidates.emplace_back(bare);
  }
  std::size_t best_count = 0;
  if (!candidates.empty()) prefix_ = candidates.front();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::size_t count = 0;
    for (const Rule& rule : rules_)
      for (const Alternative& alternative :
           alternatives(rule.value, cat(where_, ".tensors.", rule.canonical)))
        for (const std::string& name : alternative.from)
          count += name.find("{p}") != std::string::npos &&
                   checkpoint_.find(first_name(name, candidates[i])) != nullptr;
    if (count <= best_count) continue;
    best_count = count;
    prefix_ = candidates[i];
    wrapped_ = i >= n_plain;
  }
}

const NameMap::Rule* NameMap::rule_for(std::string_view canonical, RuleMatch& match) const {
  // From the last: what a recipe says comes behind what it inherits, and decides.
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule)
    if (match_rule(rule->canonical, canonical, match)) return &*rule;
  return nullptr;
}

bool NameMap::has_rule(std::string_view canonical) const {
  RuleMatch match;
  return rule_for(canonical, match) != nullptr;
}

// The recipe's own numbers of the layer, for the right side of its rules.
void NameMap::add_numbers(const Environment& values, RuleMatch& match) const {
  const auto layer = std::find_if(match.numbers.begin(), match.numbers.end(),
                                  [](const auto& number) { return number.first == "{l}"; });
  if (numbers_.empty() || layer == match.numbers.end()) return;
  const Json index = std::stoll(layer->second.substr(0, 9));
  const Environment of_this = of_layer(values, index);
  for (const auto& [place, expression] : numbers_)
    match.numbers.emplace_back(
        place, evaluate_all(expression, of_this, cat(where_, ".numbers.", place)).dump());
}

TensorSource NameMap::source_of(std::string_view canonical, const Environment& values) const {
  RuleMatch match;
  const Rule* rule = rule_for(canonical, match);
  if (rule == nullptr) base::reject(where_, cat("the recipe has no source for tensor ", canonical));
  const std::string place = cat(where_, ".tensors.", rule->canonical);
  add_numbers(values, match);
  // The first alternative that the checkpoint has; without any the first, with all names for the
  // error.
  TensorSource missing;
  values.fuel->spend(weight_of(rule->value), place);
  for (const Alternative& alternative : alternatives(rule->value, place)) {
    if (!alternative.when.empty() && evaluate_all(alternative.when, values, place) != Json(true)) continue;
    TensorSource source{.canonical = std::string(canonical)};
    for (const std::string& name : alternative.from)
      for (const std::string& spelled : spellings(name))
        source.from.push_back(replaced(with_numbers(spelled, match), "*", match.last));
    for (const std::string& text : alternative.then)
      source.transforms.push_back(transform_text(with_numbers(text, match), values, place));
    if (!alternative.times.empty())
      for (const std::string& spelled : spellings(alternative.times))
        source.times.push_back(with_numbers(spelled, match));
    source.stack = stack_size(alternative.stack, values, place);
    const bool whole = source.times.empty() || find_first(source.times) != nullptr;
    if (whole &&
        find_first(source.stack > 0 ? element_names(source.from, 0) : source.from) != nullptr)
      return source;
    if (missing.from.empty())
      missing = std::move(source);
    else
      missing.from.insert(missing.from.end(), source.from.begin(), source.from.end());
  }
  return missing;
}

// A name with the prefix in its place; one without a place may stand inside a wrapper's prefix.
std::vector<std::string> NameMap::spellings(const std::string& name) const {
  if (name.find("{p}") != std::string::npos) return {replaced(name, "{p}", prefix_)};
  if (!wrapped_) return {name};
  return {name, cat(kWrappers[0], name), cat(kWrappers[1], name)};
}

const checkpoint::SourceTensor* NameMap::find_first(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const checkpoint::SourceTensor* tensor = checkpoint_.find(name)) return tensor;
  return nullptr;
}

bool NameMap::ignored(const checkpoint::SourceTensor& tensor, const Environment& values) const {
  for (const Ignore& ignore : ignore_) {
    const bool any = ignore.dims.empty();
    if (!any && std::find(ignore.dims.begin(), ignore.dims.end(), tensor.shape.size()) == ignore.dims.end())
      continue;
    if (ignore.beyond.empty() ? glob_match(ignore.pattern, tensor.name)
                              : beyond(replaced(ignore.pattern, "{p}", prefix_), tensor.name,
                                       evaluate_all(ignore.beyond, values, where_)))
      return true;
  }
  return false;
}

}  // namespace quern::convert
