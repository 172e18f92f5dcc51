// Names of a recipe -> the source tensor of each tensor of the contract. Every expected tensor must
// be found with its shape, every source tensor used or on the ignore list.
// Not here: number formats (policy.hpp), reading (transform.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "checkpoint/checkpoint.hpp"
#include "convert/expression.hpp"
#include "convert/recipe.hpp"

namespace quern::convert {

// What the places of a rule's name stand for: {l} 12, {e} 3, * bias. A place is one lower-case
// letter in braces and takes digits; `*`, at the end only, takes the last part of the name.
struct RuleMatch {
  std::vector<std::pair<std::string, std::string>> numbers;
  std::string last;
};

class NameMap {
 public:
  // section: the recipe's part for this kind of source ("prefixes", "tensors", "ignore_tensors").
  NameMap(const base::Json& section, const checkpoint::Checkpoint& checkpoint, std::string where);

  // The source of one tensor of the contract; an input error naming it when the recipe has no rule
  // for it. from: the names tried, in order.
  TensorSource source_of(std::string_view canonical, const Environment& values) const;
  bool has_rule(std::string_view canonical) const;

  // The first of `names` that the checkpoint has, nullptr when none.
  const checkpoint::SourceTensor* find_first(const std::vector<std::string>& names) const;

  bool ignored(const checkpoint::SourceTensor& tensor) const;

 private:
  struct Rule {
    std::string canonical;
    base::Json value;
  };
  struct Ignore {
    std::string pattern;
    std::vector<std::size_t> dims;  // numbers of dimensions it holds for; empty: any
  };
  const Rule* rule_for(std::string_view canonical, RuleMatch& match) const;
  std::string choose_prefix(const base::Json& prefixes) const;

  const checkpoint::Checkpoint& checkpoint_;
  std::string where_, prefix_;
  std::vector<Rule> rules_;
  std::vector<Ignore> ignore_;
};

// Whether the logits use the token embedding: both tensors present and different -> not tied,
// otherwise the one that is stored serves both. nullopt: the recipe has no head tensor.
std::optional<bool> tied_by_tensors(const NameMap& names, const Environment& values);

// Fills tensors, ignored and notices of `resolved` for its contract.
void plan_tensors(const NameMap& names, const Environment& values,
                  const checkpoint::Checkpoint& checkpoint, Resolved& resolved);

}  // namespace quern::convert
