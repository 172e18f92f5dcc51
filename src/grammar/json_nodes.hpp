// JSON as expressions: characters of strings in their spellings, white space, and values of any
// form. Shared by all places of one grammar, so that masks of their states are made once.
#pragma once

#include <optional>
#include <string>

#include "grammar/finite.hpp"
#include "grammar/grammar.hpp"

namespace quern::grammar {

class JsonNodes {
 public:
  explicit JsonNodes(Grammar& grammar) : grammar_(grammar) {}

  // Nothing, a space, or a line end and at most 20 spaces or tabs.
  NodeId space();
  NodeId colon();    // with at most one space behind it
  NodeId comma();    // with space() behind it
  NodeId string();   // any
  NodeId string(std::uint32_t least, std::optional<std::uint32_t> most);  // so many characters
  NodeId string(const Dfa& characters);  // of the string's characters, each in its shortest spelling
  NodeId number();
  NodeId integer();
  NodeId boolean();
  NodeId null() { return grammar_.text("null"); }
  NodeId value();   // anything
  NodeId object();
  NodeId array();
  // "{" or "[" members "}": members is an expression of one or more, without the space around.
  NodeId in_brackets(char open, NodeId members, bool may_be_empty);

 private:
  NodeId character();
  NodeId spelled(const CharSet& set);
  template <class Make>
  NodeId shared(std::optional<RuleId>& rule, const char* name, Make make);

  Grammar& grammar_;
  std::optional<RuleId> space_, string_, number_, integer_, value_, object_, array_;
  std::optional<NodeId> character_;
};

}  // namespace quern::grammar
