// Which recipe reads a checkpoint: --arch-as, and what is said of names that no recipe has.
#include "catch.hpp"
#include "contract/contract.hpp"
#include "recipe_cases.hpp"

namespace base = quern::base;
namespace contract = quern::contract;
namespace convert = quern::convert;
using quern::test::config_of;
using quern::test::contains;
using quern::test::copy_of_fixture;
using quern::test::error_of;
using quern::test::recipes;

TEST_CASE("a checkpoint of an unknown name leads back to its own recipe, and hears what the recipe lacks") {
  for (const char* fixture : {"llama2", "gpt2", "t5", "bart", "bert", "modernbert", "mixtral", "qwen3-moe", "gpt-oss-sinks",
                              "deepseek-v3.2-dsa", "falcon-new", "bloom-alibi", "gemma3", "glm4", "nsa"}) {
    CAPTURE(fixture);
    auto source = copy_of_fixture(fixture);
    base::Json config = config_of(*source);
    const std::string family = convert::match_recipe(recipes(), *source, "").name;
    config["architectures"] = base::Json::array({"ZebraForStripes"});
    config["model_type"] = "zebra";
    source->set_config(config.dump());
    const std::string whole = error_of([&] { convert::match_recipe(recipes(), *source, ""); });
    const std::string told = base::cat("nearest recipe: ", family, " (");
    INFO(whole);
    CHECK(contains(whole, told));
    CHECK_FALSE(contains(whole, "unknown to it: tensors"));
    source->add("model.layers.0.self_attn.stripe_norm.weight", {8});  // ends as names of the family do
    const std::string more = error_of([&] { convert::match_recipe(recipes(), *source, ""); });
    INFO(more);
    CHECK(contains(more, "stripe_norm.weight"));
  }
  auto source = copy_of_fixture("llama2");
  base::Json config = config_of(*source);
  config["architectures"] = base::Json::array({"ZebraForCausalLM"});
  source->set_config(config.dump());
  source->remove("model.layers.1.mlp.up_proj.weight");
  CHECK(contains(error_of([&] { convert::match_recipe(recipes(), *source, ""); }),
                 "(by it: missing tensor for decoder.1.1.up.weight"));
  config.erase("architectures");
  config.erase("model_type");
  source->set_config(config.dump());
  const std::string nameless = error_of([&] { convert::match_recipe(recipes(), *source, ""); });
  CHECK(contains(nameless, "no architectures and no model_type"));
  CHECK(contains(nameless, "nearest recipe: llama"));
  CHECK(contains(nameless, "--arch-as"));
}

TEST_CASE("a family's name keeps the head of the configuration's own class") {
  const auto head_of = [](const char* fixture, const char* class_name, const char* arch_as) {
    auto source = copy_of_fixture(fixture);
    base::Json config = config_of(*source);
    config["architectures"] = base::Json::array({class_name});
    config["model_type"] = "zebra";
    source->set_config(config.dump());
    const convert::Recipe recipe = convert::match_recipe(recipes(), *source, arch_as);
    return convert::resolve_config(recipe, source->config_json(), "config.json").head;
  };
  using contract::HeadKind;
  CHECK(head_of("bert", "ZebraForMaskedLM", "bert").kind == HeadKind::lm);
  CHECK(head_of("bert", "ZebraModel", "bert").kind == HeadKind::none);
  CHECK(head_of("roberta", "ZebraForTokenClassification", "roberta").kind == HeadKind::classify);
  CHECK(head_of("modernbert", "ZebraForQuestionAnswering", "modernbert").kind == HeadKind::span);
  CHECK(head_of("llama2", "ZebraForCausalLM", "llama").kind == HeadKind::lm);
  CHECK(head_of("llama2", "ZebraForSequenceClassification", "llama").pool == contract::Pool::last);
  CHECK(head_of("llama2", "ZebraModel", "llama").kind == HeadKind::none);
  CHECK(head_of("bert", "ZebraForMaskedLM", "BertForTokenClassification").kind == HeadKind::classify);  // at its word
}

TEST_CASE("an architecture can be treated as another") {
  auto source = copy_of_fixture("llama2");
  base::Json config = config_of(*source);
  config["architectures"] = base::Json::array({"NovelForCausalLM"});
  config["flavour"] = 3;
  source->set_config(config.dump());
  const convert::Recipe recipe = convert::match_recipe(recipes(), *source, "LlamaForCausalLM");
  CHECK(recipe.name == convert::match_recipe(recipes(), *source, "llama").name);
  const convert::Resolved resolved = convert::resolve(recipe, *source, {});
  CHECK(resolved.unknown_keys == std::vector<std::string>{"flavour"});
  CHECK(resolved.notices.size() == 1);
}
