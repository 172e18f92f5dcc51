// How configurations spell RoPE: a recipe's "ropes" entry with its values filled in -> RopeSpec,
// and the user's --rope-* wishes on top. Formulas: rope.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "convert/recipe.hpp"
#include "convert/rope.hpp"

namespace quern::convert {

struct RopeReading {
  RopeSpec spec;
  std::size_t max_positions = 0;  // usable length under the rule, at least the configured one
  std::vector<std::string> unknown_keys;  // of the scaling object
  std::vector<std::string> notices;
};

// entry: {"dims": width of a head, "partial": share of it that is rotated, "layout", "base",
// "max_positions", "scaling": null or the source's own object, "original_length": null or the
// trained length where the source gives it outside that object; it decides over one inside}.
RopeReading read_rope(const base::Json& entry, std::string_view where);

bool any_wish(const Adaptations& wishes);
// Changes `reading` as the user wishes; each change is a notice.
void adapt_rope(const Adaptations& wishes, RopeReading& reading);

}  // namespace quern::convert
