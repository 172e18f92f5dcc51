// Quantized checkpoints whose parts do not belong together: one line that names the part.
// What well-formed ones give: tests/convert/packed_test.cpp.
#include "checkpoint/join_packed.hpp"

#include <numeric>

#include "checkpoint/packed_tensor.hpp"
#include "source_makers.hpp"

namespace {

using namespace quern;
using namespace std::literals;
using test::mentions;

struct Part {
  std::string name, dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes{};  // zeros when empty
};

std::size_t width(const std::string& dtype) {
  return dtype == "I64" ? 8 : dtype == "F32" || dtype == "I32" ? 4 : dtype == "F16" || dtype == "BF16" ? 2 : 1;
}

std::string file_of(const std::vector<Part>& parts) {
  std::string header = "{", data;
  for (const Part& part : parts) {
    std::string shape;
    std::uint64_t values = 1;
    for (const std::uint64_t n : part.shape) {
      shape += base::cat(shape.empty() ? "" : ",", n);
      values *= n;
    }
    const std::size_t begin = data.size();
    data += part.bytes.empty() ? std::string(values * width(part.dtype), '\0') : part.bytes;
    header += base::cat(header.size() > 1 ? "," : "", "\"", part.name, "\":{\"dtype\":\"", part.dtype,
                        "\",\"shape\":[", shape, "],\"data_offsets\":[", begin, ",", data.size(), "]}");
  }
  return test::safetensors_file(header + "}", data);
}

// The notices of a checkpoint, or its rejection.
struct Outcome {
  std::string line;
  std::vector<std::string> notices{}, names{};
};
Outcome open(const std::string& quantization, const std::vector<Part>& parts) {
  const test::TemporaryDirectory folder;
  folder.write("config.json", quantization.empty() ? "{}" : "{\"quantization_config\":" + quantization + "}");
  folder.write("model.safetensors", file_of(parts));
  Outcome outcome;
  outcome.line = test::rejection([&] {
    const auto source = checkpoint::open_checkpoint(folder.path());
    outcome.notices = source->notices();
    for (const auto& tensor : source->tensors()) outcome.names.push_back(tensor.name);
  });
  return outcome;
}

using Parts = std::vector<Part>;

// The parts with one changed (an empty type: left out).
Parts with(Parts parts, const Part& changed) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].name == changed.name) {
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  if (!changed.dtype.empty()) parts.push_back(changed);
  return parts;
}

const std::string kGptq = R"({"quant_method":"gptq","bits":4,"group_size":32})";
const Parts kGptqParts = {{"m.qweight", "I32", {8, 16}},  // 64 inputs, 16 outputs, two groups
                          {"m.qzeros", "I32", {2, 2}},
                          {"m.scales", "F16", {2, 16}},
                          {"m.g_idx", "I32", {64}}};
const std::string kAwq = R"({"quant_method":"awq","bits":4,"group_size":32,"version":"gemm"})";
const Parts kAwqParts = {{"m.qweight", "I32", {64, 2}}, {"m.qzeros", "I32", {2, 2}}, {"m.scales", "F16", {2, 16}}};
const std::string kPacked = R"({"quant_method":"compressed-tensors","format":"pack-quantized"})";
const Parts kPackedParts = {
    {"m.weight_packed", "I32", {16, 8}},
    {"m.weight_scale", "BF16", {16, 2}},
    {"m.weight_shape", "I64", {2}, test::raw(std::int64_t{16}) + test::raw(std::int64_t{64})}};
const std::string kFp8 = R"({"quant_method":"fp8","weight_block_size":[128,128]})";
const Parts kFp8Parts = {{"m.weight", "F8_E4M3", {144, 130}}, {"m.weight_scale_inv", "F32", {2, 2}}};
const std::string kMxfp4 = R"({"quant_method":"mxfp4"})";
const Parts kMxfp4Parts = {{"m_blocks", "U8", {2, 4, 2, 16}}, {"m_scales", "U8", {2, 4, 2}}};

}  // namespace

TEST_CASE("packed: the well-formed ones open as one tensor", "[checkpoint]") {
  const std::vector<std::pair<std::string, Parts>> all = {
      {kGptq, kGptqParts}, {kAwq, kAwqParts}, {kPacked, kPackedParts}, {kFp8, kFp8Parts}};
  for (const auto& [config, parts] : all) {
    const Outcome outcome = open(config, parts);
    CHECK(outcome.line.empty());
    CHECK(outcome.names == std::vector<std::string>{"m.weight"});
    CHECK(outcome.notices.empty());
  }
  CHECK(open(kMxfp4, kMxfp4Parts).names == std::vector<std::string>{"m"});
  const Outcome none = open(kGptq, {{"m.weight", "F32", {2, 2}}});
  REQUIRE(none.notices.size() == 1);
  mentions(none.notices[0], "no tensor is quantized");
  Parts more = kFp8Parts;
  more.push_back({"m.input_scale", "F32", {1}});
  more.push_back({"attention.k_scale", "F32", {1}});
  const Outcome scales = open(kFp8, more);
  CHECK(scales.names.size() == 1);
  REQUIRE(scales.notices.size() == 1);
  mentions(scales.notices[0], "2 scale(s)");
}

TEST_CASE("packed: methods and layouts that are not read are named", "[checkpoint]") {
  const Parts floats = {{"m.weight", "F32", {2, 2}}};
  mentions(open(R"({"quant_method":"bitsandbytes"})", floats).line, "got bitsandbytes");
  mentions(open(R"({"bits":4})", floats).line, "no method");
  mentions(open("7", floats).line, "an object");
  mentions(open(R"({"quant_method":"awq","version":"GEMV"})", floats).line, "gemv");
  mentions(open(R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"})", floats).line,
           "nvfp4-pack-quantized");
  mentions(open("", kGptqParts).line, "no quantization_config");
  mentions(open("", {{"m.weight_scale_inv", "F32", {1}}}).line, "m.weight_scale_inv");
  mentions(open(kGptq, {{"m.scales", "F16", {2, 16}}}).line, "m.scales");
}

TEST_CASE("packed: sizes of groups and blocks that no matrix has are errors", "[checkpoint]") {
  const std::vector<std::string> odd = {"0", "1073741824", "4294967296", "9223372036854775808",
                                        "18446744073709551615", "-1", "1.5", "1e30", "\"128\"", "null"};
  for (const std::string& n : odd)
    for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{0, 0}, {0, 2}, {2, 0}, {0}, {2, 2}}) {
      CAPTURE(n);
      const Parts parts = {{"m.weight", "F8_E4M3", {144, 130}}, {"m.weight_scale_inv", "F32", shape}};
      for (const std::string& block : {"[" + n + "," + n + "]", "[" + n + ",128]", "[128," + n + "]"}) {
        CHECK(!open(R"({"quant_method":"fp8","weight_block_size":)" + block + "}", parts).line.empty());
        CHECK(!open(R"({"quant_method":"compressed-tensors","config_groups":{"g":{"weights":{"block_structure":)" +
                        block + "}}}}",
                    parts)
                   .line.empty());
      }
      if (shape.size() != 2 || shape[0] == 2) continue;
      const std::string group = R"(,"bits":4,"group_size":)" + n + "}";
      CHECK(!open(R"({"quant_method":"gptq")" + group, with(kGptqParts, {"m.scales", "F16", {0, 16}})).line.empty());
      CHECK(!open(R"({"quant_method":"awq")" + group, with(kAwqParts, {"m.scales", "F16", {0, 16}})).line.empty());
    }
}

TEST_CASE("packed: GPTQ parts are checked against one another", "[checkpoint]") {
  const auto line = [](const Part& changed) { return open(kGptq, with(kGptqParts, changed)).line; };
  mentions(line({"m.scales", "", {}}), "without its part m.scales");
  mentions(line({"m.qzeros", "", {}}), "without its part m.qzeros");
  mentions(line({"m.scales", "F16", {3, 16}}), "m.qzeros");
  mentions(line({"m.scales", "F16", {2, 15}}), "expected [2, 16]");
  mentions(line({"m.scales", "I32", {2, 16}}), "F16 or BF16 or F32");
  mentions(line({"m.qzeros", "I32", {2, 4}}), "bits of a code (got 8");
  mentions(line({"m.qzeros", "I32", {2, 3}}), "zero points");
  mentions(line({"m.qweight", "F32", {8, 16}}), "I32");
  mentions(line({"m.qweight", "I32", {9, 16}}), "number of scales");
  mentions(line({"m.g_idx", "I32", {63}}), "m.g_idx");
  mentions(line({"m.g_idx", "I32", {64}, std::string(252, '\0') + test::raw(2)}), "group of column 63 (got 2");
  mentions(line({"m.g_idx", "I32", {64}, test::raw(-1) + std::string(252, '\0')}), "group of column 0 (got -1");
}

TEST_CASE("packed: AWQ and compressed-tensors parts are checked", "[checkpoint]") {
  const auto awq = [](const Part& changed) { return open(kAwq, with(kAwqParts, changed)).line; };
  mentions(awq({"m.qzeros", "", {}}), "m.qzeros");
  mentions(awq({"m.qzeros", "I32", {2, 3}}), "expected [2, 2]");
  mentions(awq({"m.scales", "F16", {3, 16}}), "m.qzeros");
  mentions(awq({"m.qweight", "I32", {65, 2}}), "number of scales");
  const auto packed = [](const Part& changed) {
    return open(kPacked, with(kPackedParts, changed)).line;
  };
  mentions(packed({"m.weight_scale", "", {}}), "m.weight_scale");
  mentions(packed({"m.weight_shape", "", {}}), "m.weight_shape");
  mentions(packed({"m.weight_shape", "I64", {2}}), "size of a quantized matrix (got 0");
  mentions(packed({"m.weight_packed", "I32", {16, 9}}), "words of 64 codes (got 9");
  mentions(packed({"m.weight_packed", "I32", {15, 8}}), "[15, 8]");
  mentions(packed({"m.weight_scale", "BF16", {16, 3}}), "number of scales");
  mentions(packed({"m.weight_zero_point", "I32", {2, 3}}), "expected [2, 2]");
  mentions(packed({"m.weight_g_idx", "I32", {64}, std::string(252, '\0') + test::raw(2)}), "group of column 63");
}

TEST_CASE("packed: FP8 and MXFP4 parts are checked", "[checkpoint]") {
  const auto fp8 = [](const Part& changed) { return open(kFp8, with(kFp8Parts, changed)).line; };
  mentions(fp8({"m.weight_scale_inv", "", {}}), "without its scales");
  mentions(fp8({"m.weight_scale_inv", "F32", {3, 2}}), "blocks of 128 x 128");
  mentions(fp8({"m.weight_scale_inv", "F32", {2, 3}}), "blocks of 128 x 128");
  mentions(fp8({"m.weight_scale_inv", "I32", {2, 2}}), "F32");
  mentions(open(kPacked, {{"m.weight", "I8", {4, 4}}}).line, "without its part");
  const auto mxfp4 = [](const Part& changed) { return open(kMxfp4, with(kMxfp4Parts, changed)).line; };
  mentions(mxfp4({"m_scales", "", {}}), "m_scales");
  mentions(mxfp4({"m_scales", "U8", {2, 4, 3}}), "expected [2, 4, 2]");
  mentions(mxfp4({"m_blocks", "U8", {2, 4, 2, 15}}), "in / 32, 16]");
  mentions(open(kFp8, {{"m.weight", "F8_E4M3", {4, 4}}, {"m.weight_scale_inv", "F32", {1}},
                       {"m.weight_scale", "F32", {1}}}).line,
           "m.weight_scale");
}
