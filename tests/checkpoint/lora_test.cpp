// LoRA adapters (tests/data/adapters, written by scripts/make_adapters.py) against a merge in NumPy.
#include "checkpoint/lora.hpp"

#include <cmath>

#include "base/mapped_file.hpp"
#include "checkpoint/safetensors.hpp"
#include "source_makers.hpp"

namespace {

using namespace quern;
using checkpoint::LoraAdapter;
using checkpoint::SourceTensor;
using test::mentions;

const std::filesystem::path kData = std::filesystem::path(QUERN_SOURCE_DIR) / "tests/data/adapters";

std::vector<float> values_of(const SourceTensor& tensor) {
  std::vector<float> values(tensor.values);
  checkpoint::to_float(tensor, 0, tensor.values, values.data());
  return values;
}

void require_close(const SourceTensor& got, const SourceTensor& expected) {
  const std::vector<float> a = values_of(got), b = values_of(expected);
  REQUIRE(a.size() == b.size());
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  INFO(expected.name);
  CHECK(worst < 2e-7F);
}

auto opened(const std::vector<LoraAdapter>& adapters) {
  return checkpoint::with_adapters(checkpoint::open_checkpoint(kData / "base"), adapters);
}

// An adapter with r = 2 for a module of [2, 2], changed by the caller.
std::string refused(const std::string& config, const std::string& header_names) {
  const test::TemporaryDirectory folder;
  folder.write("base/config.json", "{}");
  folder.write("base/model.safetensors",
               test::safetensors_file(
                   R"({"m.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
                   std::string(16, '\0')));
  folder.write("lora/adapter_config.json", config);
  folder.write("lora/adapter_model.safetensors",
               test::safetensors_file(header_names, std::string(32, '\0')));
  return test::rejection([&] {
    checkpoint::with_adapters(checkpoint::open_checkpoint(folder.path() / "base"),
                              {{folder.path() / "lora", 1}});
  });
}

std::string header_of(const std::string& a, const std::string& b, const std::string& a_shape = "[2,2]") {
  return "{\"" + a + R"(":{"dtype":"F32","shape":)" + a_shape + R"(,"data_offsets":[0,16]},")" + b +
         R"(":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}})";
}

const std::string kGood = R"({"peft_type":"LORA","r":2,"lora_alpha":4)";
const std::string kNames = header_of("base_model.model.m.lora_A.weight", "base_model.model.m.lora_B.weight");

}  // namespace

TEST_CASE("lora: adapters add up to NumPy's merge", "[checkpoint]") {
  const base::MappedFile file(kData / "expected.safetensors");
  const auto expected = checkpoint::parse_safetensors(file.bytes(), "expected");
  const auto merged = opened({{kData / "plain", 1}, {kData / "patterns", 0.5}});
  CHECK(merged->tensors().size() == 4);
  CHECK(merged->notices().size() == 2);
  for (const SourceTensor& wanted : expected) {
    if (wanted.name == "turned") {
      require_close(*opened({{kData / "turned", 1}})->find("model.embed.weight"), wanted);
      continue;
    }
    const SourceTensor& tensor = *merged->find(wanted.name);
    require_close(tensor, wanted);
    merged->release(tensor);  // and once more
    require_close(tensor, wanted);
    const std::vector<float> all = values_of(tensor);
    std::vector<float> part(3);
    checkpoint::to_float(tensor, tensor.shape[1] - 1, 3, part.data());  // over the end of a row
    for (std::size_t i = 0; i < 3; ++i) CHECK(part[i] == all[tensor.shape[1] - 1 + i]);
  }
  merged->check_unchanged();
}

TEST_CASE("lora: nothing is merged without adapters or at scale zero", "[checkpoint]") {
  const auto base = checkpoint::open_checkpoint(kData / "base");
  const auto none = opened({{kData / "plain", 0}});
  for (const SourceTensor& tensor : base->tensors())
    CHECK(values_of(*none->find(tensor.name)) == values_of(tensor));
  CHECK(opened({})->notices().empty());
}

TEST_CASE("lora: what is not plain LoRA is refused by name", "[checkpoint]") {
  CHECK(refused(kGood + "}", kNames).empty());
  for (const auto& [more, word] : std::vector<std::pair<std::string, std::string>>{
           {R"(,"use_dora":true)", "use_dora"},
           {R"(,"bias":"all")", "bias"},
           {R"(,"modules_to_save":"lm_head")", "modules_to_save"},
           {R"(,"modules_to_save":[1])", "modules_to_save"},
           {R"(,"target_parameters":["x"])", "target_parameters"},
           {R"(,"init_lora_weights":"pissa")", "init_lora_weights"},
           {R"(,"alpha_pattern":{"m.*":3})", "patterns"}})
    mentions(refused(kGood + more + "}", kNames), word);
  mentions(refused(R"({"peft_type":"IA3"})", kNames), "LORA");
  mentions(refused(R"({"peft_type":"LORA","r":2})", kNames), "lora_alpha");
  mentions(refused(R"({"peft_type":"LORA","r":0,"lora_alpha":1})", kNames), "rank");
  for (const char* r : {"1.5", "-1", "1e30", "true", "null"})
    mentions(refused(base::cat(R"({"peft_type":"LORA","lora_alpha":1,"r":)", r, "}"), kNames), "r: ");
  for (const char* alpha : {"1e300", "-1e9"})
    mentions(refused(base::cat(R"({"peft_type":"LORA","r":2,"lora_alpha":)", alpha, "}"), kNames), "scale of the change");
  mentions(refused(R"({"peft_type":"LORA","r":4,"lora_alpha":1})", kNames), "ranks of the two factors");
}

TEST_CASE("lora: of several patterns the first in the file decides", "[checkpoint]") {
  const std::string one(16, '\0');
  const auto first_value = [&](const std::string& patterns) {
    const test::TemporaryDirectory folder;
    const float values[] = {1, 0, 0, 1};
    const std::string unit(reinterpret_cast<const char*>(values), sizeof(values));
    folder.write("base/config.json", "{}");
    folder.write("base/model.safetensors",
                 test::safetensors_file(R"({"a.m.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", one));
    folder.write("lora/adapter_config.json", kGood + R"(,"alpha_pattern":)" + patterns + "}");
    folder.write("lora/adapter_model.safetensors",
                 test::safetensors_file(header_of("base_model.model.a.m.lora_A.weight", "base_model.model.a.m.lora_B.weight"),
                                        unit + unit));
    const auto merged = checkpoint::with_adapters(checkpoint::open_checkpoint(folder.path() / "base"),
                                                  {{folder.path() / "lora", 1}});
    return values_of(*merged->find("a.m.weight"))[0];  // alpha / r
  };
  CHECK(first_value("{}") == 2);
  CHECK(first_value(R"({"m":6,"a.m":8})") == 3);
  CHECK(first_value(R"({"a.m":8,"m":6})") == 4);
  CHECK(first_value(R"({"x":10,"^m":12,"^a.m":14,"m":6})") == 7);
}

TEST_CASE("lora: modules saved whole stand in the place of the checkpoint's", "[checkpoint]") {
  const auto tensors = [](const std::string& first, const std::string& second) {
    return "{\"" + first + R"(":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},")" + second +
           R"(":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]}})";
  };
  const float matrix[] = {1, 2, 3, 4};
  const std::string bytes = std::string(reinterpret_cast<const char*>(matrix), 16) + std::string("\x80\x3f\x00\x40", 4);
  const auto open = [&](const std::string& saved, const std::string& names, double scale, std::size_t copies = 1) {
    const test::TemporaryDirectory folder;
    folder.write("base/config.json", "{}");
    folder.write("base/model.safetensors",
                 test::safetensors_file(tensors("model.head.weight", "model.head.bias"), std::string(20, '\0')));
    folder.write("lora/adapter_config.json", kGood + R"(,"modules_to_save":)" + saved + "}");
    folder.write("lora/adapter_model.safetensors", test::safetensors_file(names, bytes));
    const auto merged = checkpoint::with_adapters(
        checkpoint::open_checkpoint(folder.path() / "base"),
        std::vector<LoraAdapter>(copies, {folder.path() / "lora", scale}));
    CHECK(values_of(*merged->find("model.head.weight")) == std::vector<float>{1, 2, 3, 4});
    CHECK(values_of(*merged->find("model.head.bias")) == std::vector<float>{1, 2});
    CHECK(merged->find("model.head.bias")->type == checkpoint::DType::bf16);
    mentions(merged->notices().at(0), "2 tensors replaced");
    merged->release(*merged->find("model.head.weight"));
    CHECK(values_of(*merged->find("model.head.weight"))[3] == 4);
  };
  for (const char* part : {"head", "model.head"})
    for (const char* mark : {"", ".modules_to_save", ".modules_to_save.default"}) {
      const std::string module = base::cat("base_model.model.", part, mark);
      open(R"(["other","head"])", tensors(module + ".weight", module + ".bias"), 1);
    }
  const auto failure = [&](const std::string& saved, const std::string& names, double scale, std::size_t copies = 1) {
    return test::rejection([&] { open(saved, names, scale, copies); });
  };
  const std::string good = tensors("base_model.model.head.weight", "base_model.model.head.bias");
  mentions(failure(R"(["head"])", good, 0.5), "has no scale");
  mentions(refused(kGood + R"(,"modules_to_save":["m"]})", kNames), "modules_to_save names m");
  CHECK(refused(kGood + R"(,"modules_to_save":["classifier","score"]})", kNames).empty());
  mentions(failure(R"(["head"])", good, 1, 2), "saved twice");
  mentions(failure(R"(["ead"])", good, 1), "no factor");
  mentions(failure(R"(["tail"])", tensors("base_model.model.tail.weight", "base_model.model.tail.bias"), 1), "is not in");
  mentions(failure(R"(["head"])", tensors("base_model.model.head.bias", "base_model.model.head.weight"), 1), "shape of");
}

TEST_CASE("lora: every tensor of an adapter is used or an error", "[checkpoint]") {
  const std::string a = "base_model.model.m.lora_A.weight", b = "base_model.model.m.lora_B.weight";
  mentions(refused(kGood + "}", header_of(a, "base_model.model.n.lora_B.weight")), "only one of the two");
  mentions(refused(kGood + "}", header_of("base_model.model.n.lora_A.weight",
                                          "base_model.model.n.lora_B.weight")),
           "module n is not in");
  mentions(refused(kGood + "}", header_of(a, "base_model.model.m.lora_magnitude_vector")), "DoRA");
  mentions(refused(kGood + "}", header_of(a, "base_model.model.m.modules_to_save.weight")),
           "no factor");
  mentions(refused(kGood + "}", header_of(a, b, "[4,1]")), "ranks of the two factors");
  mentions(refused(R"({"peft_type":"LORA","r":1,"lora_alpha":4})", header_of(a, b, "[1,4]")),
           "ranks of the two factors");
}
