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

Json evaluate_layers(const Json& layers, const Environment& environment,
                     const std::set<std::string>& per_layer, std::string_view where) {
  if (!layers.is_object()) return evaluate_all(layers, environment, where);
  base::JsonObject object(layers, std::string(where));
  const Json count = evaluate_all(object.get("count"), environment, object.path_of("count"));
  const std::string place = object.path_of("block");
  const Expression block = parse_expression(object.get_string("block"), place);
  object.finish();
  if (!count.is_number_unsigned() && !count.is_number_integer())
    base::reject(object.path_of("count"), "not a number of layers",
                 base::printable(count.dump(), 60));
  const std::int64_t n = count.is_number_unsigned() && count.get<std::uint64_t>() > INT64_MAX
                             ? INT64_MAX
                             : count.get<std::int64_t>();
  if (n < 1 || n > static_cast<std::int64_t>(contract::kMaxLayers))
    base::reject(object.path_of("count"), "number of layers", count.dump(),
                 cat("1 .. ", contract::kMaxLayers));
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
  Json groups = Json::array();
  for (const contract::LayerGroup& group : group_layers(blocks))
    groups.push_back({{"pattern", group.pattern}, {"repeat", group.repeat}});
  return groups;
}

}  // namespace quern::convert
