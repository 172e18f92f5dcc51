// JSON schemas: texts that each keyword lets through and keeps out, and what is refused by name.
#include "grammar/json_schema.hpp"

#include "catch.hpp"
#include "grammar/helpers.hpp"
#include "grammar/print.hpp"
#include "grammar/random_text.hpp"

namespace quern::tests {

namespace {

grammar::Automaton from_schema(std::string_view text) {
  return grammar::Automaton(grammar::json_schema_grammar(text, "test"));
}

struct Case {
  const char* schema;
  std::vector<std::string> yes, no;
};

const std::vector<Case> kValues = {
    {"{}", {"1", "-0.5e+10", "\"a\"", "null", "[1, {\"a\": [ ]}]", "{}"}, {"", "01", "{", "nul", "+1", "[1,]"}},
    {"true", {"1", "{\"a\":1}"}, {"a"}},
    {R"({"type":"null"})", {"null"}, {"0"}},
    {R"({"type":"boolean"})", {"true", "false"}, {"1"}},
    {R"({"type":["integer","null"]})", {"1", "null", "-12"}, {"1.5", "\"\"", "01", "-0"}},
    {R"({"type":"number"})", {"0", "1.5", "-2e5", "0.25"}, {"1.", ".5", "1e", "\"1\"", "1e999"}},
    {R"({"type":"integer","nullable":true})", {"1", "null"}, {"1.5"}},
    {R"({"enum":["a",1,null,{"b":[true]}]})", {"\"a\"", "1", "null", "{\"b\":[true]}"}, {"\"b\"", "2"}},
    {R"({"const":"a\"\u00e9\n\u0001"})", {"\"a\\\"\xC3\xA9\\n\\u0001\""}, {"\"a\""}},
    {R"({"type":"string","enum":["a",1,"bcd"],"minLength":2})", {"\"bcd\""}, {"\"a\"", "1"}},
    {R"({"enum":[1,2,3],"const":2})", {"2"}, {"1"}},
    {R"({"enum":[1.0,2.5,10],"type":"integer","minimum":1})", {"1.0", "10"}, {"2.5"}},
};

const std::vector<Case> kNumbers = {
    {R"({"type":"integer","minimum":0})", {"0", "7", "123456"}, {"-1", "00"}},
    {R"({"type":"integer","minimum":-5,"maximum":12})", {"-5", "-1", "0", "9", "10", "12"}, {"-6", "13", "-10", "99"}},
    {R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":5})", {"4"}, {"3", "5"}},
    {R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", {"4"}, {"3"}},
    {R"({"type":"integer","minimum":0.5,"maximum":2.5})", {"1", "2"}, {"0", "3"}},
    {R"({"type":"integer","minimum":98,"maximum":1203})", {"98", "99", "100", "999", "1000", "1203"}, {"97", "1204", "1210"}},
    {R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})",
     {"-9223372036854775808", "9223372036854775807"}, {"9223372036854775808", "-9223372036854775809"}},
    {R"({"type":"integer","multipleOf":7})", {"0", "7", "-14", "700"}, {"1", "8", "-1"}},
    {R"({"type":"integer","minimum":10,"maximum":40,"multipleOf":6,"allOf":[{"multipleOf":4}]})", {"12", "24", "36"}, {"18", "0", "48"}},
    {R"({"type":"number","multipleOf":5,"maximum":10})", {"5", "-5", "10"}, {"2.5", "15"}},
    {R"({"type":"number","minimum":0,"maximum":1})", {"0", "1", "0.5", "1.0", "0.0000000001"}, {"1.1", "-0.5", "2", "1.00001"}},
    {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", {"0.5", "0.01"}, {"0", "1", "0.0", "1.0"}},
    {R"({"type":"number","minimum":-2.5,"maximum":10.25})", {"-2.5", "-2.49", "-2", "0", "10.25", "10.2", "9.99"}, {"-2.51", "-3", "10.26", "10.3", "11"}},
    {R"({"type":"number","minimum":2.25})", {"2.25", "2.250", "2.3", "100"}, {"2", "2.2", "2.249", "-3"}},
    {R"({"type":"number","maximum":-1.5})", {"-1.5", "-1.50", "-2", "-100.1"}, {"-1", "0", "1", "-1.49"}},
    {R"({"type":"number","minimum":1.5,"maximum":1.5})", {"1.5", "1.50"}, {"1", "2"}},
    {R"({"type":"number","minimum":-0.25,"maximum":0.25})", {"-0.25", "0", "0.2", "-0.1"}, {"0.3", "-0.26", "-0"}},
    {R"({"minimum":5,"type":["integer","string"]})", {"5", "\"a\""}, {"4", "5.5"}},
};

const std::vector<Case> kStrings = {
    {R"({"type":"string"})", {"\"\"", "\"a\\n\\u00e9\\ud83d\\ude00\xE2\x82\xAC/\\/\""},
     {"\"", "\"\x01\"", "\"\\ud83d\"", "\"\\q\"", "\"\xFF\"", "\"\xED\xA0\x80\"", "\"\\udc00\""}},
    {R"({"type":"string","minLength":2,"maxLength":3})", {"\"ab\"", "\"a\\n\xC3\xA9\"", "\"\\ud83d\\ude00\xF0\x9F\x98\x80\""}, {"\"a\"", "\"abcd\"", "\"\\ud83d\\ude00\""}},
    {R"({"type":"string","maxLength":0})", {"\"\""}, {"\"a\""}},
    {R"({"type":"string","pattern":"^[a-c]+$"})", {"\"abc\""}, {"\"\"", "\"abd\""}},
    {R"({"type":"string","pattern":"b"})", {"\"abc\"", "\"b\""}, {"\"ac\""}},
    {R"({"type":"string","pattern":"^a"})", {"\"ab\"", "\"a\\\"\\\\\\n\\u0001\xC3\xA9\""}, {"\"ba\"", "\"a\n\""}},
    {R"({"type":"string","pattern":"^\\w+$","maxLength":3,"minLength":2})", {"\"ab\"", "\"a_1\""}, {"\"a\"", "\"abcd\"", "\"a-\""}},
    {R"({"type":"string","allOf":[{"pattern":"a"},{"pattern":"b"}]})", {"\"ab\"", "\"xbxa\""}, {"\"a\"", "\"b\""}},
    {R"({"type":"string","format":"date"})", {"\"2024-02-29\"", "\"1999-12-31\"", "\"2000-02-29\""}, {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-04-31\"", "\"2024-13-01\"", "\"0000-01-01\""}},
    {R"({"type":"string","format":"time"})", {"\"23:59:59Z\"", "\"00:00:00.5+02:30\""}, {"\"24:00:00Z\"", "\"12:00:00\""}},
    {R"({"type":"string","format":"date-time"})", {"\"2024-05-01T12:00:00Z\""}, {"\"2024-05-01\""}},
    {R"({"type":"string","format":"ipv4"})", {"\"255.0.10.199\""}, {"\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""}},
    {R"({"type":"string","format":"ipv6"})", {"\"::\"", "\"::1\"", "\"2001:db8::8a2e:370:7334\"", "\"1:2:3:4:5:6:7:8\"", "\"1::\"", "\"::ffff:1.2.3.4\"", "\"1:2:3:4:5:6:7::\""}, {"\"1:2:3\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\"", "\":::\"", "\"12345::\""}},
    {R"({"type":"string","format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""}},
    {R"({"type":"string","format":"email"})", {"\"a.b+c@mail.example.org\""}, {"\"a@b\"", "\"@b.org\"", "\"a..b@c.org\""}},
    {R"({"type":"string","format":"hostname"})", {"\"a-b.example\""}, {"\"-a\"", "\"a..b\""}},
    {R"({"type":"string","format":"uri"})", {"\"https://example.org:80/a/b?c=d#e\""}, {"\"/a\"", "\"a b\""}},
    {R"({"type":"string","format":"duration"})", {"\"P1Y2M3DT4H\"", "\"PT5M\"", "\"P2W\""}, {"\"P\"", "\"PT\"", "\"1Y\""}},
    {R"({"type":"string","format":"json-pointer"})", {"\"\"", "\"/a~1b/0\""}, {"\"a\"", "\"/~2\""}},
};

const std::vector<Case> kArrays = {
    {R"({"type":"array"})", {"[]", "[1, \"a\"]", "[\n  1,\n  2\n]"}, {"[,]", "{}", "[1 ,2]"}},
    {R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1]", "[ 1, 2 ]"}, {"[\"a\"]"}},
    {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})", {"[1,2]", "[1,2,3]"}, {"[]", "[1]", "[1,2,3,4]"}},
    {R"({"type":"array","items":{"type":"integer"},"minItems":1})", {"[1]", "[1,2,3,4]"}, {"[]"}},
    {R"({"type":"array","items":{"type":"integer"},"maxItems":0})", {"[]"}, {"[1]"}},
    {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
    {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]})", {"[]", "[1]", "[1,\"a\"]"}, {"[\"a\"]", "[1,\"a\",2]"}},
    {R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":1,"maxItems":3})", {"[1]", "[1,null]", "[1,null,null]"}, {"[]", "[1,2]", "[1,null,null,null]"}},
    {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}],"minItems":3,"maxItems":3})", {"[1,2,\"x\"]"}, {"[1,2]"}},
    {R"({"items":[{"const":1},{"const":2}],"additionalItems":{"const":3}})", {"[1,2,3,3]", "[1]"}, {"[2]", "[1,2,2]"}},
    {R"({"items":{"enum":[1,2,3]},"type":"array","uniqueItems":true,"minItems":2})", {"[1,2]", "[3,1,2]"}, {"[1]", "[1,1]", "[1,2,1]"}},
    {R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[]", "[1]"}, {"[1,2]"}},
};

const std::vector<Case> kObjects = {
    {R"({"type":"object"})", {"{}", "{\"a\": 1, \"b\": {}}"}, {"{a:1}", "{\"a\":1,}"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}})",
     {"{}", "{\"a\":1}", "{\"b\":\"\"}", "{\"a\": 1, \"b\": \"x\"}", "{\n  \"a\": 1,\n  \"b\": \"\"\n}"},
     {"{\"b\":\"\",\"a\":1}", "{\"a\":\"\"}", "{\"c\":1}", "{\"a\":1,}", "{,\"a\":1}", "{\"a\":1 \"b\":\"\"}"}},
    {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["b"]})",
     {"{\"b\":2}", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":2,\"c\":3}"}, {"{}", "{\"a\":1}", "{\"a\":1,\"c\":3}"}},
    {R"({"type":"object","required":["x"]})", {"{\"x\":[1]}"}, {"{}", "{\"y\":1}"}},
    {R"({"type":"object","properties":{"a":{"const":1}},"additionalProperties":{"type":"integer"}})",
     {"{}", "{\"a\":1}", "{\"a\":1,\"b\":2,\"ab\":3}", "{\"b\":2}"}, {"{\"b\":\"\"}", "{\"b\":2,\"a\":1}", "{\"a\":2}", "{\"b\":2,\"\\u0061\":2}"}},
    {R"({"type":"object","additionalProperties":false})", {"{}"}, {"{\"a\":1}"}},
    {R"({"type":"object","additionalProperties":{"type":"boolean"}})", {"{}", "{\"any\":true, \"\":false}"}, {"{\"a\":1}"}},
    {R"({"type":"object","patternProperties":{"^n":{"type":"integer"},"x$":{"minimum":5}},"additionalProperties":false})",
     {"{\"n\":1,\"nx\":7}", "{\"ax\":6}"}, {"{\"nx\":1}", "{\"b\":1}", "{\"n\":\"\"}"}},
    {R"({"type":"object","properties":{"n":{"maximum":3}},"patternProperties":{"^n":{"type":"integer"}},"required":["n"]})",
     {"{\"n\":3}", "{\"n\":-2,\"n2\":9}"}, {"{\"n\":4}", "{\"n\":1.5}"}},
    {R"({"type":"object","propertyNames":{"pattern":"^[a-z]{1,3}$"},"additionalProperties":{"const":1}})", {"{\"abc\":1,\"z\":1}"}, {"{\"A\":1}", "{\"abcd\":1}"}},
    {R"({"type":"object","propertyNames":{"enum":["p","q"]}})", {"{\"p\":1}", "{}"}, {"{\"r\":1}"}},
    {R"({"type":"object","properties":{"a":true,"b":true,"c":true},"minProperties":2})", {"{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":1,\"c\":1}"}, {"{}", "{\"a\":1}"}},
    {R"({"type":"object","properties":{"a":true,"b":true,"c":true},"maxProperties":1})", {"{}", "{\"c\":1}"}, {"{\"a\":1,\"b\":2}"}},
    {R"({"type":"object","minProperties":1,"maxProperties":2})", {"{\"a\":1}", "{\"a\":1,\"b\":1}"}, {"{}", "{\"a\":1,\"b\":1,\"c\":1}"}},
    {R"({"type":"object","properties":{"a":false,"b":{"const":1}}})", {"{\"b\":1}"}, {"{\"a\":1}"}},
    {R"({"properties":{"a":{"const":1}},"unevaluatedProperties":false,"allOf":[{"properties":{"b":{"const":2}}}]})", {"{\"a\":1,\"b\":2}", "{}"}, {"{\"c\":1}"}},
};

const std::vector<Case> kCombined = {
    {R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"12", "\"a\""}, {"\"ab\"", "1.5"}},
    {R"({"type":"integer","anyOf":[{"minimum":10},{"maximum":-10}]})", {"10", "-10"}, {"0", "9"}},
    {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"\""}, {"null"}},
    {R"({"oneOf":[{"properties":{"t":{"const":"a"},"x":{"type":"integer"}},"required":["t","x"]},{"properties":{"t":{"const":"b"}},"required":["t"]}]})",
     {"{\"t\":\"a\",\"x\":1}", "{\"t\":\"b\"}"}, {"{\"t\":\"a\"}", "{\"t\":\"c\"}"}},
    {R"({"type":"object","oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":1}},"required":["b"]}]})", {"{\"a\":1}", "{\"b\":1}"}, {"{\"a\":1,\"b\":1}", "{}"}},
    {R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"^b"}]})", {"\"ax\"", "\"b\""}, {"\"c\""}},
    {R"({"oneOf":[{"type":"number","maximum":0},{"type":"number","exclusiveMinimum":0}]})", {"0", "0.5", "-3"}, {"null"}},
    {R"({"allOf":[{"type":["integer","string"]},{"type":["integer","null"]},{"minimum":3}]})", {"3"}, {"\"\"", "null", "2"}},
    {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"a":{"minimum":5},"b":{"const":0}}}],"type":"object"})", {"{\"a\":5}", "{\"a\":9,\"b\":0}"}, {"{\"a\":4}", "{\"b\":0}"}},
    {R"({"$ref":"#/$defs/p","$defs":{"p":{"type":"integer","minimum":0}},"maximum":9})", {"0", "9"}, {"10", "-1"}},
    {R"({"type":"object","properties":{"next":{"$ref":"#"},"v":{"const":1}},"required":["v"]})", {"{\"v\":1}", "{\"next\":{\"next\":{\"v\":1},\"v\":1},\"v\":1}"}, {"{\"next\":{}}"}},
    {R"({"$id":"https://x.org/s","$ref":"https://x.org/s#/definitions/a%20b~1c","definitions":{"a b/c":{"const":1}}})", {"1"}, {"2"}},
    {R"({"$ref":"#item","$defs":{"x":{"$anchor":"item","const":7}}})", {"7"}, {"8"}},
    {R"({"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["kids"]}},"$ref":"#/$defs/tree"})", {"{\"kids\":[{\"kids\":[]}]}"}, {"{}"}},
    {R"({"anyOf":[{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]},{"type":"null"}]})", {"null", "{\"a\":{\"a\":null}}"}, {"{}"}},
    {R"({"title":"t","description":"d","default":1,"examples":[1],"$schema":"https://json-schema.org/draft/2020-12/schema","x-order":3,"type":"integer"})", {"1"}, {"\"\""}},
};

const std::pair<const char*, const char*> kRefused[] = {
    {R"({"not":{"type":"null"}})", "#/not: the keyword \"not\" is not supported"},
    {R"({"properties":{"a":{"if":{}}}})", "#/properties/a/if: the keyword \"if\" is not supported"},
    {R"({"contains":{}})", "\"contains\" is not supported"},
    {R"({"dependentRequired":{}})", "\"dependentRequired\" is not supported"},
    {R"({"unevaluatedItems":false})", "\"unevaluatedItems\" is not supported"},
    {R"({"$dynamicRef":"#a"})", "\"$dynamicRef\" is not supported"},
    {R"({"minLenght":1})", "unknown keyword \"minLenght\", did you mean \"minLength\"?"},
    {R"({"type":"object","properties":{"a/b":{"frob":1}}})", "#/properties/a~1b/frob: unknown keyword"},
    {R"({"type":"strng"})", "#/type: wrong value of a keyword"},
    {R"({"type":"array","uniqueItems":true,"items":{"type":"integer"}})", "\"uniqueItems\" is supported for items of an enum"},
    {R"({"type":"number","multipleOf":0.01})", "#/multipleOf: \"multipleOf\" is supported for whole numbers"},
    {R"({"format":"color"})", "#/format: the format \"color\" is not supported"},
    {R"j({"pattern":"(?=a)"})j", "#/pattern: pattern \"(?=a)\""},
    {R"({"pattern":5})", "#/pattern: wrong value"},
    {R"({"maxLength":-1})", "#/maxLength: wrong value"},
    {R"({"maxLength":1.5})", "#/maxLength: wrong value"},
    {R"({"maxLength":20000})", "#/maxLength: larger than can be counted"},
    {R"({"minItems":20000})", "#/minItems: too large"},
    {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "#/oneOf: the alternatives at /oneOf/0 and /oneOf/1 may both hold"},
    {R"({"oneOf":[{"const":1},{"type":"integer"}]})", "may both hold"},
    {R"({"oneOf":[{"type":"integer","maximum":5},{"type":"integer","minimum":5}]})", "may both hold"},
    {R"({"oneOf":[{"type":"string","pattern":"a"},{"type":"string","pattern":"b"}]})", "may both hold"},
    {R"({"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})", "may both hold"},
    {R"({"$ref":"#/nope"})", "#/$ref: the reference leads nowhere"},
    {R"({"$ref":"other.json"})", "only references within the schema"},
    {R"({"$ref":"#"})", "refers to itself"},
    {R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}})", "refers to itself"},
    {R"({"properties":{"a":{"$id":"x"}}})", "\"$id\" is supported at the root only"},
    {"false", "no text matches"},
    {R"({"enum":[]})", "no text matches"},
    {R"({"type":"integer","minimum":5,"maximum":4})", "no text matches"},
    {R"({"type":"string","minLength":3,"maxLength":2})", "no text matches"},
    {R"({"type":"string","pattern":"^a$","minLength":2})", "no text matches"},
    {R"({"properties":{"a":{"$ref":"#"}},"required":["a"],"type":"object"})", "no text matches"},
    {R"({"type":"object","required":["a"],"additionalProperties":false})", "no text matches"},
    {R"({"allOf":[{"type":"integer"},{"type":"string"}]})", "no text matches"},
    {R"({"type":"object","minProperties":3})", "\"minProperties\" above 1"},
    {R"([1])", "not a schema"},
    {R"({"properties":5})", "#/properties: wrong value"},
    {R"({"properties":{"a":5}})", "#/properties/a: not a schema"},
    {R"({"a":1,"a":2})", ""},
    {R"({"type":"object",})", ""},
};

void run(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    INFO(test.schema);
    const grammar::Grammar made = grammar::json_schema_grammar(test.schema, "test");
    const grammar::Automaton automaton(made);
    const std::string printed = grammar::print_gbnf(made);
    INFO(printed);
    const grammar::Automaton again = from_gbnf(printed);
    for (const std::string& text : test.yes) {
      INFO(text);
      CHECK(accepts(automaton, text));
      CHECK(accepts(again, text));
    }
    for (const std::string& text : test.no) {
      INFO(text);
      CHECK(!accepts(automaton, text));
      CHECK(!accepts(again, text));
    }
    const grammar::RandomText random(automaton);
    for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(accepts(again, random.make(seed, 30)));
  }
}

}  // namespace

TEST_CASE("JSON schemas of values, enum and const", "[schema]") { run(kValues); }
TEST_CASE("JSON schemas of numbers between bounds", "[schema]") { run(kNumbers); }
TEST_CASE("JSON schemas of strings", "[schema]") { run(kStrings); }
TEST_CASE("JSON schemas of arrays", "[schema]") { run(kArrays); }
TEST_CASE("JSON schemas of objects", "[schema]") { run(kObjects); }
TEST_CASE("JSON schemas that combine others", "[schema]") { run(kCombined); }

TEST_CASE("what a schema cannot have is refused with its place", "[schema]") {
  for (const auto& [schema, message] : kRefused) {
    INFO(schema);
    const std::string got = refusal([&] { from_schema(schema); });
    INFO(got);
    CHECK(!got.empty());
    CHECK(got.find(message) != std::string::npos);
    CHECK(got.find('\n') == std::string::npos);
  }
}

// Reliability 1.5: pattern recursion, empty sequences, lengths beyond 2000, nesting.
TEST_CASE("hostile schemas are refused or compiled, never a crash", "[schema]") {
  const auto repeated = [](const std::string& text, std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += text;
    return out;
  };
  CHECK(accepts(from_schema(R"({"type":"string","maxLength":2000})"), "\"" + std::string(2000, 'x') + "\""));
  CHECK(!accepts(from_schema(R"({"type":"string","maxLength":10000})"), "\"" + std::string(10001, 'x') + "\""));
  CHECK(!refusal([&] { from_schema(R"({"pattern":")" + repeated("(", 50'000) + R"("})"); }).empty());
  CHECK(!refusal([&] { from_schema(R"({"pattern":")" + repeated("(a|", 150) + repeated(")*", 150) + R"("})"); }).empty() ==
        false);
  for (const char* const pattern : {"", "()", "|", "(|)", "a||b", "^", "$", "^$", "(^)", "()*", "(a*)*", "[^]"})
    refusal([&] { from_schema(std::string(R"({"type":"string","pattern":")") + pattern + R"("})"); });
  CHECK(!refusal([&] { from_schema(repeated(R"({"items":)", 5000) + "{}" + repeated("}", 5000)); }).empty());
  CHECK(refusal([&] { from_schema(repeated(R"({"type":"array","items":)", 100) + "{}" + repeated("}", 100)); }).empty());
  std::string any = R"({"allOf":[)";
  for (int i = 0; i < 20; ++i)
    any += std::string(i == 0 ? "" : ",") + R"({"anyOf":[{"minimum":)" + std::to_string(i) + R"(},{"maximum":)" + std::to_string(-i) + "}]}";
  CHECK(refusal([&] { from_schema(any + R"(],"type":"integer"})"); }).find("too many combinations") != std::string::npos);
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 200; ++i) wide += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + R"(":{"type":"string"})";
  CHECK(accepts(from_schema(wide + "}}"), "{\"p3\":\"\",\"p199\":\"\"}"));
  CHECK(!refusal([&] { from_schema(std::string(5u << 20, ' ')); }).empty());
}

}  // namespace quern::tests
