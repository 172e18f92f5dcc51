// Schemas to expressions: a rule for each set of schemas that applies to one place.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "grammar/conjunction.hpp"
#include "grammar/grammar.hpp"
#include "grammar/json_nodes.hpp"

namespace quern::grammar {

class SchemaCompiler {
 public:
  explicit SchemaCompiler(const SchemaDocument& document)
      : conjunctions_(document), grammar_(document.where), json_(grammar_) {}

  Grammar run();

 private:
  NodeId value(const SchemaSet& set);  // a call of the set's rule
  NodeId define(const SchemaSet& set);
  NodeId leaf(const SchemaSet& set);   // no choices left
  NodeId string(const SchemaSet& set);
  NodeId number(const SchemaSet& set, bool fractions);
  NodeId array(const SchemaSet& set);
  NodeId unique_array(const SchemaSet& set, std::uint32_t least, std::uint32_t most);
  NodeId object(const SchemaSet& set);
  // Members whose names are not in `names`; nothing() when there are none.
  NodeId other_member(const SchemaSet& set, const std::vector<std::string>& names);
  bool says_nothing(SchemaId id) const;
  std::string rule_name(const SchemaSet& set);
  std::string unique_name(const std::string& name);
  std::string at(const SchemaSet& set, std::string_view keyword) const;

  Conjunctions conjunctions_;
  Grammar grammar_;
  JsonNodes json_;
  std::map<SchemaSet, RuleId> rules_;
  std::vector<std::pair<SchemaSet, RuleId>> work_;  // rules that are named but not yet defined
  std::map<std::string, RuleId> strings_;           // by what is allowed in them
  std::set<std::string> names_ = {"root", "space", "string", "number", "integer", "value", "object", "array"};
};

}  // namespace quern::grammar
