// The recipe language: look-up, alternatives, literals, functions, and its errors.
#include "catch.hpp"

#include "base/error.hpp"
#include "convert/expression.hpp"
#include "convert/glob.hpp"

namespace base = quern::base;
namespace convert = quern::convert;
using base::Json;

namespace {

const Json kConfig = Json::parse(R"({
  "hidden_size": 576, "heads": 9, "none": null, "act": "swish", "on": true, "big": 18446744073709551615,
  "x.block_count": 30, "rope": {"theta": 1e5, "inner": {"deep": 7}}, "ratio": 0.5, "list": [1],
  "kinds": ["full", "local", null]})");
const Json kActivations = Json::parse(R"({"swish": "silu", "gelu_new": "gelu_tanh"})");

convert::Environment environment() {
  convert::Environment result;
  result.find = [](std::string_view path) { return convert::find_path(kConfig, path); };
  result.tensor_rows = [](std::string_view name) -> std::optional<std::uint64_t> {
    return name == "token_embd.weight" ? std::optional<std::uint64_t>(320) : std::nullopt;
  };
  result.activations = &kActivations;
  return result;
}

Json value(const char* text) {
  return convert::evaluate_all(Json(text), environment(), "test");
}

}  // namespace

TEST_CASE("expressions have the values the guide says") {
  CHECK(value("$hidden_size") == 576);
  CHECK(value("$x.block_count") == 30);
  CHECK(value("$rope.theta") == 1e5);
  CHECK(value("$rope.inner.deep") == 7);
  CHECK(value("$absent|$none|$heads") == 9);
  CHECK(value("$absent|null").is_null());
  CHECK(value("$none").is_null());
  CHECK(value("$absent|1e-6") == 1e-6);
  CHECK(value("div($hidden_size,$heads)") == 64);
  CHECK(value("div($hidden_size,$heads)").is_number_integer());
  CHECK(value("div($ratio, 2)") == 0.25);
  CHECK(value("mul(4,$hidden_size)") == 2304);
  CHECK(value("rsqrt(div($hidden_size,$heads))") == 0.125);
  CHECK(value("not($on)") == false);
  CHECK(value("eq($heads,9)") == true);
  CHECK(value("if($on,a,b)") == "a");
  CHECK(value("if($absent|false,a,b)") == "b");
  CHECK(value("activation($act)") == "silu");
  CHECK(value("activation($act2|gelu_new)") == "gelu_tanh");
  CHECK(value("rows(token_embd.weight)") == 320);
  CHECK(value("rows(other)|5") == 5);
  CHECK(value("mul($absent,2)|7") == 7);
  CHECK(value("if(eq($none|0,0),null,1)|null").is_null());
  CHECK(value("add($heads,1)") == 10);
  CHECK(value("sub($heads,10)") == -1);
  CHECK(value("sub($ratio,1)") == -0.5);
  CHECK(value("mod($hidden_size,7)") == 2);
  CHECK(value("min($heads,$ratio)") == 0.5);
  CHECK(value("max($heads,3)") == 9);
  CHECK(value("sqrt(16)") == 4.0);
  CHECK(value("ln(1)") == 0.0);
  CHECK(value("less($heads,9)") == false);
  CHECK(value("less($ratio,$heads)") == true);
  CHECK(value("and($on,true,not($on))") == false);
  CHECK(value("and(false,$absent)") == false);
  CHECK(value("or($on,$absent)") == true);
  CHECK(value("or(false,false)") == false);
  CHECK(value("at($kinds,1)") == "local");
  CHECK(value("at($kinds,2)|none") == "none");
  CHECK(value("at($kinds,3)|none") == "none");
  CHECK(value("at($absent,0)|none") == "none");
  CHECK(value("has($kinds,local)") == true);
  CHECK(value("has($list,2)") == false);
  CHECK(value("begins($act,swi)") == true);
  CHECK(value("begins($hidden_size,5)") == true);
  CHECK(value("begins($act,swishes)") == false);
  CHECK(value("size($kinds)") == 3);
  CHECK(value("exists(token_embd.weight)") == true);
  CHECK(value("exists(other)") == false);
  CHECK(value("rms_norm") == "rms_norm");
  CHECK(value("'two words, (one)'") == "two words, (one)");
  CHECK(value("true") == true);
  CHECK(value("-3") == -3);
  CHECK(convert::evaluate_all(Json::parse(R"({"a": ["$heads", 1, true], "b": null})"),
                              environment(),
                              "t") == Json::parse(R"({"a": [9, 1, true], "b": null})"));
  CHECK(convert::paths_in(Json::parse(R"~(["$a|$b", {"c": "mul($d.e,2)"}])~"), "t") ==
        std::vector<std::string>{"a", "b", "d.e"});
}

TEST_CASE("an object with a condition is null unless it holds") {
  const auto evaluated = [](const char* text) {
    return convert::evaluate_all(Json::parse(text), environment(), "t");
  };
  CHECK(evaluated(R"({"a": {"when": "$on", "b": "$heads"}})") == Json::parse(R"({"a": {"b": 9}})"));
  CHECK(evaluated(R"~({"a": {"when": "not($on)", "b": "$absent"}})~") ==
        Json::parse(R"({"a": null})"));
  CHECK_THROWS_AS(evaluated(R"({"when": "$heads"})"), base::Error);
}

TEST_CASE("wrong expressions and wrong values are input errors") {
  const char* broken[] = {"",
                          "$",
                          "$a|",
                          "div(1)",
                          "div(1,2,3)",
                          "power(2,3)",
                          "div(1,2",
                          "'open",
                          "1 2",
                          "$absent",
                          "mul($absent,2)",
                          "div($hidden_size,7)",
                          "div(1,0)",
                          "div(0.5,0)",
                          "mul($act,2)",
                          "rsqrt(0)",
                          "rsqrt(-1)",
                          "not($heads)",
                          "if($heads,1,2)",
                          "activation(sillu)",
                          "activation(7)",
                          "mul($big,2)",
                          "mul(4611686018427387904,4)",
                          "mul($list,2)",
                          "add(9223372036854775807,1)",
                          "mod(1,0)",
                          "mod(-1,2)",
                          "mod($ratio,2)",
                          "at($heads,0)",
                          "at($kinds,$ratio)",
                          "at($kinds,5)",
                          "has($act,s)",
                          "less($act,1)",
                          "and($heads,true)",
                          "and(true)",
                          "ln(0)",
                          "sqrt(-1)",
                          "a)"};
  for (const char* text : broken) {
    CAPTURE(text);
    try {
      value(text);
      FAIL("accepted");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::input);
    }
  }
  CHECK_THROWS_AS(value(std::string(5000, '(').insert(0, "div").c_str()), base::Error);
  std::string nested = "1";
  for (int i = 0; i < 200; ++i) nested = "mul(1," + nested + ")";
  CHECK_THROWS_AS(value(nested.c_str()), base::Error);
}

TEST_CASE("name patterns") {
  CHECK(
      convert::glob_match("*.rotary_emb.inv_freq", "model.layers.3.self_attn.rotary_emb.inv_freq"));
  CHECK(convert::glob_match("blk.*.attn_rot_embd*", "blk.12.attn_rot_embd"));
  CHECK(convert::glob_match("*", ""));
  CHECK_FALSE(convert::glob_match("mamba", "mamba2"));
  CHECK_FALSE(convert::glob_match("*.bias", "a.bias.b"));
  CHECK(convert::glob_match("*a*b*", "xxaxxaxb"));
}
