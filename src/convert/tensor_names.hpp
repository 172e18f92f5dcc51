// Names of a recipe: which source tensor, by which transforms, stands for a tensor of the contract.
// Not here: shapes, and whether all are used (tensor_plan.hpp).
#pragma once

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

  bool ignored(const checkpoint::SourceTensor& tensor, const Environment& values) const;

  // A recipe's name as this checkpoint may spell it: its prefix in the place of {p}.
  std::vector<std::string> spellings(const std::string& name) const;

 private:
  struct Rule {
    std::string canonical;
    base::Json value;
  };
  struct Ignore {
    std::string pattern;
    std::vector<std::size_t> dims;  // numbers of dimensions it holds for; empty: any
    std::string beyond;             // expression: layers from that one on; "": every name of the pattern
  };
  void add_numbers(const Environment& values, RuleMatch& match) const;
  const Rule* rule_for(std::string_view canonical, RuleMatch& match) const;
  void choose_prefix(const base::Json& prefixes);

  const checkpoint::Checkpoint& checkpoint_;
  std::string where_, prefix_;
  bool wrapped_ = false;  // the prefix is not one of the recipe's
  std::vector<Rule> rules_;
  std::vector<std::pair<std::string, std::string>> numbers_;  // "{g}" -> expression over $layer
  std::vector<Ignore> ignore_;
};

// The names of one element of a stack: {i} stands for its index.
std::vector<std::string> element_names(std::vector<std::string> names, std::size_t i);

}  // namespace quern::convert
