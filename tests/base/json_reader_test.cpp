#include "base/json_reader.hpp"

#include <string>

#include "catch.hpp"

using namespace quern::base;

TEST_CASE("malformed JSON is one line with file and byte") {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1}x", "\"\xff\"", "{\"a\":1e999}", "nul", "{\"a\" 1}", "// c\n1"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_json(text, "f.json"), Error);
  }
  CHECK_THROWS_WITH(parse_json("{\"a\":1,\"a\":2}", "f.json"), "f.json: duplicate key \"a\"");
  CHECK_THROWS_WITH(parse_json(std::string(100000, '['), "f.json"), "f.json: nesting > 128");
  CHECK_NOTHROW(parse_json(std::string(128, '[') + std::string(128, ']'), "f"));
  CHECK_THROWS_AS(parse_json(std::string(129, '[') + std::string(129, ']'), "f"), Error);
}

TEST_CASE("a text that has no place is told by its bytes") {
  CHECK_THROWS_WITH(parse_json("{\"a\": x}", ""), Catch::StartsWith("byte 7: not valid JSON"));
  CHECK_THROWS_WITH(parse_json(std::string_view("ab\0", 3), ""), Catch::StartsWith("byte 2: NUL"));
}

TEST_CASE("a NUL byte does not end the text") {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"{}\0junk"sv, "{}\0"sv, "\0{}"sv, "{\"a\":\0 1}"sv})
    CHECK_THROWS_WITH(parse_json(text, "f.json"), Catch::Contains("NUL byte"));
  CHECK(parse_json("\"\\u0000\"", "f.json").get<std::string>() == "\0"sv);
}

TEST_CASE("key order and values survive") {
  const Json json = parse_json(R"({"z":1,"a":[true,null,-2,0.5,"x"],"m":{"k":18446744073709551615}})", "f");
  CHECK(json.dump() == R"({"z":1,"a":[true,null,-2,0.5,"x"],"m":{"k":18446744073709551615}})");
}

TEST_CASE("objects are read strictly") {
  enum class Kind { rope, none };
  static constexpr EnumName<Kind> kNames[] = {{"rope", Kind::rope}, {"none", Kind::none}};
  const Json json = parse_json(R"({"n":3,"f":1.5,"s":"ropee","o":{"q":1},"big":18446744073709551615})", "f");
  JsonObject object(json, "f.json");
  CHECK(object.get_size("n", 1, 10) == 3);
  CHECK_THROWS_WITH(object.get_size("n", 4, 10),
                    "f.json: n: out of range (got 3, expected an integer in [4, 10])");
  CHECK_THROWS_AS(object.get_int("f", 0, 10), Error);
  CHECK_THROWS_AS(object.get_int("big", 0, INT64_MAX), Error);
  CHECK_THROWS_AS(object.get_bool("n"), Error);
  CHECK_THROWS_WITH(object.get("absent"), "f.json: absent: key is missing");
  CHECK_THROWS_WITH(object.get_enum("s", kNames),
                    "f.json: s: unknown value \"ropee\", did you mean \"rope\"?; known: rope, none");
  JsonObject inner = object.get_object("o");
  CHECK_THROWS_WITH(inner.finish(), Catch::Contains("f.json: o.q: unknown key"));
  CHECK_THROWS_WITH(JsonObject(json["n"], "f.json"), Catch::Contains("expected object"));
}
