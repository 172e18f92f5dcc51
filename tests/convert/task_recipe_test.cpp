// Classifiers and bare models of decoders: the family's recipe with another head, for every family; and the
// ends of encoders and encoder-decoders that follow from a class's name or its tensors.
#include "catch.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "convert/recipe.hpp"
#include "memory_checkpoint.hpp"

namespace base = quern::base;
namespace contract = quern::contract;
namespace convert = quern::convert;
using quern::test::copy_of_fixture;
using quern::test::MemoryCheckpoint;

namespace {

constexpr std::uint64_t kWidth = 64, kLabels = 3;  // of the fixtures; of the classifiers made of them
const char* const kDecoders[] = {"llama2",      "mistral-swa", "gpt2",         "opt",         "starcoder2",  "gpt-j",
                                 "gpt-neox",    "phi",         "stablelm",     "falcon-mqa",  "falcon-new",  "mpt",
                                 "qwen2",       "qwen3",       "glm",          "glm4",        "gemma",       "gemma2",
                                 "gemma3",      "phi3",        "olmo2",        "cohere",      "granite",     "smollm3-nope",
                                 "mixtral",     "qwen2-moe",   "qwen3-moe",    "bloom-alibi", "deepseek-v2", "deepseek-v3",
                                 "gpt-oss-sinks", "glm4-moe"};

convert::Resolved resolve(const MemoryCheckpoint& source) {
  static const std::vector<convert::Recipe> recipes = convert::builtin_recipes();
  return convert::resolve(convert::match_recipe(recipes, source, ""), source, {});
}

// A fixture as a checkpoint of another class of its family, without its language model's head.
std::unique_ptr<MemoryCheckpoint> as_class(const std::string& fixture, const char* name, const char* type = nullptr) {
  auto source = copy_of_fixture(fixture);
  base::Json config = base::parse_json(source->config_json(), "config");
  config["architectures"] = base::Json::array({name});
  if (type != nullptr) config["model_type"] = type;
  config["num_labels"] = kLabels;
  source->set_config(config.dump());
  for (const char* head : {"lm_head.weight", "lm_head.bias", "embed_out.weight"})
    if (source->find(head) != nullptr) source->remove(head);
  return source;
}

std::uint64_t width_of(const MemoryCheckpoint& source) {
  return base::parse_json(source.config_json(), "config")["d_model"].get<std::uint64_t>();
}

}  // namespace

TEST_CASE("every decoder's classifier of texts reads the last token") {
  for (const char* fixture : kDecoders) {
    CAPTURE(fixture);
    auto source = as_class(fixture, "SomeForSequenceClassification");
    source->add("score.weight", {kLabels, kWidth}, 1);
    const convert::Resolved resolved = resolve(*source);
    const contract::Head& head = resolved.contract.head;
    CHECK(head.kind == contract::HeadKind::classify);
    CHECK(head.pool == contract::Pool::last);
    CHECK(head.labels == std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"});
    CHECK((!head.bias && !head.tied && !head.softcap && head.logit_scale == 1));
    CHECK(resolved.notices.empty());
  }
}

TEST_CASE("every decoder's classifier of tokens has a bias") {
  for (const char* fixture : kDecoders) {
    CAPTURE(fixture);
    auto source = as_class(fixture, "SomeForTokenClassification");
    source->add("classifier.weight", {kLabels, kWidth}, 1);
    source->add("classifier.bias", {kLabels}, 1);
    const convert::Resolved resolved = resolve(*source);
    CHECK(resolved.contract.head.kind == contract::HeadKind::classify);
    CHECK(!resolved.contract.head.pool);
    CHECK(resolved.contract.head.bias);
    CHECK(resolved.notices.empty());
  }
}

TEST_CASE("a classifier of texts passes over the padding that its configuration or class names") {
  const auto pad_of = [](const char* fixture, const base::Json& id) {
    auto source = as_class(fixture, "SomeForSequenceClassification");
    source->add("score.weight", {kLabels, kWidth}, 1);
    base::Json config = base::parse_json(source->config_json(), "config");
    config.erase("pad_token_id");
    if (!id.is_discarded()) config["pad_token_id"] = id;
    source->set_config(config.dump());
    return resolve(*source).contract.head.pool_pad;
  };
  const base::Json absent(base::Json::value_t::discarded);
  CHECK(pad_of("llama2", 5) == 5);
  CHECK(pad_of("llama2", 0) == 0);
  for (const base::Json& none : {base::Json(nullptr), base::Json(-1), base::Json(1 << 23), absent})
    CHECK(!pad_of("llama2", none));
  CHECK(pad_of("gemma", absent) == 0);
  CHECK(pad_of("opt", absent) == 1);
  CHECK(!pad_of("phi3", absent));  // 32000, which the tiny vocabulary does not have
}

TEST_CASE("every decoder finds answers with two numbers for every token") {
  for (const char* fixture : kDecoders) {
    CAPTURE(fixture);
    auto source = as_class(fixture, "SomeForQuestionAnswering");
    source->add("qa_outputs.weight", {2, kWidth}, 1);
    source->add("qa_outputs.bias", {2}, 1);
    const convert::Resolved resolved = resolve(*source);
    CHECK(resolved.contract.head.kind == contract::HeadKind::span);
    CHECK(resolved.contract.head.labels.size() == 2);
    CHECK((resolved.contract.head.bias && !resolved.contract.head.pool));
    CHECK(resolved.notices.empty());
  }
  // Released classes of several families call their model `transformer`.
  auto source = as_class("qwen2", "Qwen2ForQuestionAnswering");
  source->rename([](const std::string& name) { return "transformer." + name.substr(name.find('.') + 1); });
  source->add("qa_outputs.weight", {2, kWidth}, 1);
  source->add("qa_outputs.bias", {2}, 1);
  CHECK(resolve(*source).contract.head.kind == contract::HeadKind::span);
}

TEST_CASE("encoder-decoders classify texts and find answers, with the model's own names or inside a wrapper") {
  for (const char* fixture : {"t5", "flan-t5", "umt5", "bart"}) {
    for (const bool wrapped : {false, true}) {
      if (wrapped && std::string(fixture) == "bart") continue;
      CAPTURE(fixture, wrapped);
      const auto made = [&](const char* name) {
        auto source = as_class(fixture, name);
        if (source->find("final_logits_bias") != nullptr) source->remove("final_logits_bias");
        if (wrapped) source->rename([](const std::string& own) { return "transformer." + own; });
        return source;
      };
      auto texts = made("SomeForSequenceClassification");
      const std::uint64_t width = width_of(*texts);
      texts->add("classification_head.dense.weight", {width, width}, 1);
      texts->add("classification_head.dense.bias", {width}, 1);
      texts->add("classification_head.out_proj.weight", {kLabels, width}, 1);
      texts->add("classification_head.out_proj.bias", {kLabels}, 1);
      const contract::Head head = resolve(*texts).contract.head;
      CHECK(head.kind == contract::HeadKind::classify);
      CHECK((head.pool == contract::Pool::last && head.bias && head.in_scale == 1));
      CHECK(head.transform->activation == contract::Activation::tanh);
      auto answers = made("SomeForQuestionAnswering");
      answers->add("qa_outputs.weight", {2, width}, 1);
      answers->add("qa_outputs.bias", {2}, 1);
      CHECK(resolve(*answers).contract.head.kind == contract::HeadKind::span);
    }
  }
  auto tokens = as_class("t5-encoder", "T5ForTokenClassification");
  tokens->rename([](const std::string& own) { return "transformer." + own; });
  tokens->add("classifier.weight", {kLabels, width_of(*tokens)}, 1);
  tokens->add("classifier.bias", {kLabels}, 1);
  const contract::Contract labelled = resolve(*tokens).contract;
  CHECK(labelled.kind == contract::ModelKind::encoder);
  CHECK((labelled.head.kind == contract::HeadKind::classify && !labelled.head.pool && labelled.head.bias));
  for (const char* name : {"MBartForSequenceClassification", "MBartForQuestionAnswering"})
    CHECK_THROWS_AS(resolve(*as_class("mbart-pre", name)), base::Error);
}

TEST_CASE("every decoder's bare model has no head") {
  for (const char* fixture : kDecoders) {
    if (std::string(fixture) == "bloom-alibi") continue;  // published BLOOM calls its language model so
    CAPTURE(fixture);
    const convert::Resolved resolved = resolve(*as_class(fixture, "SomeModel"));
    CHECK(resolved.contract.head.kind == contract::HeadKind::none);
    CHECK(resolved.notices.empty());
  }
}

TEST_CASE("a head is of its class: the words of the problem, and no class of another kind of model") {
  auto source = as_class("llama2", "LlamaForSequenceClassification");
  source->add("score.weight", {kLabels, kWidth}, 1);
  base::Json config = base::parse_json(source->config_json(), "config");
  config["problem_type"] = "multi_label_classification";
  config["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  source->set_config(config.dump());
  const contract::Head head = resolve(*source).contract.head;
  CHECK(head.kind == contract::HeadKind::multi_label);
  CHECK(head.labels == std::vector<std::string>{"a", "b", "c"});
  CHECK_THROWS_AS(resolve(*as_class("t5", "SomeForSequenceClassification")), base::Error);
  CHECK_THROWS_AS(resolve(*as_class("llama2", "SomeForSequenceClassification", "unheard")), base::Error);
  CHECK_THROWS_AS(resolve(*as_class("llama2", "SomeForMultipleChoice")), base::Error);
}

TEST_CASE("an unknown class has the head of the one it is treated as") {
  static const std::vector<convert::Recipe> recipes = convert::builtin_recipes();
  auto source = copy_of_fixture("bert");
  base::Json config = base::parse_json(source->config_json(), "config");
  for (const base::Json& classes : {base::Json(nullptr), base::Json::array({"NovelModel2"})}) {
    config["architectures"] = classes;
    source->set_config(config.dump());
    const auto resolved = convert::resolve(convert::match_recipe(recipes, *source, "BertForMaskedLM"), *source, {});
    CHECK(resolved.contract.head.kind == contract::HeadKind::lm);
  }
  config["architectures"] = base::Json::array({"BertForMaskedLM"});
  source->set_config(config.dump());
  const auto own = convert::resolve(convert::match_recipe(recipes, *source, "bert"), *source, {});
  CHECK(own.contract.head.kind == contract::HeadKind::lm);
}

TEST_CASE("the masked-word head of RoBERTa has its own activation, that of the others the model's") {
  const std::pair<const char*, contract::Activation> heads[] = {{"roberta", contract::Activation::gelu_erf},
                                                                {"bert", contract::Activation::relu},
                                                                {"distilbert", contract::Activation::relu},
                                                                {"albert", contract::Activation::relu}};
  for (const auto& [fixture, activation] : heads) {
    CAPTURE(fixture);
    auto source = copy_of_fixture(fixture);
    base::Json config = base::parse_json(source->config_json(), "config");
    config[config.contains("hidden_act") ? "hidden_act" : "activation"] = "relu";
    source->set_config(config.dump());
    const contract::Contract found = resolve(*source).contract;
    CHECK(found.ops.at("ffn").ffn->activation == contract::Activation::relu);
    CHECK(found.head.transform->activation == activation);
  }
}

TEST_CASE("an encoder's masked-word head is known by its tensors where the configuration names no class") {
  for (const char* fixture : {"bert", "roberta", "distilbert", "albert", "modernbert"}) {
    CAPTURE(fixture);
    auto source = copy_of_fixture(fixture);
    const contract::Head named = resolve(*source).contract.head;
    base::Json config = base::parse_json(source->config_json(), "config");
    config.erase("architectures");
    source->set_config(config.dump());
    const contract::Head found = resolve(*source).contract.head;
    CHECK(found.kind == named.kind);
    CHECK(found.kind == contract::HeadKind::lm);
    CHECK((found.tied == named.tied && found.bias == named.bias));
  }
}

TEST_CASE("an encoder-decoder that ties nothing reads the encoder's own table") {
  for (const char* fixture : {"marian", "bart", "mbart-pre", "pegasus"}) {
    CAPTURE(fixture);
    auto source = copy_of_fixture(fixture);
    const quern::checkpoint::SourceTensor* shared = source->find("model.shared.weight");
    if (shared == nullptr) shared = source->find("model.decoder.embed_tokens.weight");
    REQUIRE(shared != nullptr);
    const std::vector<std::uint64_t> shape = shared->shape;
    if (source->find("model.encoder.embed_tokens.weight") == nullptr)
      source->add("model.encoder.embed_tokens.weight", shape, 1);
    base::Json config = base::parse_json(source->config_json(), "config");
    config["tie_word_embeddings"] = false;
    source->set_config(config.dump());
    const convert::Resolved resolved = resolve(*source);
    CHECK(resolved.contract.encoder->embedding->own_tokens);
    const auto own = [](const convert::TensorSource& tensor) { return tensor.canonical == "encoder.embedding.tokens"; };
    const auto found = std::find_if(resolved.tensors.begin(), resolved.tensors.end(), own);
    REQUIRE(found != resolved.tensors.end());
    CHECK(found->from == std::vector<std::string>{"model.encoder.embed_tokens.weight"});
  }
}
