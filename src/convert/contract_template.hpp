// A recipe's "contract" with its expressions evaluated -> a whole contract: neutral values merged
// in, RoPE tables built, read back by the strict reader.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "contract/contract.hpp"
#include "convert/recipe.hpp"

namespace quern::convert {

struct TemplateInput {
  std::string family{};
  const Adaptations* adaptations = nullptr;
  // Values of a tensor of RoPE divisors{}; empty when the source has none of that name.
  std::function<std::vector<float>(const std::string& tensor)> divisors{};
};

struct FilledTemplate {
  contract::Contract contract;
  std::vector<std::string> unknown_keys, notices;
};

// evaluated: the template without expressions.
FilledTemplate fill_template(base::Json evaluated, const TemplateInput& input,
                             std::string_view where);

}  // namespace quern::convert
