// Pooling from the modules of a sentence-transformers directory and from GGUF's pooling type.
#include "convert/pooling_import.hpp"
#include "catch.hpp"
#include "convert/memory_checkpoint.hpp"

using namespace quern;
using contract::Pool;

namespace {

constexpr const char* kModules = R"([
  {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";

std::optional<contract::Pooling> imported(const std::string& modules, const std::string& pooling,
                                          std::vector<std::string>& notices) {
  test::MemoryCheckpoint source(checkpoint::SourceKind::hugging_face, "{}");
  source.side_files["modules.json"] = modules;
  source.side_files["1_Pooling/config.json"] = pooling;
  contract::Contract c;
  convert::import_pooling(source, c, notices);
  return c.pooling;
}

}  // namespace

TEST_CASE("sentence-transformers directories say how a text becomes a vector") {
  std::vector<std::string> notices;
  const auto mean = imported(
      kModules, R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false})", notices);
  REQUIRE(mean);
  CHECK(mean->mode == Pool::mean);
  CHECK(mean->normalize);
  CHECK(imported(kModules, R"({"pooling_mode": "cls"})", notices)->mode == Pool::first);
  CHECK(imported(kModules, R"({"pooling_mode_lasttoken": true})", notices)->mode == Pool::last);
  CHECK(notices.empty());
  CHECK_FALSE(imported(kModules, R"({"pooling_mode_max_tokens": true})", notices));
  CHECK_FALSE(imported(
      kModules, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})", notices));
  CHECK_FALSE(imported(kModules, "", notices));
  CHECK(notices.size() == 3);
  CHECK_FALSE(imported("", "", notices));
  CHECK(
      imported(
          R"([{"type": "x.Pooling", "path": "1_Pooling"}, {"type": "x.Dense", "path": "2_Dense"}])",
          R"({"pooling_mode_mean_tokens": true})", notices)
          ->normalize == false);
  CHECK(notices.size() == 4);
  CHECK_THROWS_AS(imported("{}", "", notices), base::Error);
}

TEST_CASE("GGUF files name the pooling by a number") {
  const auto pooling = [](const char* type) {
    test::MemoryCheckpoint source(
        checkpoint::SourceKind::gguf,
        std::string(R"({"general.architecture": "a", "a.pooling_type": )") + type + "}");
    contract::Contract c;
    std::vector<std::string> notices;
    convert::import_pooling(source, c, notices);
    return c.pooling;
  };
  CHECK(pooling("1")->mode == Pool::mean);
  CHECK(pooling("2")->mode == Pool::first);
  CHECK(pooling("3")->mode == Pool::last);
  CHECK_FALSE(pooling("0"));
  CHECK_FALSE(pooling("\"mean\""));
}
