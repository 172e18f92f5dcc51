// Names of a recipe: places for numbers, prefixes, transforms with computed words.
#include "convert/tensor_plan.hpp"

#include "catch.hpp"
#include "convert/expression.hpp"
#include "convert/memory_checkpoint.hpp"

using namespace quern;
using base::Json;

TEST_CASE("every place of a rule is filled from the name, in names and in transforms") {
  test::MemoryCheckpoint source(checkpoint::SourceKind::hugging_face, "{}");
  source.add("model.layers.0.mlp.experts.gate_up_proj", {4, 6, 8});
  const Json section = Json::parse(R"({
    "prefixes": ["", "model."],
    "tensors": {
      "decoder.{l}.{b}.expert.{e}.gate.*": {
        "from": ["{p}layers.{l}.mlp.experts.{e}.w1.*", "{p}layers.{l}.mlp.experts.gate_up_proj"],
        "then": ["part {e} of $n_experts", "transpose", "every 2 from 0"] },
      "decoder.{l}.0.q.*": "{p}layers.{l}.q.*" },
    "ignore_tensors": [] })");
  const convert::NameMap names(section, source, "recipe");
  const Json values = {{"n_experts", 4}};
  convert::Environment environment;
  environment.find = [&](std::string_view path) -> const Json* {
    const auto found = values.find(std::string(path));
    return found == values.end() ? nullptr : &*found;
  };
  const auto rule = names.source_of("decoder.12.1.expert.3.gate.weight", environment);
  CHECK(rule.from == std::vector<std::string>{"model.layers.12.mlp.experts.3.w1.weight",
                                              "model.layers.12.mlp.experts.gate_up_proj"});
  CHECK(rule.transforms == std::vector<std::string>{"part 3 of 4", "transpose", "every 2 from 0"});
  CHECK(names.source_of("decoder.0.0.q.bias", environment).from ==
        std::vector<std::string>{"model.layers.0.q.bias"});
  CHECK_FALSE(names.has_rule("decoder.0.1.expert.x.gate.weight"));
  CHECK_FALSE(names.has_rule("decoder.0.1.expert.3.gate.weight.more"));
}

TEST_CASE("a recipe's numbers of the layer stand in names") {
  test::MemoryCheckpoint source(checkpoint::SourceKind::hugging_face, "{}");
  source.add("group.0.inner.0.weight", {4, 4});
  const Json section = Json::parse(R"~({
    "prefixes": [""], "ignore_tensors": [],
    "numbers": {"g": "div(sub($layer,mod($layer,$inner)),$inner)", "k": "mod($layer,$inner)"},
    "tensors": {"encoder.{l}.0.q.*": "group.{g}.inner.{k}.*"} })~");
  const convert::NameMap names(section, source, "recipe");
  const Json values = {{"inner", 3}};
  convert::Environment environment;
  environment.find = [&](std::string_view path) { return convert::find_path(values, path); };
  CHECK(names.source_of("encoder.7.0.q.bias", environment).from.front() == "group.2.inner.1.bias");
}
