// Binding: the tensors of a file are exactly the contract's, and what cannot run is refused by
// name.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

namespace {

// Rebinds the tensors of a good model after a change; the error's text, "" when there is none.
std::string bind_error(
    const std::function<void(std::vector<weights::TensorView>&, Contract&)>& change) {
  TinyModel tiny = make_model(tiny_contract(), "f32");
  model::Model model;
  model.contract = tiny.model->contract;
  model.kernels = tiny.model->kernels;
  std::vector<weights::TensorView> views = tiny.views;
  change(views, model.contract);
  try {
    model::bind(model, views, "model.quern");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each tensor must be there, with its shape and kind of format", "[bind]") {
  CHECK(bind_error([](auto&, auto&) {}).empty());
  const std::size_t n = contract::expected_tensors(tiny_contract()).size();
  for (std::size_t i = 0; i < n; ++i) {
    std::string name;
    const std::string missing = bind_error([&](auto& views, auto&) {
      name = views[i].name;
      views.erase(views.begin() + static_cast<std::ptrdiff_t>(i));
    });
    CHECK(contains(missing, name));
    CHECK(contains(missing, "missing"));
    const std::string shape = bind_error([&](auto& views, auto&) { ++views[i].columns; });
    CHECK(contains(shape, name));
    CHECK(contains(shape, "shape"));
    const std::string format = bind_error([&](auto& views, auto&) {
      const bool table = views[i].format->id == quant::FormatId::rows_f32;
      views[i].format = quant::find_format(table ? quant::FormatId::q8 : quant::FormatId::rows_f32);
    });
    CHECK(contains(format, name));
    CHECK(contains(format, "format"));
  }
}

TEST_CASE("a surplus tensor is named", "[bind]") {
  const std::string error = bind_error([](auto& views, auto&) {
    views.push_back(views.front());
    views.back().name = "decoder.9.0.q.weight";
  });
  CHECK(contains(error, "decoder.9.0.q.weight"));
}

TEST_CASE("a path must be a model's directory or one of its files", "[bind]") {
  std::string pattern = (std::filesystem::temp_directory_path() / "quern-test-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(pattern.data());
  CHECK_THROWS_WITH(model::resolve_model_path(directory), Catch::Contains("quern-convert makes them"));
  std::ofstream(directory / "model.json") << "{}";
  CHECK(model::resolve_model_path(directory).weights == directory / "model.quern");
  CHECK(model::resolve_model_path(directory).contract == directory / "model.json");
  std::filesystem::remove_all(directory);
  CHECK_THROWS_AS(model::resolve_model_path("/nonexistent/model.quern"), base::Error);
  CHECK_THROWS_AS(model::resolve_model_path("/proc/self/status"), base::Error);
}

}  // namespace quern::tests
