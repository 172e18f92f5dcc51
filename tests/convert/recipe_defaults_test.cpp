// What a recipe says of keys that a configuration leaves out, its notices, and choices by the version of a file.
#include "catch.hpp"

#include "contract/contract.hpp"
#include "convert/recipe.hpp"
#include "memory_checkpoint.hpp"

namespace base = quern::base;
namespace convert = quern::convert;
using quern::test::copy_of_fixture;
using quern::test::MemoryCheckpoint;

namespace {

convert::Resolved resolve(const quern::checkpoint::Checkpoint& source) {
  static const std::vector<convert::Recipe> all = convert::builtin_recipes();
  return convert::resolve(convert::match_recipe(all, source, ""), source, {});
}

base::Json config_of(const MemoryCheckpoint& source) {
  return base::parse_json(source.config_json(), "config");
}

}  // namespace

TEST_CASE("a key that is left out has its class's default, null is a value") {
  auto source = copy_of_fixture("mistral-swa");
  base::Json config = config_of(*source);
  const auto window = [&] {
    source->set_config(config.dump());
    return resolve(*source).contract.ops.at("attn").attention->mask.window;
  };
  CHECK(window() == 16U);
  config["sliding_window"] = nullptr;
  CHECK_FALSE(window());
  config.erase("sliding_window");
  CHECK(window() == 4096U);
}

TEST_CASE("a recipe's notices, and a choice by the version that wrote a file") {
  auto source = copy_of_fixture("falcon-rw-alibi");
  base::Json config = config_of(*source);
  const convert::Resolved newer = resolve(*source);
  config["transformers_version"] = "4.27.4";
  source->set_config(config.dump());
  const convert::Resolved older = resolve(*source);
  const auto slope = [](const convert::Resolved& one) { return one.contract.ops.at("attn").attention->alibi->slopes[0]; };
  CHECK(slope(newer) == 2 * slope(older));
  REQUIRE(older.notices.size() == 1);
  CHECK(older.notices[0].find("added once") != std::string::npos);
  CHECK(newer.notices.at(0).find("twice") != std::string::npos);
}
