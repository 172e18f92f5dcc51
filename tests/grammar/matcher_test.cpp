// Masks of tokens against an obvious reference that tries every token byte by byte; ends, tokens by
// name, first tokens, dead ends.
#include "grammar/matcher.hpp"

#include <algorithm>

#include "catch.hpp"
#include "grammar/helpers.hpp"
#include "grammar/json_schema.hpp"

namespace quern::tests {

namespace {

using grammar::Automaton;
using grammar::Matcher;
using grammar::Vocabulary;

// All stacks, kept in full and stepped without any memory.
class Reference {
 public:
  struct Way {
    std::uint32_t state;
    std::vector<std::uint32_t> stack;
    auto operator<=>(const Way&) const = default;
  };

  explicit Reference(const Automaton& automaton) : automaton_(automaton) { ways_ = close({{automaton.root(), {}}}); }

  bool may_end() const {
    for (const Way& way : ways_)
      if (way.stack.empty() && automaton_.state(way.state).final) return true;
    return false;
  }
  bool read(std::string_view text) {
    for (const char c : text) {
      std::vector<Way> next;
      for (const Way& way : ways_) {
        const Automaton::State& state = automaton_.state(way.state);
        for (std::uint32_t i = 0; i < state.n_edges; ++i) {
          const Automaton::ByteEdge& edge = automaton_.edges(state)[i];
          const auto byte = static_cast<std::uint8_t>(c);
          if (edge.low <= byte && byte <= edge.high) next.push_back({edge.to, way.stack});
        }
      }
      ways_ = close(std::move(next));
    }
    return !ways_.empty();
  }

 private:
  std::vector<Way> close(std::vector<Way> work) const {
    std::vector<Way> out;
    while (!work.empty()) {
      Way way = std::move(work.back());
      work.pop_back();
      if (std::find(out.begin(), out.end(), way) != out.end()) continue;
      out.push_back(way);
      const Automaton::State& state = automaton_.state(way.state);
      for (std::uint32_t i = 0; i < state.n_calls; ++i) {
        Way called{automaton_.calls(state)[i].start, way.stack};
        called.stack.push_back(automaton_.calls(state)[i].to);
        // An unfinished tail of tails would grow for ever: what only returns is not pushed twice.
        if (called.stack.size() < 60) work.push_back(std::move(called));
      }
      if (state.final && !way.stack.empty()) {
        Way below{way.stack.back(), way.stack};
        below.stack.pop_back();
        work.push_back(std::move(below));
      }
    }
    return out;
  }

  const Automaton& automaton_;
  std::vector<Way> ways_;
};

std::vector<std::string> random_texts(std::mt19937& random, std::string_view alphabet, std::size_t n) {
  std::vector<std::string> out;
  for (const char c : alphabet) out.emplace_back(1, c);
  while (out.size() < n) {
    std::string text;
    for (std::size_t length = 1 + random() % 6; length > 0; --length) text += alphabet[random() % alphabet.size()];
    out.push_back(std::move(text));
  }
  return out;
}

void compare_with_reference(const Automaton& automaton, std::string_view alphabet, std::uint32_t seed) {
  std::mt19937 random(seed);
  const Vocabulary vocabulary(texts_of(random_texts(random, alphabet, 150)));
  Matcher matcher(automaton, vocabulary);
  for (int answer = 0; answer < 4; ++answer) {
    matcher.restart();
    Reference reference(automaton);
    for (int step = 0; step < 25; ++step) {
      const auto words = matcher.allowed();
      std::vector<std::int32_t> choices;
      for (std::size_t id = 1; id < vocabulary.size(); ++id) {
        Reference next = reference;
        const bool expected = next.read(vocabulary.text(static_cast<std::int32_t>(id)));
        if (has_bit(words, id) != expected) {
          INFO("token \"" << vocabulary.text(static_cast<std::int32_t>(id)) << "\" step " << step);
          REQUIRE(has_bit(words, id) == expected);
        }
        if (expected) choices.push_back(static_cast<std::int32_t>(id));
      }
      CHECK(has_bit(words, 0) == reference.may_end());
      CHECK(matcher.may_end() == reference.may_end());
      if (choices.empty()) break;
      const std::int32_t id = choices[random() % choices.size()];
      matcher.accept(id);
      reference.read(vocabulary.text(id));
    }
  }
}

}  // namespace

TEST_CASE("masks equal a reference that tries every token", "[matcher]") {
  const char* const grammars[] = {
      "root ::= \"a\"* \"b\"",
      "root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [a-c]+ | \"(\" expr \")\"",
      "root ::= \"a\" root \"b\" | \"c\"?",
      "root ::= item (\",\" item)*\nitem ::= word | \"(\" root \")\"\nword ::= letter+\nletter ::= [abc]",
      "root ::= (x | y)*\nx ::= \"ab\" x? \"c\"\ny ::= \"a\" y | \"b\"",
      "root ::= s s s\ns ::= \"(\" s \")\" | [ab]*",
      "root ::= list\nlist ::= \"a\" (\",\" list)?",
  };
  std::uint32_t seed = 1;
  for (const char* const text : grammars) {
    INFO(text);
    for (int round = 0; round < 3; ++round) compare_with_reference(from_gbnf(text), "abc(),+", ++seed);
  }
  const char* const schemas[] = {
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"enum":["a","ab"]}}},"required":["b"]})",
      R"({"type":"array","items":{"type":"object"}})",
      R"({"$ref":"#/$defs/t","$defs":{"t":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/t"}},{"const":"a"}]}}})",
      R"({"type":"object","patternProperties":{"^a":{"type":"string","maxLength":3}},"additionalProperties":{"type":"number"}})",
  };
  for (const char* const text : schemas) {
    INFO(text);
    const Automaton automaton(grammar::json_schema_grammar(text, "test"));
    for (int round = 0; round < 3; ++round) compare_with_reference(automaton, "{}[]\",: \n01-.eab", ++seed);
  }
}

TEST_CASE("an answer ends where it may, and only there", "[matcher]") {
  const Automaton automaton = from_gbnf("root ::= \"ab\" \"c\"?");
  const Vocabulary vocabulary(texts_of({"a", "b", "ab", "abc", "c", "x"}));
  Matcher matcher(automaton, vocabulary);
  CHECK(!has_bit(matcher.allowed(), 0));
  matcher.accept(3);
  CHECK(matcher.may_end());
  CHECK(!matcher.finished());
  CHECK(has_bit(matcher.allowed(), 0));
  matcher.accept(5);
  CHECK(matcher.finished());
  CHECK(matcher.allowed()[0] == 1);
  matcher.accept(0);
  CHECK(matcher.finished());
  matcher.restart();
  CHECK(!matcher.may_end());
  CHECK(refusal([&] { matcher.accept(6); }).find("does not continue") != std::string::npos);
  CHECK(!refusal([&] { matcher.accept(0); }).empty());
  CHECK(!refusal([&] { matcher.accept(99); }).empty());
}

TEST_CASE("a vocabulary that cannot spell the answer is an input error", "[matcher]") {
  const Automaton automaton = from_gbnf("root ::= \"ab\"");
  const Vocabulary vocabulary(texts_of({"a"}));
  Matcher matcher(automaton, vocabulary);
  matcher.allowed();
  matcher.accept(1);
  CHECK(refusal([&] { matcher.allowed(); }).find("no token of the vocabulary continues the answer") !=
        std::string::npos);
  grammar::TokenTexts endless = texts_of({"a"});
  endless.ends.clear();
  CHECK(refusal([&] { Vocabulary v(endless); }).find("no token that ends") != std::string::npos);
}

TEST_CASE("tokens by number and by name", "[matcher]") {
  grammar::TokenTexts texts = texts_of({"a", "b", "", ""});  // 3 and 4 are control tokens
  texts.spellings = {{"<think>", 3}, {"</think>", 4}};
  const Vocabulary vocabulary(texts);
  const Automaton automaton = from_gbnf("root ::= <think> !</think>* </think> \"a\"+");
  Matcher matcher(automaton, vocabulary);
  CHECK(matcher.allowed()[0] == 0b01000);
  matcher.accept(3);
  CHECK(matcher.allowed()[0] == 0b11110);
  matcher.accept(2);
  matcher.accept(4);
  CHECK(matcher.allowed()[0] == 0b00010);
  matcher.accept(1);
  CHECK(matcher.allowed()[0] == 0b00011);
  const Automaton by_id = from_gbnf("root ::= <[3]> | \"ab\"");
  Matcher other(by_id, vocabulary);
  CHECK(other.allowed()[0] == 0b01010);
  const Automaton unknown = from_gbnf("root ::= <nope>");
  CHECK(refusal([&] { Matcher m(unknown, vocabulary); }).find("<nope> is not one token") != std::string::npos);
  const Automaton end = from_gbnf("root ::= <[0]> \"a\"");
  CHECK(refusal([&] { Matcher m(end, vocabulary); }).find("token 0 ends an answer") != std::string::npos);
  const Automaton far = from_gbnf("root ::= <[999]>");
  CHECK(refusal([&] { Matcher m(far, vocabulary); }).find("<[999]> is not in the vocabulary") != std::string::npos);
}

TEST_CASE("the first token of an answer may have another text", "[matcher]") {
  grammar::TokenTexts texts = texts_of({" a", " b", "b"});
  texts.first = {{1, "a"}, {2, "b"}};
  const Vocabulary vocabulary(texts);
  const Automaton automaton = from_gbnf("root ::= \"a\" \" b\" | \"bb\"");
  Matcher matcher(automaton, vocabulary);
  CHECK(matcher.allowed()[0] == 0b1110);
  matcher.accept(1);
  CHECK(matcher.allowed()[0] == 0b0100);
  matcher.restart();
  matcher.accept(2);
  CHECK(matcher.allowed()[0] == 0b1000);
}

TEST_CASE("nesting in an answer is bounded, and what is allowed stays possible", "[matcher]") {
  const Automaton automaton = from_gbnf("root ::= \"[\" root \"]\" | \"x\"");
  const Vocabulary vocabulary(texts_of({"[", "[[[[", "x", "]"}));
  Matcher matcher(automaton, vocabulary);
  int depth = 0;
  for (; depth < 2000 && (has_bit(matcher.allowed(), 2) || has_bit(matcher.allowed(), 1)); ++depth)
    matcher.accept(has_bit(matcher.allowed(), 2) ? 2 : 1);
  CHECK(depth < 2000);
  CHECK(has_bit(matcher.allowed(), 3));
  // Lists of any length keep no stack at all.
  const Automaton list = from_gbnf("root ::= \"x\" root | \"]\"");
  Matcher flat(list, vocabulary);
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(has_bit(flat.allowed(), 3));
    flat.accept(3);
  }
}

TEST_CASE("too many ways to read one text are an input error", "[matcher]") {
  const Automaton automaton =
      from_gbnf("root ::= x\nx ::= \"(\" x \")\" | \"(\" y \")\"\ny ::= \"(\" x \"]\" | \"(\" y \"]\" | \"a\"");
  const Vocabulary vocabulary(texts_of({"(", "a", ")"}));
  Matcher matcher(automaton, vocabulary);
  const std::string message = refusal([&] {
    for (int i = 0; i < 40; ++i) matcher.accept(1);
  });
  CHECK(message.find("too ambiguous") != std::string::npos);
}

}  // namespace quern::tests
