#include "convert/fuel.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::convert {

void Fuel::spend(std::uint64_t steps, std::string_view where) {
  if (steps > steps_)
    base::reject(where, "the recipe's expressions take too long", {},
                 base::cat("at most ", max_steps_, " steps for one model"));
  steps_ -= steps;
}

void Fuel::keep(std::uint64_t values, std::string_view where) {
  spend(values, where);
  if (values > values_)
    base::reject(where, "the recipe's expressions make too many values", {},
                 base::cat("at most ", max_values_, " for one model"));
  values_ -= values;
}

// parse_json() bounds the depth of what comes here.
std::uint64_t weight_of(const base::Json& value) {
  if (value.is_string()) return 1 + value.get_ref<const std::string&>().size() / 32;
  std::uint64_t weight = 1;
  if (value.is_structured())
    for (const base::Json& element : value) weight += weight_of(element);
  if (value.is_object())
    for (const auto& [key, element] : value.items()) weight += key.size() / 32;
  return weight;
}

}  // namespace quern::convert
