#include "convert/rope_config.hpp"

#include <algorithm>
#include <cmath>

#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr base::EnumName<contract::RopeLayout> kLayouts[] = {
    {"half", contract::RopeLayout::half}, {"pairs", contract::RopeLayout::pairs}};
// Every spelling of a rule in configurations of the wild.
constexpr base::EnumName<RopeRule> kRules[] = {
    {"default", RopeRule::none},    {"none", RopeRule::none},
    {"linear", RopeRule::linear},   {"ntk", RopeRule::ntk},
    {"dynamic", RopeRule::dynamic}, {kBandsRule, RopeRule::bands},
    {"yarn", RopeRule::yarn},       {"longrope", RopeRule::longrope},
    {"su", RopeRule::longrope},     {"proportional", RopeRule::proportional}};
constexpr std::size_t kMaxLength = std::size_t{1} << 40;

// Values of the scaling object; null counts as absent everywhere.
class Scaling {
 public:
  Scaling(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object())
      base::reject(path_, "not an object", base::printable(object.dump(), 60));
  }

  const Json* find(std::string_view key) {
    used_.emplace_back(key);
    const auto found = object_.find(std::string(key));
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void number(std::string_view key, double& value) {
    if (const Json* found = find(key)) value = as_number(*found, key);
  }
  void number(std::string_view key, std::optional<double>& value) {
    if (const Json* found = find(key)) value = as_number(*found, key);
  }
  void numbers(std::string_view key, std::vector<double>& values) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_array()) base::reject(cat(path_, ".", key), "not a list of numbers");
    for (const Json& element : *found) values.push_back(as_number(element, key));
  }
  void length(std::string_view key, std::size_t& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    const double number = as_number(*found, key);
    if (!(number >= 1) || number > static_cast<double>(kMaxLength) || number != std::floor(number))
      base::reject(cat(path_, ".", key), "not a length", found->dump());
    value = static_cast<std::size_t>(number);
  }
  void flag(std::string_view key, bool& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean())
      base::reject(cat(path_, ".", key), "not true or false", found->dump());
    value = found->get<bool>();
  }
  std::vector<std::string> unknown() const {
    std::vector<std::string> result;
    for (const auto& [key, value] : object_.items())
      if (std::find(used_.begin(), used_.end(), key) == used_.end())
        result.push_back(cat(path_, ".", key));
    return result;
  }
  const std::string& path() const { return path_; }

 private:
  double as_number(const Json& value, std::string_view key) const {
    if (!value.is_number())
      base::reject(cat(path_, ".", key), "not a number", base::printable(value.dump(), 60));
    return value.get<double>();
  }
  const Json& object_;
  std::string path_;
  std::vector<std::string> used_;
};

RopeRule rule_of(std::string_view word, std::string_view where) {
  std::vector<std::string_view> known;
  for (const auto& entry : kRules) {
    if (entry.name == word) return entry.value;
    known.push_back(entry.name);
  }
  const std::string near = base::nearest(word, known);
  base::reject(where, cat("unknown RoPE rule \"", base::printable(word), "\"",
                          near.empty() ? "" : cat(" (did you mean \"", near, "\"?)"),
                          "; known: ", base::join(known)));
}

void read_rule(Scaling& scaling, RopeReading& reading) {
  const Json* word = scaling.find("rope_type");
  const Json* older = scaling.find("type");
  if (word == nullptr) word = older;
  if (word != nullptr) {
    if (!word->is_string())
      base::reject(cat(scaling.path(), ".rope_type"), "not a word", word->dump());
    reading.spec.rule = rule_of(word->get<std::string>(), cat(scaling.path(), ".rope_type"));
  } else if (scaling.find("factor") != nullptr) {
    reading.spec.rule = RopeRule::linear;
    reading.notices.push_back("RoPE scaling has a factor but no rule: taken as linear");
  }
}

// original: the trained length where the configuration gives it outside the object, else 0.
void read_scaling(const Json& object, std::string path, std::size_t original,
                  RopeReading& reading) {
  Scaling scaling(object, std::move(path));
  read_rule(scaling, reading);
  RopeSpec& spec = reading.spec;
  std::optional<double> factor;
  std::size_t nested = 0;
  scaling.number("factor", factor);
  scaling.length("original_max_position_embeddings", nested);
  if (original == 0) original = nested;
  scaling.number("low_freq_factor", spec.low_freq_factor);
  scaling.number("high_freq_factor", spec.high_freq_factor);
  scaling.number("beta_fast", spec.beta_fast);
  scaling.number("beta_slow", spec.beta_slow);
  scaling.number("attention_factor", spec.attention_factor);
  scaling.number("mscale", spec.mscale);
  scaling.number("mscale_all_dim", spec.mscale_all_dim);
  scaling.flag("truncate", spec.truncate);
  scaling.numbers("short_factor", spec.short_factor);
  scaling.numbers("long_factor", spec.long_factor);
  scaling.find("rope_theta");             // read by the recipe as the base
  scaling.find("partial_rotary_factor");  // read by the recipe as the dimensions
  scaling.find("finetuned");              // a remark of its publisher
  reading.unknown_keys = scaling.unknown();
  if (spec.rule == RopeRule::none) return;
  const bool ratio = spec.rule == RopeRule::longrope || spec.rule == RopeRule::yarn;
  if (!factor && ratio && original != 0)
    factor = static_cast<double>(reading.max_positions) / static_cast<double>(original);
  if (!factor && spec.rule == RopeRule::proportional) factor = 1;
  if (!factor)
    base::reject(scaling.path(), cat("rule ", rope_rule_name(spec.rule), " needs a factor"));
  if (spec.rule == RopeRule::bands && original == 0)
    base::reject(scaling.path(),
                 cat("rule ", kBandsRule, " needs original_max_position_embeddings"));
  spec.factor = *factor;
  // Dynamic scaling begins at the configured length whatever else is written.
  spec.original_length =
      original != 0 && spec.rule != RopeRule::dynamic ? original : reading.max_positions;
}

template <class T>
void announce(RopeReading& reading, std::string_view what, const T& value) {
  reading.notices.push_back(cat("adaptation: ", what, " = ", value));
}

// Beyond these no trained model lies, and products of them stay far from the ends of a double.
void check_wish(const char* option, const std::optional<double>& wish, double low, double high) {
  if (wish && !(*wish >= low && *wish <= high))
    base::usage_error(option, cat("not from ", low, " to ", high, ": ", *wish));
}

void check_wishes(const Adaptations& wishes) {
  check_wish("--rope-scale", wishes.rope_scale, 1e-3, 1e6);
  check_wish("--rope-freq-scale", wishes.rope_freq_scale, 1e-6, 1e3);
  check_wish("--rope-freq-base", wishes.rope_freq_base, 1.001, 1e15);
  check_wish("--yarn-ext-factor", wishes.yarn_ext_factor, 0, 1);
  check_wish("--yarn-attn-factor", wishes.yarn_attn_factor, 1e-3, 1e3);
  check_wish("--yarn-beta-fast", wishes.yarn_beta_fast, 1e-3, 1e6);
  check_wish("--yarn-beta-slow", wishes.yarn_beta_slow, 1e-3, 1e6);
  if (wishes.yarn_orig_ctx && (*wishes.yarn_orig_ctx == 0 || *wishes.yarn_orig_ctx > kMaxLength))
    base::usage_error("--yarn-orig-ctx", cat("not from 1 to ", kMaxLength, ": ", *wishes.yarn_orig_ctx));
}

template <class T>
void set_wish(const std::optional<T>& wish, T& value, std::string_view what, RopeReading& reading) {
  if (!wish) return;
  value = *wish;
  announce(reading, what, value);
}

// --rope-scale N stretches the context N times, --rope-freq-scale N by 1 / N.
std::optional<double> wished_factor(const Adaptations& wishes) {
  if (wishes.rope_freq_scale && wishes.rope_scale)
    base::usage_error("--rope-freq-scale", "cannot be given together with --rope-scale");
  std::optional<double> factor = wishes.rope_scale;
  if (wishes.rope_freq_scale) factor = 1 / *wishes.rope_freq_scale;
  return factor;
}

// Everything the checkpoint's own rule set is dropped with it.
void replace_rule(const std::string& word, bool has_factor, RopeReading& reading) {
  RopeSpec& spec = reading.spec;
  constexpr std::string_view kKnown[] = {"none", "linear", "ntk", "dynamic", "yarn"};
  if (std::find(std::begin(kKnown), std::end(kKnown), word) == std::end(kKnown))
    base::usage_error("--rope-scaling", cat("unknown rule \"", base::printable(word, 40),
                                            "\"; known: none, linear, ntk, dynamic, yarn"));
  spec.rule = rule_of(word, "--rope-scaling");
  if (spec.rule != RopeRule::none && !has_factor)
    base::usage_error("--rope-scaling", "needs --rope-scale or --rope-freq-scale");
  spec.attention_factor.reset();
  spec.mscale = spec.mscale_all_dim = 0;
  spec.divisors.clear();
  announce(reading, "RoPE rule", rope_rule_name(spec.rule));
}

void adapt_yarn(const Adaptations& wishes, RopeReading& reading) {
  RopeSpec& spec = reading.spec;
  const bool any = wishes.yarn_ext_factor || wishes.yarn_attn_factor || wishes.yarn_beta_fast ||
                   wishes.yarn_beta_slow;
  if (any && spec.rule != RopeRule::yarn)
    base::usage_error("--yarn-*", "needs a model with the YaRN rule or --rope-scaling yarn");
  set_wish(wishes.yarn_ext_factor, spec.extrapolation, "YaRN extrapolation", reading);
  set_wish(wishes.yarn_beta_fast, spec.beta_fast, "YaRN beta_fast", reading);
  set_wish(wishes.yarn_beta_slow, spec.beta_slow, "YaRN beta_slow", reading);
  if (!wishes.yarn_attn_factor) return;
  // On top of the rule's own temperature.
  spec.attention_factor =
      *wishes.yarn_attn_factor * (spec.factor <= 1 ? 1.0 : 0.1 * std::log(spec.factor) + 1);
  announce(reading, "YaRN attention factor", *spec.attention_factor);
}

void extend_positions(RopeReading& reading) {
  const double length = static_cast<double>(reading.spec.original_length) * reading.spec.factor;
  if (reading.spec.rule == RopeRule::none || !(length < static_cast<double>(kMaxLength))) return;
  if (length <= static_cast<double>(reading.max_positions)) return;
  reading.max_positions = static_cast<std::size_t>(length);
  announce(reading, "positions", reading.max_positions);
}

// Length up to which the rule stretches the trained one.
std::size_t stretched(const RopeSpec& spec, std::size_t configured) {
  if (spec.rule != RopeRule::dynamic && spec.rule != RopeRule::yarn) return configured;
  const double length = static_cast<double>(spec.original_length) * spec.factor;
  if (!(length < static_cast<double>(kMaxLength))) return configured;
  return std::max(configured, static_cast<std::size_t>(length));
}

}  // namespace

RopeReading read_rope(const Json& entry, std::string_view where) {
  base::JsonObject object(entry, std::string(where));
  RopeReading reading;
  const std::size_t width = object.get_size("dims", 2, 1 << 16);
  const double partial = object.get_double("partial");
  if (!(partial > 0 && partial <= 1))
    base::reject(object.path_of("partial"), "share of rotated dimensions", cat(partial),
                 "a number in (0, 1]");
  // The reference takes every second of the rotated dimensions and pairs it with one more.
  const auto rotated = static_cast<std::size_t>(static_cast<double>(width) * partial);
  reading.spec.dims = rotated + rotated % 2;
  reading.spec.exponent_dims = rotated;
  reading.spec.layout = object.get_enum("layout", kLayouts);
  reading.spec.base = object.get_double("base");
  reading.max_positions = object.get_size("max_positions", 1, kMaxLength);
  const Json* outside = object.find("original_length");
  const std::size_t original = outside == nullptr || outside->is_null()
                                   ? 0
                                   : object.get_size("original_length", 1, kMaxLength);
  const Json& scaling = object.get("scaling");
  object.finish();
  if (!scaling.is_null()) read_scaling(scaling, cat(where, ".scaling"), original, reading);
  if (reading.spec.rule == RopeRule::proportional) {
    reading.spec.dims = reading.spec.exponent_dims = width;
    reading.spec.rotated =
        static_cast<std::size_t>(std::floor(partial * static_cast<double>(width) / 2));
  }
  reading.max_positions = stretched(reading.spec, reading.max_positions);
  return reading;
}

bool any_wish(const Adaptations& wishes) {
  return wishes.rope_scaling || wishes.rope_scale || wishes.rope_freq_base ||
         wishes.rope_freq_scale || wishes.yarn_orig_ctx || wishes.yarn_ext_factor ||
         wishes.yarn_attn_factor || wishes.yarn_beta_fast || wishes.yarn_beta_slow;
}

void adapt_rope(const Adaptations& wishes, RopeReading& reading) {
  if (!any_wish(wishes)) return;
  check_wishes(wishes);
  const std::optional<double> factor = wished_factor(wishes);
  RopeSpec& spec = reading.spec;
  const std::size_t trained =
      spec.original_length != 0 ? spec.original_length : reading.max_positions;
  if (wishes.rope_scaling) {
    replace_rule(*wishes.rope_scaling, factor.has_value(), reading);
  } else if (factor && spec.rule == RopeRule::none) {
    spec.rule = RopeRule::linear;
    announce(reading, "RoPE rule", "linear");
  }
  set_wish(factor, spec.factor, "RoPE factor", reading);
  set_wish(wishes.rope_freq_base, spec.base, "RoPE base", reading);
  spec.original_length = trained;
  set_wish(wishes.yarn_orig_ctx, spec.original_length, "trained length", reading);
  adapt_yarn(wishes, reading);
  if (factor) extend_positions(reading);
}

}  // namespace quern::convert
