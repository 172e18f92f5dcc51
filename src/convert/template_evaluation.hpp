// A recipe's "contract" with its expressions evaluated. It may define more blocks, ops, norms and
// ropes than one model uses: only what the layers lead to is evaluated and kept.
// Not here: neutral values, tables (contract_template.hpp).
#pragma once

#include <string_view>

#include "convert/expression.hpp"

namespace quern::convert {

base::Json evaluate_template(const base::Json& contract, const Environment& environment,
                             std::string_view where);

}  // namespace quern::convert
