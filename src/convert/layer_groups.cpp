#include "convert/layer_groups.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "contract/limits.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr std::size_t kLongestPattern = 64;

// How many layers from `first` on equal the one `period` layers later.
std::vector<std::vector<std::size_t>> runs_of(const std::vector<std::string>& blocks) {
  std::vector<std::vector<std::size_t>> runs(kLongestPattern + 1);
  for (std::size_t period = 1; period <= kLongestPattern; ++period) {
    runs[period].assign(blocks.size(), 0);
    for (std::size_t i = blocks.size(); i-- > 0;)
      if (i + period < blocks.size() && blocks[i] == blocks[i + period])
        runs[period][i] = 1 + (i + 1 < blocks.size() ? runs[period][i + 1] : 0);
  }
  return runs;
}

}  // namespace

std::vector<contract::LayerGroup> group_layers(const std::vector<std::string>& blocks) {
  const std::vector<std::vector<std::size_t>> runs = runs_of(blocks);
  std::vector<contract::LayerGroup> groups;
  std::size_t at = 0;
  while (at < blocks.size()) {
    std::size_t best = 1, repeat = 1;
    for (std::size_t period = 1; period <= kLongestPattern; ++period) {
      const std::size_t times = 1 + runs[period][at] / period;
      if (times > 1 && times * period > best * repeat) {
        best = period;
        repeat = times;
      }
    }
    const auto first = blocks.begin() + static_cast<std::ptrdiff_t>(at);
    groups.push_back({{first, first + static_cast<std::ptrdiff_t>(best)}, repeat, false});
    at += best * repeat;
  }
  return groups;
}

Environment of_layer(const Environment& environment, const Json& layer) {
  Environment result = environment;
  result.find = [&layer, &environment](std::string_view path) {
    return path == "layer" ? &layer : environment.find(path);
  };
  return result;
}

namespace {

std::int64_t layer_count(const Json& count, const std::string& where) {
  const bool number = count.is_number_unsigned() || count.is_number_integer();
  if (!number) base::reject(where, "not a number of layers", base::printable(count.dump(), 60));
  const std::int64_t n = count.is_number_unsigned() && count.get<std::uint64_t>() > INT64_MAX
                             ? INT64_MAX
                             : count.get<std::int64_t>();
  if (n < 1 || n > static_cast<std::int64_t>(contract::kMaxLayers))
    base::reject(where, "number of layers", count.dump(), cat("1 .. ", contract::kMaxLayers));
  return n;
}

// "share": {"period": p, "by": expression over $layer}: neighbouring layers of one value form a
// group whose repetitions of p layers use the same weights.
Json shared_groups(const std::vector<std::string>& blocks, const Json& share,
                   const Environment& environment, const std::string& where) {
  base::JsonObject object(share, where);
  const Json period = evaluate_all(object.get("period"), environment, object.path_of("period"));
  const Expression by = parse_expression(object.get_string("by"), object.path_of("by"));
  object.finish();
  const auto p = static_cast<std::size_t>(layer_count(period, object.path_of("period")));
  std::vector<Json> values;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Json layer = i;
    values.push_back(evaluate(by, of_layer(environment, layer), where).value_or(Json()));
  }
  Json groups = Json::array();
  for (std::size_t at = 0, end = 0; at < blocks.size(); at = end) {
    while (end < blocks.size() && values[end] == values[at]) ++end;
    bool periodic = (end - at) % p == 0;
    for (std::size_t i = at; periodic && i + p < end; ++i) periodic = blocks[i] == blocks[i + p];
    if (!periodic)
      base::reject(where,
                   cat("layers ", at, " to ", end - 1, " do not repeat every ", p, " layers"));
    const std::vector<std::string> pattern(blocks.begin() + static_cast<std::ptrdiff_t>(at),
                                           blocks.begin() + static_cast<std::ptrdiff_t>(at + p));
    groups.push_back({{"pattern", pattern}, {"repeat", (end - at) / p}, {"share_weights", true}});
  }
  return groups;
}

}  // namespace

Json evaluate_layers(const Json& layers, const Environment& environment,
                     const std::set<std::string>& per_layer, std::string_view where) {
  if (!layers.is_object()) return evaluate_all(layers, environment, where);
  base::JsonObject object(layers, std::string(where));
  const Json count = evaluate_all(object.get("count"), environment, object.path_of("count"));
  const std::string place = object.path_of("block");
  const Expression block = parse_expression(object.get_string("block"), place);
  const Json* share = object.find("share");
  object.finish();
  const std::int64_t n = layer_count(count, object.path_of("count"));
  std::vector<std::string> blocks;
  for (std::int64_t i = 0; i < n; ++i) {
    const Json layer = i;
    const std::optional<Json> name = evaluate(block, of_layer(environment, layer), place);
    if (!name || !name->is_string())
      base::reject(place, cat("no block for layer ", i),
                   name ? base::printable(name->dump(), 60) : "no value", "a block's name");
    blocks.push_back(name->get<std::string>());
    if (per_layer.count(blocks.back()) != 0) blocks.back() += cat("_", i);
  }
  if (share != nullptr) return shared_groups(blocks, *share, environment, object.path_of("share"));
  Json groups = Json::array();
  for (const contract::LayerGroup& group : group_layers(blocks))
    groups.push_back({{"pattern", group.pattern}, {"repeat", group.repeat}});
  return groups;
}

}  // namespace quern::convert
