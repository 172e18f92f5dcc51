// Tiny checkpoints of real families, converted and run, against logits of the reference
// implementation (tests/data/fixtures/*/expected.safetensors): the whole way from config.json to
// logits.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "checkpoint/safetensors.hpp"
#include "convert/convert.hpp"
#include "engine/generation_plan.hpp"
#include "engine/session.hpp"
#include "kernels/select.hpp"
#include "model/run_model.hpp"

namespace quern::tests {

namespace {

namespace fs = std::filesystem;

// A directory of this process, removed at the end.
struct TemporaryDirectory {
  fs::path path = fs::temp_directory_path() / ("quern-golden-" + std::to_string(getpid()));
  TemporaryDirectory() { fs::create_directories(path); }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

struct Expected {
  explicit Expected(const fs::path& path) : file(path) {
    for (checkpoint::SourceTensor& t : checkpoint::parse_safetensors(file.bytes(), path.string()))
      tensors.emplace(t.name, t);
  }
  bool has(const std::string& name) const { return tensors.count(name) > 0; }
  std::vector<float> floats(const std::string& name) const {
    const checkpoint::SourceTensor& t = tensors.at(name);
    std::vector<float> values(t.values);
    checkpoint::to_float(t, 0, t.values, values.data());
    return values;
  }
  std::vector<std::int32_t> ids(const std::string& name) const {
    std::vector<std::int32_t> ids;
    for (const float value : floats(name)) ids.push_back(static_cast<std::int32_t>(value));
    return ids;
  }
  base::MappedFile file;
  std::map<std::string, checkpoint::SourceTensor> tensors;
};

double deviation(const std::vector<float>& values) {
  double sum = 0, square = 0;
  for (const float v : values) {
    sum += v;
    square += double{v} * v;
  }
  const auto n = static_cast<double>(values.size());
  return std::sqrt(square / n - sum / n * sum / n);
}

// What a fixture runs on: the ids whose logits are expected, and the source of an encoder-decoder.
struct FixtureInput {
  explicit FixtureInput(const Expected& expected) : ids(expected.ids("input_ids")) {
    if (expected.has("token_type_ids")) types = expected.ids("token_type_ids");
    if (!expected.has("decoder_input_ids")) return;
    source = ids;
    ids = expected.ids("decoder_input_ids");
  }
  std::vector<std::int32_t> ids, types, source;
};

// Logits of every position, hidden states of a model without a head; an encoder takes its input whole, whatever
// the chunk.
std::vector<float> run_fixture(const model::Model& model, const FixtureInput& input,
                               std::size_t n_threads, std::size_t chunk) {
  base::ThreadPool pool(n_threads, n_threads);
  const std::size_t n = input.ids.size();
  const model::CacheOptions f32{kernels::CacheType::f32, kernels::CacheType::f32, 1, n};
  model::KvCache cache(model, f32);
  const std::size_t step = model.decoder ? std::min(chunk, n) : n;
  model::Runner runner(model, cache, pool, std::max(step, input.source.size()), n);
  if (!input.source.empty()) {
    const model::Slice source{0, input.source, model::Want::none};
    runner.encode({&source, 1});
  }
  std::vector<float> logits;
  for (std::size_t at = 0; at < n; at += step) {
    model::Slice slice{0, std::span(input.ids).subspan(at, std::min(step, n - at)),
                       model::Want::all};
    if (!input.types.empty())
      slice.token_types = std::span(input.types).subspan(at, slice.ids.size());
    runner.forward({&slice, 1});
    if (model.head.logits.weight == nullptr)
      for (std::size_t row = 0; row < runner.n_hidden(); ++row)
        logits.insert(logits.end(), runner.hidden(row), runner.hidden(row) + model.contract.d_model);
    else
      for (std::size_t row = 0; row < runner.n_logits(); ++row)
        logits.insert(logits.end(), runner.logits(row), runner.logits(row) + runner.n_outputs());
  }
  return logits;
}

// Greedy continuation equals the reference's up to the first step whose margin is too small to
// call.
void check_greedy(const model::Model& model, const Expected& expected, double bound) {
  const std::vector<std::int32_t> ids = expected.ids("greedy_ids");
  std::vector<float> margin(ids.size(), 1);
  if (expected.has("greedy_margin")) margin = expected.floats("greedy_margin");
  base::ThreadPool pool(2);
  engine::SessionOptions options;
  const FixtureInput input(expected);
  options.source_length = input.source.size();
  options.cache.k_type = options.cache.v_type = kernels::CacheType::f32;
  engine::Session session(model, pool, options);
  sampling::SamplerOptions greedy;
  greedy.temperature = 0;
  sampling::Sampler sampler(greedy, model.contract.vocab_size);
  std::size_t step = 0;
  std::vector<std::int32_t> prompt;
  if (input.source.empty()) {
    prompt = expected.ids("greedy_prompt");
  } else {
    session.encode(input.source);
    prompt = engine::decoder_prompt(model.contract);
  }
  session.generate(prompt, sampler, {ids.size(), {}, true}, [&](std::int32_t id) {
    if (double{margin[step]} <= bound) return false;
    CHECK(id == ids[step]);
    return id == ids[step++];
  });
  CHECK(step > 0);
}

}  // namespace

TEST_CASE(
    "converted fixtures give the reference's logits, the same in one prefill and token by token",
    "[golden]") {
  const TemporaryDirectory directory;
  std::size_t n = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(QUERN_SOURCE_DIR) / "tests/data/fixtures")) {
    const std::string name = entry.path().filename().string();
    INFO(name << ": a fixture needs its expected.safetensors");
    REQUIRE(fs::exists(entry.path() / "expected.safetensors"));
    convert::ConvertOptions options;
    options.type = "f32";
    if (const fs::path recipe = entry.path() / "recipe.json"; fs::exists(recipe))
      options.recipe_file = recipe.string();
    convert::convert(entry.path(), directory.path / name, options,
                     [](std::uint64_t, std::uint64_t) {});
    const auto model = model::Model::load(directory.path / name, kernels::select_kernels());
    const Expected expected(entry.path() / "expected.safetensors");
    const FixtureInput input(expected);
    const std::vector<float> reference = expected.floats(expected.has("logits") ? "logits" : "last_hidden_state");
    const std::vector<float> logits = run_fixture(*model, input, 2, input.ids.size());
    REQUIRE(logits.size() == reference.size());
    double largest = 0;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (const double error = std::fabs(double{logits[i]} - double{reference[i]});
          !(error <= largest))
        largest = error;  // NaN stays
    const double bound = 2e-3 * deviation(reference);
    CHECK(largest < bound);
    CHECK(same_bits(run_fixture(*model, input, 1, 1), logits));
    // The reference recomputes the angles of these at every step; quern declares the length once.
    const bool exempt =
        name.find("dynamic") != std::string::npos || name.find("longrope") != std::string::npos;
    if (expected.has("greedy_ids") && !exempt) check_greedy(*model, expected, 2 * bound);
    ++n;
  }
  CHECK(n >= 7);
}

TEST_CASE("two files of different models are refused", "[golden]") {
  const TemporaryDirectory directory;
  const fs::path fixtures = fs::path(QUERN_SOURCE_DIR) / "tests/data/fixtures";
  convert::ConvertOptions options;
  options.type = "q8";
  for (const char* name : {"llama2", "gpt2"})
    convert::convert(fixtures / name, directory.path / name, options,
                     [](std::uint64_t, std::uint64_t) {});
  const kernels::Kernels& kernels = kernels::select_kernels();
  CHECK_NOTHROW(model::Model::load(directory.path / "llama2" / "model.quern", kernels));
  CHECK_NOTHROW(model::Model::load(directory.path / "llama2" / "model.json", kernels));
  fs::copy_file(directory.path / "gpt2/model.json", directory.path / "llama2/model.json",
                fs::copy_options::overwrite_existing);
  try {
    model::Model::load(directory.path / "llama2", kernels);
    FAIL("no error");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    CHECK(std::string(error.what()).find("does not belong") != std::string::npos);
  }
  fs::remove(directory.path / "llama2/model.json");
  CHECK_THROWS_AS(model::Model::load(directory.path / "llama2", kernels), base::Error);
}

}  // namespace quern::tests
