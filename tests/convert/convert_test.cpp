// The driver on whole checkpoints: values, formats, determinism, refusals, and what it leaves
// behind.
#include "catch.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/error.hpp"
#include "base/small_float.hpp"
#include "contract/json.hpp"
#include "convert/convert.hpp"
#include "gguf_writer.hpp"
#include "memory_checkpoint.hpp"
#include "quant/formats.hpp"
#include "scratch_directory.hpp"
#include "weights/reader.hpp"

namespace base = quern::base;
namespace checkpoint = quern::checkpoint;
namespace contract = quern::contract;
namespace convert = quern::convert;
namespace quant = quern::quant;
namespace weights = quern::weights;
namespace fs = std::filesystem;
using quern::test::file_text;
using quern::test::fixture_path;
using quern::test::ScratchDirectory;

namespace {

convert::ConvertOptions options_of(const std::string& type) {
  convert::ConvertOptions options;
  options.type = type;
  return options;
}

convert::ConvertReport run(const fs::path& source, const fs::path& target,
                           const convert::ConvertOptions& options) {
  return convert::convert(source, target, options, nullptr);
}

base::ExitCode code_of(const std::function<void()>& action, std::string* text = nullptr) {
  try {
    action();
  } catch (const base::Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return base::ExitCode::ok;
}

std::vector<float> row_of(const weights::TensorView& tensor, std::size_t row) {
  std::vector<float> values(tensor.columns);
  if (tensor.format->id == quant::FormatId::rows_f32)
    std::memcpy(values.data(), tensor.floats() + row * tensor.columns,
                tensor.columns * sizeof(float));
  else
    quant::decode_row(*tensor.format, tensor.panel(row / quant::kPanelRows),
                      row % quant::kPanelRows, tensor.columns, values.data());
  return values;
}

// A copy of a fixture whose weight file can be patched.
fs::path patched_fixture(const ScratchDirectory& scratch, const std::string& name) {
  const fs::path copy = scratch / ("source-" + name);
  fs::copy(fixture_path(name), copy);
  return copy;
}

// Overwrites a bf16 value of a tensor in a safetensors file.
void patch_bf16(const fs::path& directory, const std::string& tensor, std::size_t index,
                std::uint16_t bits) {
  const fs::path path = directory / "model.safetensors";
  std::string bytes = file_text(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  const base::Json directory_json = base::parse_json(bytes.substr(8, header), "test");
  REQUIRE(directory_json[tensor]["dtype"] == "BF16");
  const auto offset = directory_json[tensor]["data_offsets"][0].get<std::size_t>();
  std::memcpy(bytes.data() + 8 + header + offset + 2 * index, &bits, 2);
  quern::test::write_text(path, bytes);
}

struct GgufKind {
  const char* name;
  std::uint32_t type;
  std::size_t block_values, block_bytes;
  std::vector<std::size_t> halves;  // offsets of f16 fields in a block
  const char* kept_as;
  bool exact = true;
};
// Every type with a keep format, and two of those that go to the nearest native one.
const GgufKind kKinds[] = {
    {"q4_0", 2, 32, 18, {0}, "q4_0"},       {"q4_1", 3, 32, 20, {0, 2}, "q4_1"},
    {"q5_0", 6, 32, 22, {0}, "q5_0"},       {"q5_1", 7, 32, 24, {0, 2}, "q5_1"},
    {"q8_0", 8, 32, 34, {0}, "q8"},         {"q4_k", 12, 256, 144, {0, 2}, "q4_k"},
    {"q5_k", 13, 256, 176, {0, 2}, "q5_k"}, {"q6_k", 14, 256, 210, {208}, "q6_k"},
    {"mxfp4", 39, 32, 17, {}, "mxfp4"},     {"q2_k", 10, 256, 84, {80, 82}, "q4", false},
    {"q3_k", 11, 256, 110, {108}, "q4", false}};

std::string random_blocks(const GgufKind& kind, std::size_t values, std::mt19937& random) {
  std::string bytes(values / kind.block_values * kind.block_bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() & 0xFF);
  for (std::size_t at = 0; at < bytes.size(); at += kind.block_bytes)
    for (const std::size_t half : kind.halves) {
      const std::uint16_t scale =
          static_cast<std::uint16_t>(0x2000 + random() % 0x0C00);  // 0.008 .. 0.1
      std::memcpy(bytes.data() + at + half, &scale, 2);
    }
  if (kind.halves.empty())  // the block begins with an exponent
    for (std::size_t at = 0; at < bytes.size(); at += kind.block_bytes)
      bytes[at] = static_cast<char>(118 + random() % 6);
  return bytes;
}

// One block of width 256; `kind` for every matrix.
void write_gguf(const fs::path& path, const GgufKind& kind) {
  std::mt19937 random(7);
  quern::test::GgufWriter file;
  file.add("general.architecture", std::string("llama"));
  for (const auto& [key, value] : {std::pair<const char*, std::uint32_t>{"llama.block_count", 1},
                                   {"llama.context_length", 64},
                                   {"llama.embedding_length", 256},
                                   {"llama.feed_forward_length", 256},
                                   {"llama.attention.head_count", 4},
                                   {"llama.attention.head_count_kv", 2}})
    file.add(key, value);
  file.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const auto matrix = [&](const std::string& name, std::uint64_t rows) {
    file.add_tensor(name, kind.type, {rows, 256}, random_blocks(kind, rows * 256, random));
  };
  const auto norm = [&](const std::string& name) {
    const std::vector<float> ones(256, 1.0F);
    file.add_tensor(name, 0, {256}, std::string(reinterpret_cast<const char*>(ones.data()), 1024));
  };
  matrix("token_embd.weight", 40);
  norm("output_norm.weight");
  norm("blk.0.attn_norm.weight");
  norm("blk.0.ffn_norm.weight");
  matrix("blk.0.attn_q.weight", 256);
  matrix("blk.0.attn_k.weight", 128);
  matrix("blk.0.attn_v.weight", 128);
  matrix("blk.0.attn_output.weight", 256);
  for (const char* name : {"gate", "up", "down"})
    matrix(std::string("blk.0.ffn_") + name + ".weight", 256);
  file.write(path);
}

}  // namespace

TEST_CASE(
    "f32 conversion holds the source's values, transposed and split where the recipe says so") {
  const ScratchDirectory scratch;
  run(fixture_path("gpt2"), scratch / "out", options_of("f32"));
  const auto source = checkpoint::open_checkpoint(fixture_path("gpt2"));
  const weights::WeightFile file = weights::WeightFile::open(scratch / "out" / "model.quern");
  file.verify_checksums();
  const checkpoint::SourceTensor& fused =
      *source->find("transformer.h.1.attn.c_attn.weight");  // [64, 192]
  const checkpoint::SourceTensor& fused_bias = *source->find("transformer.h.1.attn.c_attn.bias");
  const char* const parts[] = {"q", "k", "v"};
  for (std::size_t part = 0; part < 3; ++part) {
    const weights::TensorView& weight =
        *file.find(std::string("decoder.1.0.") + parts[part] + ".weight");
    const std::vector<float> bias =
        row_of(*file.find(std::string("decoder.1.0.") + parts[part] + ".bias"), 0);
    for (std::size_t row = 0; row < 64; ++row) {
      const std::vector<float> values = row_of(weight, row);
      float expected = 0;
      checkpoint::to_float(fused_bias, part * 64 + row, 1, &expected);
      CHECK(bias[row] == expected);
      for (std::size_t column = 0; column < 64; ++column) {
        checkpoint::to_float(fused, column * 192 + part * 64 + row, 1, &expected);
        REQUIRE(values[column] == expected);
      }
    }
  }
  const checkpoint::SourceTensor& positions = *source->find("transformer.wpe.weight");
  std::vector<float> expected(64);
  checkpoint::to_float(positions, 200 * 64, 64, expected.data());
  CHECK(row_of(*file.find("embedding.positions"), 200) == expected);
}

TEST_CASE("keep: codes and scales of every GGUF type that has a keep format, bit for bit") {
  for (const GgufKind& kind : kKinds) {
    CAPTURE(kind.name);
    const ScratchDirectory scratch;
    write_gguf(scratch / "m.gguf", kind);
    const convert::ConvertReport report = run(scratch / "m.gguf", scratch / "out", {});
    const auto source = checkpoint::open_checkpoint(scratch / "m.gguf");
    const weights::WeightFile file = weights::WeightFile::open(scratch / "out" / "model.quern");
    const bool exact = kind.exact;
    const weights::TensorView& tensor = *file.find("decoder.0.0.k.weight");
    CHECK(tensor.format->name == kind.kept_as);
    CHECK(report.notices.size() == (exact ? 0U : 1U));
    double error = 0, sum = 0;
    for (std::size_t row = 0; row < 128; ++row) {
      std::vector<float> expected(256);
      checkpoint::to_float(*source->find("blk.0.attn_k.weight"), row * 256, 256, expected.data());
      const std::vector<float> values = row_of(tensor, row);
      for (std::size_t i = 0; i < 256; ++i) {
        if (exact)
          REQUIRE(std::bit_cast<std::uint32_t>(values[i]) ==
                  std::bit_cast<std::uint32_t>(expected[i]));
        error += std::pow(double{values[i]} - double{expected[i]}, 2);
        sum += std::pow(double{expected[i]}, 2);
      }
    }
    CHECK(std::sqrt(error / sum) < (exact ? 1e-12 : 0.15));
    for (const convert::TensorPlan& plan : report.tensors)
      if (plan.name == "decoder.0.0.k.weight") {
        CHECK(plan.kept == exact);
        CHECK((plan.note.find("requantized from") != std::string::npos) != exact);
      }
    for (const convert::RoleReport& role : report.roles)
      if (exact) CHECK(role.relative_rmse() == 0);
  }
}

TEST_CASE("the same bytes for any number of threads, and again") {
  for (const char* type : {"q4", "f32", "keep"}) {
    const ScratchDirectory scratch;
    const char* const fixture = std::string(type) == "keep" ? "llama3" : "gpt2";
    convert::ConvertOptions options = options_of(type);
    for (const std::size_t n_threads : {1, 2, 3, 2}) {
      options.n_threads = n_threads;
      options.force = true;
      run(fixture_path(fixture), scratch / ("out" + std::to_string(n_threads)), options);
    }
    for (const char* name : {"model.quern", "model.json"}) {
      CHECK(file_text(scratch / "out1" / name) == file_text(scratch / "out2" / name));
      CHECK(file_text(scratch / "out1" / name) == file_text(scratch / "out3" / name));
    }
    const std::string json = file_text(scratch / "out1" / "model.json");
    CHECK(json.find(scratch.path().string()) == std::string::npos);
    CHECK(json.find(QUERN_SOURCE_DIR) == std::string::npos);
  }
}

TEST_CASE("the pair of files belongs together and says what was done") {
  const ScratchDirectory scratch;
  convert::ConvertOptions options = options_of("q4");
  options.adaptations.rope_scale = 2;
  const convert::ConvertReport report = run(fixture_path("llama2"), scratch / "out", options);
  const std::string text = file_text(scratch / "out" / "model.json");
  const contract::Contract model = contract::read_contract(text, "model.json");
  const weights::WeightFile file = weights::WeightFile::open(scratch / "out" / "model.quern");
  CHECK(contract::structural_hash(model) == file.contract_hash());
  const contract::Contract inner = contract::read_contract(file.contract_json(), "inner");
  CHECK(contract::structural_hash(inner) == file.contract_hash());
  CHECK(model.counts.parameters_by_formula == model.counts.parameters_in_tensors);
  CHECK(model.ropes.at("main").rule == "linear");
  CHECK(model.tokens.eos == std::vector<std::int32_t>{2});
  CHECK(model.tokens.bos == 1);
  CHECK(model.generation.sample == false);
  const base::Json document = base::parse_json(text, "model.json");
  CHECK(document["source"]["adaptations"]["rope_scale"] == 2);
  CHECK(document["weights"]["bytes"] == fs::file_size(scratch / "out" / "model.quern"));
  CHECK(report.file_bytes == fs::file_size(scratch / "out" / "model.quern"));
  CHECK(file.find("embedding.tokens")->format->name == "q8");
  CHECK(file.find("head.weight")->format->name == "q8");
  CHECK(file.find("decoder.0.0.q.weight")->format->name == "q4");
  CHECK(file.find("decoder.final_norm.weight")->format->id == quant::FormatId::rows_f32);
}

TEST_CASE("types: overrides in their order, and words that are none") {
  const ScratchDirectory scratch;
  convert::ConvertOptions options = options_of("Q4");
  options.dry_run = true;
  options.tensor_types = {{"up_proj", "bf16"}, {"^decoder\\.1\\.", "F16"}, {"\\.up\\.", "f32"}};
  options.output_tensor_type = "q4";
  options.token_embedding_type = "bf16";
  const convert::ConvertReport report = run(fixture_path("llama2"), scratch / "none", options);
  CHECK(scratch.n_entries() == 0);
  const auto format = [&](const std::string& name) {
    for (const convert::TensorPlan& tensor : report.tensors)
      if (tensor.name == name) return std::string(tensor.format->name);
    return std::string("no such tensor");
  };
  CHECK(format("decoder.1.1.up.weight") == "bf16");
  CHECK(format("decoder.1.1.down.weight") == "f16");
  CHECK(format("decoder.0.1.down.weight") == "q4");
  CHECK(format("decoder.1.1.norm_in.weight") == "rows_f32");
  CHECK(format("head.weight") == "q4");
  CHECK(format("embedding.tokens") == "bf16");
  // A tied head is the embedding; its type follows --output-tensor-type unless the embedding has
  // its own.
  options.token_embedding_type.clear();
  options.output_tensor_type = "f16";
  const convert::ConvertReport tied = run(fixture_path("llama3"), scratch / "none", options);
  for (const convert::TensorPlan& tensor : tied.tensors)
    if (tensor.name == "embedding.tokens") CHECK(tensor.format->name == "f16");

  for (const auto& break_it : {+[](convert::ConvertOptions& o) { o.type = "q5"; },
                               +[](convert::ConvertOptions& o) { o.type = "rows_f32"; },
                               +[](convert::ConvertOptions& o) { o.output_tensor_type = "q44"; },
                               +[](convert::ConvertOptions& o) { o.token_embedding_type = "none"; },
                               +[](convert::ConvertOptions& o) {
                                 o.tensor_types = {{"a(", "q8"}};
                               },
                               +[](convert::ConvertOptions& o) {
                                 o.tensor_types = {{"a", "q"}};
                               },
                               +[](convert::ConvertOptions& o) {
                                 o.tensor_types = {{"up_proj", "q8"}, {"ffn_up", "q8"}};
                               }}) {
    convert::ConvertOptions bad = options_of("q8");
    bad.dry_run = true;
    break_it(bad);
    CHECK(code_of([&] { run(fixture_path("llama2"), scratch / "none", bad); }) ==
          base::ExitCode::usage);
  }
}

TEST_CASE("values that are not finite are refused with the first index and the count") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama2");
  patch_bf16(source, "model.layers.1.mlp.up_proj.weight", 64 * 100 + 5, 0x7FC0);   // NaN
  patch_bf16(source, "model.layers.1.mlp.up_proj.weight", 64 * 127 + 63, 0xFF80);  // -infinity
  for (const char* type : {"f32", "q4", "q8", "bf16"}) {
    std::string text;
    CHECK(code_of([&] { run(source, scratch / "out", options_of(type)); }, &text) ==
          base::ExitCode::input);
    CAPTURE(text);
    CHECK(text.find("model.layers.1.mlp.up_proj.weight") != std::string::npos);
    CHECK(text.find("2 values") != std::string::npos);
    CHECK(text.find("[100, 5]") != std::string::npos);
    CHECK(scratch.n_entries() == 1);
  }
  convert::ConvertOptions allowed = options_of("f32");
  allowed.allow_nonfinite = true;
  CHECK(run(source, scratch / "out", allowed).notices.size() == 1);
  const weights::WeightFile file = weights::WeightFile::open(scratch / "out" / "model.quern");
  CHECK(std::isnan(row_of(*file.find("decoder.1.1.up.weight"), 100)[5]));
  allowed.type = "q8";
  allowed.force = true;
  CHECK(code_of([&] { run(source, scratch / "out", allowed); }) == base::ExitCode::input);

  const fs::path bias = patched_fixture(scratch, "gpt2");
  patch_bf16(bias, "transformer.h.0.attn.c_attn.bias", 130, 0x7F80);
  std::string text;
  CHECK(code_of([&] { run(bias, scratch / "out2", options_of("q8")); }, &text) ==
        base::ExitCode::input);
  CHECK(text.find("decoder.0.0.v.bias") != std::string::npos);
  CHECK(text.find("[2]") != std::string::npos);
}

TEST_CASE("a bf16 value beyond f16 is refused for f16, stored by the wider formats") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama2");
  patch_bf16(source, "model.layers.0.mlp.down_proj.weight", 128 * 3 + 7, 0x4780);  // 65536
  std::string text;
  CHECK(code_of([&] { run(source, scratch / "out", options_of("f16")); }, &text) ==
        base::ExitCode::input);
  CAPTURE(text);
  CHECK(text.find("[3, 7]") != std::string::npos);
  CHECK(text.find("f16") != std::string::npos);
  for (const char* type : {"f32", "bf16", "q8", "q4"}) {
    run(source, scratch / type, options_of(type));
    const weights::WeightFile file = weights::WeightFile::open(scratch / type / "model.quern");
    const std::vector<float> row = row_of(*file.find("decoder.0.1.down.weight"), 3);
    for (const float value : row) CHECK(std::isfinite(value));
    CHECK(row[7] == Approx(65536).epsilon(0.02));
  }
}

TEST_CASE("a value whose scale does not fit f16 is refused by the integer formats") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama2");
  patch_bf16(source, "model.layers.0.mlp.down_proj.weight", 5, 0x7149);  // 1e30
  for (const char* type : {"q8", "q4", "q4_0", "q4_1", "q5_0", "q5_1"}) {
    CAPTURE(type);
    std::string text;
    CHECK(code_of([&] { run(source, scratch / type, options_of(type)); }, &text) ==
          base::ExitCode::input);
    CHECK(text.find("[0, 5]") != std::string::npos);
  }
}

TEST_CASE("panels too small for any scale are stored as zeros, not refused") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama2");
  // Rows of tokens that were never trained look like this; 16 rows make a panel of their own.
  for (std::size_t i = 16 * 64; i < 32 * 64; ++i)
    patch_bf16(source, "model.layers.0.self_attn.q_proj.weight", i, i % 3 == 0 ? 0x9800 : 0x1800);
  for (const char* type : {"f16", "q8", "q4", "q4_0", "q4_1", "q5_0", "q5_1"}) {
    CAPTURE(type);
    run(source, scratch / type, options_of(type));
    const weights::WeightFile file = weights::WeightFile::open(scratch / type / "model.quern");
    for (const float value : row_of(*file.find("decoder.0.0.q.weight"), 20))
      CHECK(std::fabs(value) < 1e-6F);
  }
}

TEST_CASE("targets: existing, forced, the source itself, and what is not ours") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama3");
  const auto code = [&](const fs::path& target, bool force) {
    convert::ConvertOptions options = options_of("q8");
    options.force = force;
    return code_of([&] { run(source, target, options); });
  };
  CHECK(code(scratch / "out", false) == base::ExitCode::ok);
  const std::string before = file_text(scratch / "out" / "model.quern");
  CHECK(code(scratch / "out", false) == base::ExitCode::usage);
  CHECK(file_text(scratch / "out" / "model.quern") == before);
  CHECK(code(scratch / "out", true) == base::ExitCode::ok);
  CHECK(code(scratch.path() / "out/", true) == base::ExitCode::ok);
  CHECK(code(source, true) == base::ExitCode::usage);
  CHECK(code(source / "out", false) == base::ExitCode::usage);
  CHECK(code(source / "." / ".." / "source-llama3" / "x", true) == base::ExitCode::usage);
  CHECK(code(scratch.path(), true) == base::ExitCode::usage);
  fs::create_directory(scratch / "papers");
  quern::test::write_text(scratch / "papers" / "thesis.txt", "years of work");
  CHECK(code(scratch / "papers", true) == base::ExitCode::usage);
  CHECK(file_text(scratch / "papers" / "thesis.txt") == "years of work");
  quern::test::write_text(scratch / "file", "x");
  CHECK(code(scratch / "file", true) == base::ExitCode::usage);
  CHECK(code(scratch / "missing" / "out", false) == base::ExitCode::environment);
  CHECK(code("", false) == base::ExitCode::usage);
  CHECK(code_of([&] { run(scratch / "nowhere", scratch / "z", {}); }) != base::ExitCode::ok);
  // What only has the name of a model file is not ours either.
  fs::create_directories(scratch / "named" / "model.quern");
  quern::test::write_text(scratch / "named" / "model.quern" / "precious", "x");
  CHECK(code(scratch / "named", true) == base::ExitCode::usage);
  CHECK(file_text(scratch / "named" / "model.quern" / "precious") == "x");
  fs::create_directory(scratch / "linked");
  fs::create_symlink(scratch / "file", scratch / "linked" / "model.json");
  CHECK(code(scratch / "linked", true) == base::ExitCode::usage);
  CHECK(fs::is_symlink(scratch / "linked" / "model.json"));
  // source, out, papers, file, named, linked: no temporary directory is left
  CHECK(scratch.n_entries() == 6);
}

TEST_CASE("an interrupted or failed conversion leaves the old model and nothing else") {
  const ScratchDirectory scratch;
  run(fixture_path("llama3"), scratch / "out", options_of("q8"));
  const std::string before = file_text(scratch / "out" / "model.quern");
  convert::ConvertOptions options = options_of("f32");
  options.force = true;
  struct Stop {};
  std::uint64_t calls = 0, last = 0, total = 0;
  convert::convert(fixture_path("gpt2"), scratch / "other", options,
                   [&](std::uint64_t done, std::uint64_t all) {
                     CHECK(done > last);
                     last = done;
                     total = all;
                     ++calls;
                   });
  CHECK(last == total);
  for (std::uint64_t stop = 1; stop <= calls; stop += calls / 5) {
    std::uint64_t n = 0;
    CHECK_THROWS_AS(convert::convert(fixture_path("gpt2"), scratch / "out", options,
                                     [&](std::uint64_t, std::uint64_t) {
                                       if (++n == stop) throw Stop{};
                                     }),
                    Stop);
    CHECK(file_text(scratch / "out" / "model.quern") == before);
    CHECK(scratch.n_entries() == 2);
  }
}

TEST_CASE("--strict and --recipe") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama3");
  base::Json config = base::parse_json(file_text(source / "config.json"), "config");
  config["flavour"] = "odd";
  quern::test::write_text(source / "config.json", config.dump());
  convert::ConvertOptions options = options_of("q8");
  options.dry_run = true;
  CHECK(run(source, "x", options).notices.size() == 1);
  options.strict = true;
  std::string text;
  CHECK(code_of([&] { run(source, "x", options); }, &text) == base::ExitCode::input);
  CHECK(text.find("flavour") != std::string::npos);

  config.erase("flavour");
  config["architectures"] = base::Json::array({"HouseForCausalLM"});
  quern::test::write_text(source / "config.json", config.dump());
  CHECK(code_of([&] { run(source, "x", options); }, &text) == base::ExitCode::input);
  quern::test::write_text(scratch / "house.json",
                          R"({"recipe": 1, "about": "a house model", "extends": "llama",
      "match": {"hf": ["HouseForCausalLM"], "gguf": []}})");
  options.recipe_file = (scratch / "house.json").string();
  CHECK(run(source, "x", options).contract.family == "house");
  options.recipe_file = (scratch / "missing.json").string();
  CHECK(code_of([&] { run(source, "x", options); }) != base::ExitCode::ok);
}

TEST_CASE(
    "generation defaults: files in their order, ends united, nonsense ignored with a notice") {
  const ScratchDirectory scratch;
  const fs::path source = patched_fixture(scratch, "llama3");
  base::Json config = base::parse_json(file_text(source / "config.json"), "config");
  config["eos_token_id"] = base::Json::array({2, 7});
  config["temperature"] = 0.9;
  config["top_k"] = 40;
  quern::test::write_text(source / "config.json", config.dump());
  quern::test::write_text(
      source / "generation_config.json",
      R"({"eos_token_id": [5, 2], "temperature": 0.6, "do_sample": true, "pad_token_id": -1,
                              "bos_token_id": 100000, "top_p": "high", "num_beams": 4, "max_new_tokens": 0})");
  convert::ConvertOptions options = options_of("q8");
  options.dry_run = true;
  const convert::ConvertReport report = run(source, "x", options);
  CHECK(report.contract.tokens.eos == std::vector<std::int32_t>{5, 2, 7});
  CHECK(report.contract.tokens.bos == 1);
  CHECK(report.contract.tokens.pad == 0);
  CHECK(report.contract.generation.sample == true);
  CHECK(report.contract.generation.temperature == 0.6);
  CHECK(report.contract.generation.top_k == 40);
  CHECK_FALSE(report.contract.generation.top_p);
  CHECK_FALSE(report.contract.generation.max_new_tokens);
  CHECK(report.contract.generation.n_beams == 4);
  CHECK(report.notices.size() == 4);
  quern::test::write_text(source / "generation_config.json", "{\"a\": ");
  CHECK(code_of([&] { run(source, "x", options); }) == base::ExitCode::input);
}
