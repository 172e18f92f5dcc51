// Small helpers shared by the recipe's parts: the data files of models/ and merging of JSON
// objects.
#pragma once

#include <string_view>

#include "base/json_reader.hpp"

namespace quern::convert {

// A built-in data file of models/ that is no recipe ("_neutral").
base::Json data_file(std::string_view name);

// `above` over `below`: objects key by key, everything else replaced.
base::Json merged(base::Json below, const base::Json& above);

}  // namespace quern::convert
