#include "plan/shape_model.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/json.hpp"
#include "contract/tensors.hpp"
#include "convert/inspect_config.hpp"
#include "convert/policy.hpp"
#include "model/bind.hpp"

namespace quern::plan {

namespace {

namespace fs = std::filesystem;

// Header, directory and padding beside the tensors: one entry and one name each.
constexpr std::uint64_t kBytesBesideTensor = 160;

// Tensors whose bytes are zeros that nobody has written: reading a norm's weights while binding costs nothing.
void bind_shapes(ShapeModel& shapes, const kernels::Kernels& kernels, contract::Contract contract) {
  std::uint64_t largest = 64;
  for (const weights::TensorView& view : shapes.tensors)
    largest = std::max<std::uint64_t>(largest, quant::tensor_bytes(*view.format, view.rows, view.columns));
  shapes.zeros = model::LazyArray<std::byte>(largest);
  for (weights::TensorView& view : shapes.tensors)
    view.bytes = {shapes.zeros.data(), quant::tensor_bytes(*view.format, view.rows, view.columns)};
  shapes.model = std::make_unique<model::Model>();
  shapes.model->contract = std::move(contract);
  shapes.model->kernels = &kernels;
  model::bind(*shapes.model, shapes.tensors, shapes.where);
}

ShapeModel from_files(const fs::path& path, const kernels::Kernels& kernels) {
  model::ModelFiles files = model::open_model_files(path);
  const model::ModelPaths paths = model::resolve_model_path(path);
  ShapeModel shapes;
  shapes.where = base::printable(paths.directory.string());
  shapes.type = "as converted";
  shapes.converted = true;
  shapes.file_bytes = files.weights.file().bytes().size();
  shapes.contract_bytes = fs::file_size(paths.contract);
  shapes.tensors = files.weights.tensors();
  bind_shapes(shapes, kernels, std::move(files.contract));
  return shapes;
}

// A configuration of Hugging Face has no key "quern".
bool is_contract(const fs::path& path) {
  const std::string text = base::read_text_file(path, contract::kMaxDocumentBytes);
  const base::Json document = base::parse_json(text, base::printable(path.string()));
  return document.is_object() && document.contains("quern");
}

}  // namespace

ShapeModel shapes_of(contract::Contract contract, const convert::ConvertOptions& options,
                     const kernels::Kernels& kernels, std::string where) {
  ShapeModel shapes;
  shapes.where = std::move(where);
  const convert::Policy policy(options, false);
  shapes.type = policy.describe();
  checkpoint::SourceTensor source{};
  source.type = checkpoint::DType::bf16;
  for (const contract::TensorSpec& spec : contract::expected_tensors(contract)) {
    source.name = spec.name;
    const convert::FormatChoice choice = policy.choose(spec, source, contract.head.tied, false);
    weights::TensorView view;
    view.name = spec.name;
    view.format = choice.format;
    view.rows = spec.rows;
    view.columns = spec.columns;
    shapes.file_bytes += quant::tensor_bytes(*view.format, view.rows, view.columns) + kBytesBesideTensor;
    shapes.tensors.push_back(std::move(view));
  }
  bind_shapes(shapes, kernels, std::move(contract));
  return shapes;
}

ShapeModel open_shapes(const fs::path& path, const SourceOptions& options, const kernels::Kernels& kernels) {
  std::error_code ignored;
  const std::string where = base::printable(path.string());
  if (!fs::exists(path, ignored))
    base::reject(where, "no such model", {}, "a quern model, its model.json, or a config.json");
  const bool directory = fs::is_directory(path, ignored);
  if (directory && fs::exists(path / "model.quern", ignored)) return from_files(path, kernels);
  if (!directory && path.extension() == ".quern") return from_files(path, kernels);
  fs::path document = path;
  if (directory) document = fs::exists(path / "model.json", ignored) ? path / "model.json" : path / "config.json";
  if (!fs::exists(document, ignored))
    base::reject(where, "holds neither a model nor a configuration", {}, "model.quern and model.json, or config.json");
  if (document.extension() != ".json")
    base::reject(where, "not a model or a configuration", document.filename().string(),
                 "a directory, model.quern, model.json or config.json");
  if (!is_contract(document))
    return shapes_of(convert::inspect_config(document, options.convert.recipe_file, options.convert.arch_as),
                     options.convert, kernels, where);
  const model::ModelPaths paths = model::resolve_model_path(document);
  if (fs::exists(paths.weights, ignored)) return from_files(document, kernels);
  ShapeModel shapes = shapes_of(
      contract::read_contract(base::read_text_file(document, contract::kMaxDocumentBytes), where), options.convert,
      kernels, where);
  shapes.contract_bytes = fs::file_size(document);
  return shapes;
}

}  // namespace quern::plan
