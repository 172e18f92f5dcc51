#include "grammar/json_nodes.hpp"

#include "grammar/number_nodes.hpp"
#include "grammar/regex.hpp"

namespace quern::grammar {

namespace {

const CharSet kHex{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};

}  // namespace

template <class Make>
NodeId JsonNodes::shared(std::optional<RuleId>& rule, const char* name, Make make) {
  if (!rule) {
    rule = grammar_.add_rule(name, Inlining::never);
    grammar_.define(*rule, make());
  }
  return grammar_.rule(*rule);
}

NodeId JsonNodes::space() {
  return shared(space_, "space", [&] {
    const NodeId indent = grammar_.repeat(grammar_.chars(CharSet{{'\t', '\t'}, {' ', ' '}}), 0, 20);
    return grammar_.choice({grammar_.empty(), grammar_.text(" "), grammar_.sequence({grammar_.text("\n"), indent})});
  });
}

NodeId JsonNodes::colon() { return grammar_.sequence({grammar_.text(":"), grammar_.optional(grammar_.text(" "))}); }

NodeId JsonNodes::comma() { return grammar_.sequence({grammar_.text(","), space()}); }

// Every spelling of one character: itself, a letter behind a backslash, or its UTF-16 code units.
NodeId JsonNodes::character() {
  if (character_) return *character_;
  const NodeId hex = grammar_.chars(kHex);
  const auto chars = [&](CharSet set) { return grammar_.chars(std::move(set)); };
  const CharSet d{{'D', 'D'}, {'d', 'd'}};
  const NodeId low_unit = grammar_.sequence({chars(d), chars({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), hex, hex});
  const NodeId high_unit = grammar_.sequence({chars(d), chars({{'C', 'F'}, {'c', 'f'}}), hex, hex});
  const NodeId plain_unit = grammar_.choice(
      {grammar_.sequence({chars({{'0', '9'}, {'A', 'C'}, {'a', 'c'}, {'E', 'F'}, {'e', 'f'}}), hex, hex, hex}),
       grammar_.sequence({chars(d), chars({{'0', '7'}}), hex, hex})});
  CharSet special{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  character_ = grammar_.choice(
      {chars(special.complement()),
       grammar_.sequence({grammar_.text("\\"),
                          grammar_.choice({chars({{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'},
                                                  {'n', 'n'}, {'r', 'r'}, {'t', 't'}}),
                                           grammar_.sequence({grammar_.text("u"), plain_unit}),
                                           grammar_.sequence({grammar_.text("u"), low_unit,
                                                              grammar_.text("\\u"), high_unit})})})});
  return *character_;
}

NodeId JsonNodes::string() {
  return shared(string_, "string", [&] {
    return grammar_.sequence({grammar_.text("\""), grammar_.repeat(character(), 0), grammar_.text("\"")});
  });
}

NodeId JsonNodes::string(std::uint32_t least, std::optional<std::uint32_t> most) {
  if (least == 0 && !most) return string();
  const NodeId inside = grammar_.repeat(character(), least, most.value_or(kUnbounded));
  return grammar_.sequence({grammar_.text("\""), inside, grammar_.text("\"")});
}

NodeId JsonNodes::spelled(const CharSet& set) {
  std::vector<NodeId> spellings;
  const CharSet special{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  CharSet raw = set.intersection(special.complement());
  if (!raw.empty()) spellings.push_back(grammar_.chars(std::move(raw)));
  constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  for (char32_t c = 0; c <= '\\'; ++c) {
    if (!special.contains(c) || !set.contains(c)) continue;
    const std::size_t index = kSpecial.find(static_cast<char>(c));
    if (index != std::string_view::npos) {
      spellings.push_back(grammar_.text(std::string("\\") + kLetters[index]));
      continue;
    }
    const char* const digits = "0123456789abcdef";
    const auto low = static_cast<char32_t>(digits[c & 15]);
    const NodeId last = c % 16 < 10 ? grammar_.chars({{low, low}}) : grammar_.chars({{low, low}, {low - 32, low - 32}});
    spellings.push_back(grammar_.sequence({grammar_.text(c < 16 ? "\\u000" : "\\u001"), last}));
  }
  return grammar_.choice(std::move(spellings));
}

NodeId JsonNodes::string(const Dfa& characters) {
  const NodeId inside = automaton_node(grammar_, characters, [&](const CharSet& set) { return spelled(set); });
  return grammar_.sequence({grammar_.text("\""), inside, grammar_.text("\"")});
}

NodeId JsonNodes::integer() {
  return shared(integer_, "integer", [&] {
    return integer_node(grammar_, {-999'999'999'999'999, 999'999'999'999'999, {}});
  });
}

NodeId JsonNodes::number() {
  return shared(number_, "number", [&] {
    const NodeId digit = grammar_.chars({{'0', '9'}});
    const NodeId whole = grammar_.choice(
        {grammar_.text("0"), grammar_.sequence({grammar_.chars({{'1', '9'}}), grammar_.repeat(digit, 0, 14)})});
    const NodeId sign = grammar_.optional(grammar_.chars({{'+', '+'}, {'-', '-'}}));
    return grammar_.sequence(
        {grammar_.optional(grammar_.text("-")), whole,
         grammar_.optional(grammar_.sequence({grammar_.text("."), grammar_.repeat(digit, 1, 15)})),
         grammar_.optional(grammar_.sequence(
             {grammar_.chars({{'E', 'E'}, {'e', 'e'}}), sign, grammar_.repeat(digit, 1, 2)}))});
  });
}

NodeId JsonNodes::boolean() { return grammar_.choice({grammar_.text("true"), grammar_.text("false")}); }

NodeId JsonNodes::in_brackets(char open, NodeId members, bool may_be_empty) {
  NodeId inside = grammar_.sequence({members, space()});
  if (may_be_empty) inside = grammar_.optional(inside);
  return grammar_.sequence({grammar_.text(std::string(1, open)), space(), inside,
                            grammar_.text(open == '{' ? "}" : "]")});
}

NodeId JsonNodes::array() {
  return shared(array_, "array", [&] {
    const NodeId more = grammar_.repeat(grammar_.sequence({comma(), value()}), 0);
    return in_brackets('[', grammar_.sequence({value(), more}), true);
  });
}

NodeId JsonNodes::object() {
  return shared(object_, "object", [&] {
    const NodeId member = grammar_.sequence({string(), colon(), value()});
    const NodeId more = grammar_.repeat(grammar_.sequence({comma(), member}), 0);
    return in_brackets('{', grammar_.sequence({member, more}), true);
  });
}

// Objects, arrays and values are made of each other: this rule exists before it is defined.
NodeId JsonNodes::value() {
  if (!value_) {
    value_ = grammar_.add_rule("value", Inlining::never);
    const NodeId node = grammar_.choice({object(), array(), string(), number(), boolean(), null()});
    grammar_.define(*value_, node);
  }
  return grammar_.rule(*value_);
}

}  // namespace quern::grammar
