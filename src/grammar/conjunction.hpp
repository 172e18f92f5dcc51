// What several schemas say of one value together: the schemas that apply to it, one alternative
// chosen of each anyOf and oneOf, and their keywords merged. Emptiness and validity are decided
// here; expressions are made in schema_compiler.hpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grammar/finite.hpp"
#include "grammar/schema.hpp"

namespace quern::grammar {

using SchemaSet = std::vector<SchemaId>;  // sorted, closed under $ref and allOf
inline constexpr std::uint32_t kUnboundedCount = 0xFFFFFFFF;

std::u32string characters(std::string_view text);  // of UTF-8

class Conjunctions {
 public:
  explicit Conjunctions(const SchemaDocument& document) : document_(document) {}

  const Schema& schema(SchemaId id) const { return document_.schemas[id]; }
  const SchemaDocument& document() const { return document_; }
  std::string at(const std::string& place) const;

  // With what $ref and allOf add.
  SchemaSet closed(SchemaSet set) const;
  // Sets with one alternative of each choice; those that allow nothing may be among them. Input
  // error for too many, and for a oneOf whose alternatives may both hold.
  std::vector<SchemaSet> alternatives(const SchemaSet& set);

  unsigned kinds(const SchemaSet& set) const;           // that all allow
  unsigned kinds_to_write(const SchemaSet& set) const;  // without "type", those that keywords are about
  bool never(const SchemaSet& set) const;
  // The values of enum and const that all of the schemas accept; nothing when none has any.
  std::optional<std::vector<Value>> values(const SchemaSet& set);
  bool valid(const Value& value, SchemaId id);

  // Objects: what applies to the value of a property, and what is known of names.
  SchemaSet of_property(const SchemaSet& set, const std::string& name);
  bool name_allowed(const SchemaSet& set, const std::string& name);
  std::vector<std::string> names(const SchemaSet& set) const;  // as the schemas list them
  bool required(const SchemaSet& set, const std::string& name) const;
  bool writes_other_names(const SchemaSet& set) const;
  // Arrays: what applies to the item at `index`.
  SchemaSet of_item(const SchemaSet& set, std::size_t index) const;
  std::size_t n_prefix(const SchemaSet& set) const;

  // Strings, without their quotes: the automaton of all patterns, formats and lengths.
  const Dfa& strings(const SchemaSet& set);
  bool plain_strings(const SchemaSet& set) const;  // no pattern or format
  std::pair<std::uint32_t, std::optional<std::uint32_t>> lengths(const SchemaSet& set) const;
  const Dfa& pattern(const std::string& pattern);

  struct IntegerRange {
    std::int64_t low, high;
  };
  IntegerRange integers(const SchemaSet& set) const;
  std::optional<Bound> bound(const SchemaSet& set, bool lower) const;  // the tightest
  std::vector<std::int64_t> multiples(const SchemaSet& set) const;

  // What is written for a set, where that is less than what its schemas allow.
  struct Written {
    unsigned kinds = kAnyKind;
    std::optional<std::set<std::string>> names;  // objects have no other properties
  };
  // Certainly no value, of those that are `written`.
  bool empty(const SchemaSet& set, const Written& written, int depth = 0);

 private:
  bool empty_leaf(const SchemaSet& set, const Written& written, int depth);
  bool empty_object(const SchemaSet& set, const Written& written, int depth);
  bool empty_array(const SchemaSet& set, int depth);
  bool valid_number(const Value& value, const Schema& s) const;
  bool valid_string(const Value& value, SchemaId id);
  bool valid_array(const Value& value, const Schema& s);
  bool valid_object(const Value& value, const Schema& s, SchemaId id);
  void choose(const SchemaSet& set, std::set<const Alternatives*>& decided, std::vector<SchemaSet>& out);
  void check_exactly_one(const SchemaSet& set, const Alternatives& choice);
  bool reaches(SchemaId from, SchemaId to);

  const SchemaDocument& document_;
  std::map<std::string, Dfa> patterns_;
  std::map<SchemaSet, Dfa> strings_;
  std::set<std::pair<const Alternatives*, SchemaSet>> checked_;
  std::map<SchemaId, std::set<SchemaId>> reach_;
  bool one_is_any_ = false;  // oneOf read as anyOf, while it is asked whether two of its schemas overlap
  std::size_t fuel_ = 2'000'000;  // steps of emptiness checks and choices, of one document
};

}  // namespace quern::grammar
