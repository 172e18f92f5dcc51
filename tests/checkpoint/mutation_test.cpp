// Small valid files with every byte changed in several ways and cut at every length: an input error
// or a success whose tensors lie inside the file, never anything else. Meant to be run under ASan
// and UBSan too.
#include "checkpoint/gguf.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/shard_index.hpp"
#include "source_makers.hpp"

namespace {

using namespace std::literals;
using quern::base::as_bytes;
using quern::checkpoint::SourceTensor;
using quern::test::gguf_string;
using quern::test::GgufMaker;
using quern::test::raw;

// Reads everything a reader returned; true when all of it lies inside `file`.
bool tensors_are_sound(const std::vector<SourceTensor>& tensors, const std::string& file) {
  const auto* begin = reinterpret_cast<const std::byte*>(file.data());
  for (const SourceTensor& tensor : tensors) {
    std::uint64_t values = 1;
    for (const std::uint64_t size : tensor.shape) values *= size;
    if (values != tensor.values) return false;
    if (tensor.bytes.empty()) continue;
    if (tensor.bytes.data() < begin ||
        tensor.bytes.data() + tensor.bytes.size() > begin + file.size())
      return false;
    std::vector<float> out(tensor.values);
    quern::checkpoint::to_float(tensor, 0, tensor.values, out.data());
  }
  return true;
}

struct Outcome {
  std::size_t accepted = 0, refused = 0, unsound = 0, other = 0;
};

template <class Parse>
void try_one(const std::string& file, const Parse& parse, Outcome& outcome) {
  try {
    const bool sound = parse(file);
    ++(sound ? outcome.accepted : outcome.unsound);
  } catch (const quern::base::Error& error) {
    ++(error.code() == quern::base::ExitCode::input ? outcome.refused : outcome.other);
  }
}

template <class Parse>
void mutate(const std::string& file, const Parse& parse) {
  REQUIRE(parse(file));
  Outcome outcome;
  for (std::size_t length = 0; length < file.size(); ++length)
    try_one(file.substr(0, length), parse, outcome);
  CHECK(outcome.accepted == 0);  // no prefix of a whole file is whole
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      try_one(changed, parse, outcome);
    }
    for (const char byte : {'\0', '\x7F', '\x80', '\xFF', '"', '[', '9'}) {
      std::string changed = file;
      changed[i] = byte;
      try_one(changed, parse, outcome);
      changed.insert(i, 1, byte);
      try_one(changed, parse, outcome);
    }
    for (const std::size_t width : {4u, 8u}) {
      if (i + width > file.size()) continue;
      for (const std::uint64_t number :
           {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 31}) {
        std::string changed = file;
        changed.replace(i, width, raw(number).substr(0, width));
        try_one(changed, parse, outcome);
      }
      try_one(file.substr(0, i) + file.substr(i + width), parse, outcome);
    }
  }
  CHECK(outcome.unsound == 0);
  CHECK(outcome.other == 0);
  CHECK(outcome.refused > file.size());
}

}  // namespace

TEST_CASE("mutated safetensors files", "[checkpoint]") {
  const std::string file = quern::test::safetensors_file(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]},"c":{"dtype":"U8","shape":[],"data_offsets":[28,29]}})",
      std::string(29, '\x41'));
  mutate(file, [](const std::string& bytes) {
    return tensors_are_sound(quern::checkpoint::parse_safetensors(as_bytes(bytes), "m"), bytes);
  });
}

TEST_CASE("mutated GGUF files", "[checkpoint]") {
  GgufMaker maker;
  maker.text("general.architecture", "x")
      .u32("general.alignment", 8)
      .value("x.eps", quern::test::kF32, raw(1e-5F));
  maker.array("t.tokens", quern::test::kString, 3,
              gguf_string("a") + gguf_string("") + gguf_string("bc"));
  maker.array("t.scores", quern::test::kF32, 3, std::string(12, '\1'));
  maker.array("t.types", quern::test::kI32, 3, std::string(12, '\1'));
  maker.alignment = 8;
  maker.vector("v", 4);
  maker.info("q", {32, 2}, 2, maker.data.size()).data += std::string(40, '\x33');
  mutate(maker.bytes(), [](const std::string& bytes) {
    const auto file = quern::checkpoint::parse_gguf(as_bytes(bytes), "m");
    quern::checkpoint::gguf_metadata_json(file);
    for (const auto& [key, value] : file.metadata) {
      if (value.type != quern::checkpoint::GgufType::array) continue;
      const auto attempt = [](auto&& read) {
        try {
          read();
        } catch (const quern::base::Error&) {
        }
      };
      attempt([&] { file.strings(key, "m"); });
      attempt([&] { file.floats(key, "m"); });
      attempt([&] { file.integers(key, "m"); });
    }
    return tensors_are_sound(file.tensors, bytes);
  });
}

TEST_CASE("mutated shard indices", "[checkpoint]") {
  mutate(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})",
      [](const std::string& text) {
        const auto index = quern::checkpoint::parse_shard_index(text, "index");
        for (const std::string& name : index.shards)
          if (name.find_first_of("/\\") != std::string::npos) return false;
        return true;
      });
}
