// GBNF: what each grammar accepts and refuses, and the messages for grammars that are wrong.
#include "grammar/gbnf.hpp"

#include "catch.hpp"
#include "grammar/helpers.hpp"

namespace quern::tests {

namespace {

struct Case {
  const char* grammar;
  std::vector<std::string> yes, no;
};

// As the guide of llama.cpp has it.
const char* const kChess = R"(# `root` specifies the pattern for the overall output
root ::= (
    # it must start with the characters "1. " followed by a sequence
    "1. " move " " move "\n"

    ([1-9] [0-9]? ". " move " " move "\n")+
)
move ::= (pawn | nonpawn | castle) [+#]?
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
castle ::= "O-O" "-O"?
)";

const char* const kJson = R"(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)";

const std::vector<Case> kCases = {
    {"root ::= \"a\" | \"bc\"", {"a", "bc"}, {"", "b", "abc", "ab"}},
    {"root ::= \"a\" # comment\n# another\n", {"a"}, {"a "}},
    {"root ::= \"a\"*", {"", "a", "aaa"}, {"b", "ab"}},
    {"root ::= \"ab\"+", {"ab", "abab"}, {"", "aba"}},
    {"root ::= \"a\"{3}", {"aaa"}, {"aa", "aaaa"}},
    {"root ::= \"a\"{2,}", {"aa", "aaaaa"}, {"a"}},
    {"root ::= \"a\"{2,4}", {"aa", "aaa", "aaaa"}, {"a", "aaaaa"}},
    {"root ::= \"a\"{0,6}", {"", "a", "aaaaaa"}, {"aaaaaaa"}},
    {"root ::= \"a\"{0}", {""}, {"a"}},
    {"root ::= (\"a\" | \"b\")? \"c\"", {"c", "ac", "bc"}, {"abc"}},
    {"root ::= (\"a\"*)*", {"", "aaaa"}, {"b"}},           // CVE-2026-2069
    {"root ::= ((\"a\"?)+ \"\")*", {"", "aaaa"}, {"b"}},
    {"root ::= (\"\")*", {""}, {"a"}},
    {"root ::= [a-c0-2_-]+", {"abc_-012"}, {"d", ""}},
    {"root ::= [^a-c\\n]", {"d", "-", "\xC3\xA9"}, {"a", "\n", "\xC3"}},
    {"root ::= [\\x41-\\x43\\u00e9\\U0001F600]+", {"ABC", "\xC3\xA9", "\xF0\x9F\x98\x80"}, {"D"}},
    {"root ::= \"\\u00e9\\x41\\t\\\"\\\\\\[\\]\"", {"\xC3\xA9" "A\t\"\\[]"}, {"A"}},
    {"root ::= .", {"a", "\n", "\xE2\x82\xAC"}, {"", "ab", "\xE2\x82", "\xED\xA0\x80"}},
    {"root ::= a |\n  b\na ::= \"x\"\nb ::= \"y\"", {"x", "y"}, {"z"}},
    {"root ::=\n  \"a\"", {"a"}, {}},
    {"root ::= | \"a\"", {"", "a"}, {"b"}},
    {"root ::= (\n \"a\"\n | \"b\"\n)\n", {"a", "b"}, {}},
    {"root ::= list\nlist ::= \"x\" (\",\" list)?", {"x", "x,x,x"}, {"", "x,"}},
    {"root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"(x", "(x))", "()"}},
    {"root ::= \"a\" root \"b\" | \"\"", {"", "aabb"}, {"aab", "abb"}},
    {"root ::= s s\ns ::= \"a\"*", {"", "aaa"}, {"b"}},
    {"root ::= \"ab\" | \"a\" [b-c] \"d\" | \"abd\" \"e\"", {"ab", "abd", "acd", "abde"}, {"ac"}},
    {"root ::= []  | \"a\"", {"a"}, {""}},
    {"root ::= \"x\" bad | \"y\"\nbad ::= \"a\" bad", {"y"}, {"x", "xa"}},
    {"root ::= ( \"\\\"\" [^\"]* \"\\\"\" ){ 1 , 2 }", {"\"a\"", "\"\"\"b\""}, {""}},
    {kChess, {"1. e4 e5\n2. Nf3 Nc6\n", "1. O-O O-O-O+\n10. e4 d5\n"}, {"1. e4 e5\n", "e4"}},
    {kJson,
     {"{}", "{\"a\": [1, -2.5e+1, null], \"b\": {\"c\": \"\\u00e9\\n\"}}"},
     {"{", "{\"a\":}", "{\"a\" 1}", "[1]", "{\"a\": \"\x01\"}", "{\"a\": \"\xFF\"}"}},
    // From issues about slow or wrong grammars: ambiguity that must not grow with the text.
    {"root ::= (a | b)*\na ::= \"x\" | \"xx\"\nb ::= \"x\"+", {std::string(300, 'x')}, {"xy"}},
    {"root ::= a a a a a a a a\na ::= \"x\"*", {std::string(300, 'x')}, {"y"}},
};

const std::pair<const char*, const char*> kWrong[] = {
    {"", "no rule named \"root\""},
    {"rule ::= \"a\"", "no rule named \"root\""},
    {"root ::= missing", "test:1: rule \"missing\" is used but not defined"},
    {"root ::= \"a", "test:1:12: a literal without its closing \""},
    {"root ::= [a", "a class without its closing ]"},
    {"root ::= (\"a\"", "expected )"},
    {"root ::= \"a\")", "expected the end of the line"},
    {"root ::= *", "expected a literal"},
    {"root ::= \"a\"{,3}", "expected a number"},
    {"root ::= \"a\"{,}", "expected a number"},
    {"root ::= \"a\"{3,1}", "whose end lies before its start"},
    {"root ::= \"a\"{99999}", "more than 10000"},
    {"root ::= \"a\"{99999999999999999999}", "too large a number"},
    {"root ::= \"a\"{2", "expected }"},
    {"root ::= [b-a]", "whose end lies before its start"},
    {"root ::= \"\\q\"", "unknown escape"},
    {"root ::= \"\\x4\"", "expected 2 hexadecimal digits"},
    {"root ::= \"\\ud800\"", "no character"},
    {"root ::= \"\\UFFFFFFFF\"", "no character"},
    {"root ::= \"\xFF\"", "not UTF-8"},
    {"root = \"a\"", "expected ::="},
    {"root ::= \"a\"\nroot ::= \"b\"", "defined twice"},
    {"root ::= a\n | b", "write the | at the end of the line"},
    {"root ::= root", "no text matches"},
    {"root ::= root \"a\" | \"b\"", "left recursion: a rule begins with itself (root -> root)"},
    {"root ::= a \"x\"\na ::= b*\nb ::= root | \"y\"", "left recursion"},
    {"root ::= b \"x\"\nb ::= e b | \"y\"\ne ::= \"z\"?", "left recursion"},
    {"root ::= (\"a\" | root)* ", "left recursion"},
    {"root ::= \"a\" root", "no text matches"},
    {"root ::= []", "no text matches"},
    {"root ::= <>", "not the spelling of a token"},
    {"root ::= <a", "without its closing >"},
    {"root ::= <[x]>", "expected a number"},
    {"root ::= !\"a\"", "expected < of a token"},
    {"root ::= ((((\"a\"{1000}){1000}){1000}){1000})", "too large an automaton"},
    {"root ::= ([ab]* \"a\" [ab]{25})", "too large an automaton"},
};

}  // namespace

TEST_CASE("GBNF grammars accept and refuse texts", "[gbnf]") {
  for (const Case& test : kCases) {
    INFO(test.grammar);
    const grammar::Automaton automaton = from_gbnf(test.grammar);
    for (const std::string& text : test.yes) {
      INFO(text);
      CHECK(accepts(automaton, text));
    }
    for (const std::string& text : test.no) {
      INFO(text);
      CHECK(!accepts(automaton, text));
    }
  }
}

TEST_CASE("wrong GBNF grammars are input errors that say where", "[gbnf]") {
  for (const auto& [text, message] : kWrong) {
    INFO(text);
    const std::string got = refusal([&] { from_gbnf(text); });
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
    CHECK(got.find('\n') == std::string::npos);
  }
}

TEST_CASE("GBNF of hostile size is refused or read, never a crash", "[gbnf]") {
  const auto repeated = [](const std::string& text, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += text;
    return out;
  };
  // Reliability 1.5: nesting of any depth, chains of rules, repetitions of repetitions.
  CHECK(refusal([&] { from_gbnf("root ::= " + repeated("(", 60'000) + "\"a\"" + repeated(")", 60'000)); })
            .find("nest deeper") != std::string::npos);
  CHECK(accepts(from_gbnf("root ::= " + repeated("(", 150) + "\"a\"" + repeated(")*", 150)), "aaa"));
  for (const char* const again : {")*", ")+", "){2,}", "){5,}", "){0,5}"}) {
    const std::string deep = "root ::= " + repeated("(", 150) + "\"a\"" + repeated(again, 150);
    bool accepted = false;
    const std::string message = refusal([&] { accepted = accepts(from_gbnf(deep), "aaa"); });
    INFO(again << " " << message);
    CHECK((accepted || message.find("too large an automaton") != std::string::npos));
  }
  CHECK(refusal([&] { from_gbnf("root ::= \"a\"" + repeated("*", 60'000)); }).find("nest too deep") !=
        std::string::npos);
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 20'000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  CHECK(accepts(from_gbnf(chain + "r20000 ::= \"x\"\n"), "x"));
  CHECK(refusal([&] { from_gbnf(chain + "r20000 ::= r0 | \"x\"\n"); }).find("left recursion") !=
        std::string::npos);
  std::string loops = "root ::= r0\n";
  for (int i = 0; i < 5'000; ++i)
    loops += "r" + std::to_string(i) + " ::= \"a\"* r" + std::to_string(i + 1) + " \"b\"*\n";
  CHECK(refusal([&] { from_gbnf(loops + "r5000 ::= \"x\"\n"); }).find("too many rules open at once") !=
        std::string::npos);
  CHECK(!refusal([&] { from_gbnf("root ::= " + repeated("\"a\" | ", 400'000) + "\"b\""); }).empty());
  CHECK(!refusal([&] { from_gbnf("root ::= \"a\"\n" + repeated(" ", 5u << 20)); }).empty());
}

}  // namespace quern::tests
