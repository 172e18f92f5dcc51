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
  CHECK_FALSE(imported(R"([{"type": "x.Pooling", "path": "1_Pooling"}])",
                       R"({"pooling_mode_mean_tokens": true})", notices)
                  ->normalize);
  CHECK(notices.size() == 3);
  CHECK_THROWS_AS(imported("{}", "", notices), base::Error);
}

namespace {

// A directory with a pooling and the modules `kinds` behind it, each with the configuration beside it.
struct ModuleCase {
  std::vector<std::pair<std::string, std::string>> kinds;
  std::string pooling = R"({"pooling_mode": "mean"})";

  test::MemoryCheckpoint source() const {
    test::MemoryCheckpoint out(checkpoint::SourceKind::hugging_face, "{}");
    std::string modules = R"([{"path": "", "type": "x.Transformer"})";
    out.side_files["0/config.json"] = pooling;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const std::string path = std::to_string(i);
      modules += R"(, {"path": ")" + path + R"(", "type": "x.)" + kinds[i].first + "\"}";
      if (!kinds[i].second.empty()) out.side_files[path + "/config.json"] = kinds[i].second;
      out.add(path + "/linear.weight", {2, 2});
      out.add(path + "/norm.weight", {2});
    }
    out.side_files["modules.json"] = modules + "]";
    return out;
  }
};

constexpr const char* kMean = R"({"pooling_mode": "mean"})";
constexpr const char* kTanh = R"({"in_features": 8, "out_features": 5})";

}  // namespace

TEST_CASE("layers behind the pooling come in the order of the modules, with their tensors' names") {
  const ModuleCase modules{{{"Pooling", kMean},
                            {"Dense", kTanh},
                            {"Dropout", ""},
                            {"Dense", R"({"in_features": 5, "out_features": 7, "bias": false,
                               "activation_function": "torch.nn.modules.linear.Identity"})"},
                            {"LayerNorm", R"({"dimension": 7})"},
                            {"Normalize", ""}}};
  contract::Contract c;
  c.d_model = 8;
  std::vector<std::string> notices;
  const auto sources = convert::import_pooling(modules.source(), c, notices);
  REQUIRE(c.pooling);
  REQUIRE(c.pooling->dense.size() == 2);
  const contract::HeadTransform &first = c.pooling->dense[0], &second = c.pooling->dense[1];
  CHECK((first.d_out == 5 && first.bias && first.activation == contract::Activation::tanh && !first.norm));
  CHECK((second.d_out == 7 && !second.bias && !second.activation && c.norms.at(second.norm.value()).bias));
  CHECK(c.pooling->normalize);
  CHECK(notices.empty());
  const auto from = [&](const std::string& name) {
    for (const convert::TensorSource& source : sources)
      if (source.canonical == name) return source.from.at(0);
    return std::string();
  };
  CHECK(from("pooling.0.weight") == "1/linear.weight");
  CHECK(from("pooling.0.bias") == "1/linear.bias");
  CHECK(from("pooling.1.weight") == "3/linear.weight");
  CHECK(from("pooling.1.norm.bias") == "4/norm.bias");
}

TEST_CASE("modules that quern does not follow are refused by name") {
  const auto refused_source = [](const test::MemoryCheckpoint& source) {
    contract::Contract c;
    c.d_model = 8;
    std::vector<std::string> notices;
    try {
      convert::import_pooling(source, c, notices);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto refused = [&](const ModuleCase& modules) { return refused_source(modules.source()); };
  const auto behind_mean = [](const std::string& kind, const std::string& config) {
    return ModuleCase{{{"Pooling", kMean}, {kind, config}}};
  };
  const std::pair<ModuleCase, const char*> rows[] = {
      {behind_mean("WeightedLayerPooling", "{}"), "WeightedLayerPooling"},
      {behind_mean("LSTM", "{}"), "LSTM"},
      {behind_mean("LayerNorm", "{}"), "LayerNorm"},
      {behind_mean("Pooling", kMean), "two modules"},
      {behind_mean("Dense", ""), "config.json"},
      {behind_mean("Dense", "{}"), "in_features"},
      {behind_mean("Dense", R"({"in_features": 9, "out_features": 5})"), "in_features"},
      {behind_mean("Dense", R"({"in_features": 8, "out_features": 5, "activation_function": "a.Hardswish"})"), "Hardswish"},
      {behind_mean("Dense", R"({"in_features": 8, "out_features": 5, "module_input_name": "token_embeddings"})"), "token_embeddings"},
      {ModuleCase{{{"Dense", kTanh}}}, "every token"},
      {ModuleCase{{{"Pooling", kMean}, {"Normalize", ""}, {"Dense", kTanh}}}, "Normalize"}};
  for (const auto& [modules, word] : rows) {
    INFO(word << ": " << refused(modules));
    CHECK(refused(modules).find(word) != std::string::npos);
  }
  auto bare = behind_mean("Dense", kTanh).source();
  bare.remove("1/linear.weight");
  CHECK(refused_source(bare).find("safetensors") != std::string::npos);
  // Behind a pooling that is left out, nothing can be right: the user chooses one.
  CHECK(refused(ModuleCase{{{"Pooling", "{}"}, {"Dense", kTanh}}}).empty());
}

TEST_CASE("a prompt that the library would add is a notice") {
  const auto notices_of = [](const char* config) {
    auto source = ModuleCase{{{"Pooling", kMean}}}.source();
    source.side_files["config_sentence_transformers.json"] = config;
    contract::Contract c;
    std::vector<std::string> notices;
    convert::import_pooling(source, c, notices);
    return notices;
  };
  const auto found = notices_of(R"({"prompts": {"query": "task: search | query: "}, "default_prompt_name": "query"})");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("task: search | query: ") != std::string::npos);
  for (const char* none : {R"({"prompts": {"query": "q: "}, "default_prompt_name": null})", "{}", "[]",
                           R"({"default_prompt_name": "query"})", R"({"prompts": 3, "default_prompt_name": "q"})"})
    CHECK(notices_of(none).empty());
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

TEST_CASE("GGUF files number the layers behind the pooling as the modules") {
  test::MemoryCheckpoint source(checkpoint::SourceKind::gguf, R"({"general.architecture": "a", "a.pooling_type": 1})");
  source.add("dense_2.weight", {12, 8});
  source.add("dense_3.weight", {8, 12});
  contract::Contract c;
  std::vector<std::string> notices;
  const auto sources = convert::import_pooling(source, c, notices);
  REQUIRE(c.pooling->dense.size() == 2);
  CHECK((c.pooling->dense[0].d_out == 12 && c.pooling->dense[1].d_out == 8 && !c.pooling->dense[1].activation));
  CHECK(sources.at(1).canonical == "pooling.1.weight");
  CHECK(sources.at(1).from.at(0) == "dense_3.weight");
}
