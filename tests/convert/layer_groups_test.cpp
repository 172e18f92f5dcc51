// One block name per layer -> groups of pattern x repeat.
#include "catch.hpp"

#include "base/error.hpp"
#include "convert/layer_groups.hpp"
#include "convert/template_evaluation.hpp"

namespace base = quern::base;
namespace convert = quern::convert;
using base::Json;

namespace {

// "D M*3 LG*2": groups as text.
std::string grouped(const std::string& letters) {
  std::vector<std::string> blocks;
  for (const char c : letters) blocks.emplace_back(1, c);
  std::string text;
  for (const auto& group : convert::group_layers(blocks)) {
    if (!text.empty()) text += ' ';
    for (const std::string& name : group.pattern) text += name;
    if (group.repeat > 1) text += "*" + std::to_string(group.repeat);
  }
  return text;
}

convert::Environment environment(const Json& values) {
  convert::Environment result;
  result.find = [&values](std::string_view path) { return convert::find_path(values, path); };
  return result;
}

}  // namespace

TEST_CASE("layers are grouped by the pattern that covers most") {
  CHECK(grouped("A") == "A");
  CHECK(grouped("AAAA") == "A*4");
  CHECK(grouped("DMMMM") == "D M*4");
  CHECK(grouped("DDDMM") == "D*3 M*2");
  CHECK(grouped("LGLGLG") == "LG*3");
  CHECK(grouped("LGLGL") == "LG*2 L");
  CHECK(grouped("LLLLLG") == "L*5 G");
  CHECK(grouped("LLLLLGLLLLLGLL") == "LLLLLG*2 L*2");
  CHECK(grouped("FFWWFFWW") == "FFWW*2");
  CHECK(grouped("ABCD") == "A B C D");
  CHECK(grouped(std::string(200, 'A')) == "A*200");
}

TEST_CASE("a recipe's expressions have bounded work, whatever grows") {
  const auto repeated = [](const std::string& text, std::size_t n) {
    std::string result;
    for (std::size_t i = 0; i < n; ++i) result += text;
    return result;
  };
  const auto contract_of = [](const std::string& block, const std::string& more) {
    return Json::parse(R"({"decoder": {"layers": {"count": 16384, "block": ")" + block + "\"}}," + more + "}");
  };
  const Json ifs = contract_of(repeated("if(false,x,null)|", 30000) + "b", "\"blocks\": {}");
  const Json choice = contract_of(repeated("null|", 190000) + "b", "\"blocks\": {}");
  const Json list_per_layer =
      contract_of("b", R"("blocks": {"b": {"branches": [{"op": "o"}]}}, "ops": {"o": {"n": "$layer", "l": [)" +
                           repeated("1,", 20000) + "1]}}");
  const Json text_per_layer =
      contract_of("b", R"("blocks": {"b": {"branches": [{"op": "o"}]}}, "ops": {"o": {"n": "$layer", "l": "')" +
                           repeated("text ", 20000) + "'\"}}");
  const Json copied = contract_of("if(eq(at($big,$layer),1),b,b)", "\"blocks\": {}");
  Json likes = contract_of("b", "\"blocks\": {}");
  likes["ops"]["big"]["l"] = std::vector<int>(20000, 1);
  for (int i = 0; i < 1000; ++i) likes["ops"]["o" + std::to_string(i)] = Json::parse(R"({"like": "big"})");
  Json values = Json::object();
  values["big"] = std::vector<int>(20000, 1);
  for (const Json& contract : {ifs, choice, list_per_layer, text_per_layer, copied, likes})
  {
    convert::Environment short_of = environment(values);
    short_of.fuel = std::make_shared<convert::Fuel>(1'000'000, 100'000);  // the usual amount takes seconds
    CHECK_THROWS_WITH(convert::evaluate_template(contract, short_of, "t"),
                      Catch::Contains("the recipe's expressions"));
  }
}

TEST_CASE("a template keeps what its layers lead to, and layers may have numbers of their own") {
  const Json values = Json::parse(R"({"n": 3, "w": 4, "kinds": ["a", "b", "b"]})");
  const Json contract = Json::parse(R"~({
    "decoder": {"layers": {"count": "$n", "block": "at($kinds,$layer)"}, "final_norm": "f"},
    "blocks": {"a": {"branches": [{"op": "plain", "norm_in": "n1"}]},
               "b": {"branches": [{"op": "deep", "norm_in": "n2"}]},
               "c": {"branches": [{"op": "unused", "norm_in": "n3"}]}},
    "ops": {"plain": {"kind": "ffn", "d_ff": "$w"}, "deep": {"like": "plain", "d_ff": "mul($w,$layer)"},
            "unused": {"kind": "ffn", "d_ff": "$absent"}},
    "norms": {"n1": {"eps": 1}, "n2": {"like": "n1", "bias": true}, "n3": {"eps": "$absent"}, "f": {"eps": 2}}})~");
  const Json got = convert::evaluate_template(contract, environment(values), "t");
  CHECK(got["decoder"]["layers"].size() == 3);
  CHECK(got["decoder"]["layers"][2]["pattern"][0] == "b_2");
  CHECK(got["blocks"].size() == 3);
  CHECK(got["blocks"]["b_1"]["branches"][0]["op"] == "deep_1");
  CHECK(got["ops"] ==
        Json::parse(R"({"plain": {"kind": "ffn", "d_ff": 4}, "deep_1": {"kind": "ffn", "d_ff": 4},
                                     "deep_2": {"kind": "ffn", "d_ff": 8}})"));
  CHECK(got["norms"] ==
        Json::parse(R"({"n1": {"eps": 1}, "n2": {"eps": 1, "bias": true}, "f": {"eps": 2}})"));
}

TEST_CASE("layers without a block, endless likes and absurd counts are input errors") {
  const Json values = Json::parse(R"({"n": 3, "kinds": ["a"]})");
  const char* broken[] = {
      R"~({"decoder": {"layers": {"count": "$n", "block": "at($kinds,$layer)"}}})~",
      R"~({"decoder": {"layers": {"count": 0, "block": "a"}}})~",
      R"~({"decoder": {"layers": {"count": 1000000000000, "block": "a"}}})~",
      R"~({"decoder": {"layers": {"count": "x", "block": "a"}}})~",
      R"~({"decoder": {"layers": {"count": 1, "block": "a", "more": 1}}})~",
      R"~({"blocks": {"a": {"like": "b"}, "b": {"like": "a"}}})~",
      R"~({"blocks": {"a": {"like": "nothing"}}})~"};
  for (const char* text : broken) {
    CAPTURE(text);
    CHECK_THROWS_AS(convert::evaluate_template(Json::parse(text), environment(values), "t"),
                    base::Error);
  }
}

TEST_CASE("layers that share weights form groups by a value of the layer") {
  const auto layers = [](const char* by, int count, int period) {
    const Json values = {{"n", count}, {"p", period}};
    const Json text = {{"count", "$n"}, {"block", "if(eq(mod($layer,2),0),a,b)"},
                       {"share", {{"period", "$p"}, {"by", by}}}};
    return convert::evaluate_layers(text, environment(values), {}, "t");
  };
  CHECK(layers("0", 6, 2) ==
        Json::parse(R"([{"pattern": ["a", "b"], "repeat": 3, "share_weights": true}])"));
  CHECK(layers("if(less($layer,4),x,y)", 8, 2) ==
        Json::parse(R"([{"pattern": ["a", "b"], "repeat": 2, "share_weights": true},
                        {"pattern": ["a", "b"], "repeat": 2, "share_weights": true}])"));
  CHECK_THROWS_AS(layers("0", 6, 1), base::Error);   // the blocks alternate
  CHECK_THROWS_AS(layers("0", 5, 2), base::Error);   // half a pattern is left
  CHECK_THROWS_AS(layers("0", 6, 0), base::Error);
}
