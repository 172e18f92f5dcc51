// A recipe's part for one kind of source, over one configuration: where $key leads, and which keys
// the recipe knows. Not here: values and what is refused (resolve.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "checkpoint/checkpoint.hpp"
#include "convert/expression.hpp"
#include "convert/recipe.hpp"

namespace quern::convert {

struct Source {
  std::string where;  // of the configuration
  std::string place;  // of the recipe's part
  base::Json config, section, activations;
  base::Json defaults;    // values of keys that the configuration does not have
  Environment of_config;  // $key leads into the configuration
};

// Fills `out`, which of_config points into; an input error when the recipe does not read this kind.
void open_source(const Recipe& recipe, std::string_view config_json, std::string_view where,
                 checkpoint::SourceKind kind, Source& out);

// Configuration keys that no expression reads and no list names.
std::vector<std::string> unknown_keys(const Source& source, checkpoint::SourceKind kind);

}  // namespace quern::convert
