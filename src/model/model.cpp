#include "model/model.hpp"

#include <cstdio>
#include <utility>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/json.hpp"
#include "model/bind.hpp"

namespace quern::model {

ModelPaths resolve_model_path(const std::filesystem::path& path) {
  std::error_code ignored;
  ModelPaths paths;
  paths.directory = std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
  if (!std::filesystem::exists(path, ignored))
    base::reject(base::printable(path.string()), "no such model", {},
                 "a directory with model.quern and model.json");
  const bool directory = std::filesystem::is_directory(path, ignored);
  const std::string extension = path.extension().string();
  if (!directory && extension != ".quern" && extension != ".json")
    base::reject(
        path.string(), "not a quern model", path.filename().string(),
        "a directory, model.quern or model.json; quern-convert makes them from a checkpoint");
  if (directory && !std::filesystem::exists(paths.directory / "model.json", ignored) &&
      !std::filesystem::exists(paths.directory / "model.quern", ignored))
    base::reject(base::printable(path.string()), "not a quern model", "a directory without model.quern and model.json",
                 "those two; quern-convert makes them from a checkpoint");
  paths.weights = !directory && extension == ".quern" ? path : paths.directory / "model.quern";
  paths.contract = !directory && extension == ".json" ? path : paths.directory / "model.json";
  return paths;
}

namespace {

// model.json and model.quern were written together: structural hash and checksum; else an input error.
void check_pair(const contract::Contract& contract, const weights::WeightFile& weights,
                const std::filesystem::path& contract_path) {
  const std::string where = base::printable(contract_path.string());
  if (contract::structural_hash(contract) != weights.contract_hash())
    base::reject(where, "does not belong to this model.quern: the parts that decide the numbers differ");
  // Two conversions of one checkpoint share their structure; the checksum that the "weights" section
  // records (16 hexadecimal digits) tells their files apart.
  char hex[24];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(weights.checksum()));
  if (contract.weights_json.find(hex) == std::string::npos)
    base::reject(where,
                 "does not belong to this model.quern: its \"weights\" section does not name the file's checksum",
                 {}, hex);
}

}  // namespace

ModelFiles open_model_files(const std::filesystem::path& path) {
  const ModelPaths paths = resolve_model_path(path);
  ModelFiles files;
  files.contract =
      contract::read_contract(base::read_text_file(paths.contract, contract::kMaxDocumentBytes),
                              base::printable(paths.contract.string()));
  files.weights = weights::WeightFile::open(paths.weights);
  check_pair(files.contract, files.weights, paths.contract);
  return files;
}

std::vector<const Stack*> Model::stacks() const {
  std::vector<const Stack*> stacks;
  if (encoder) stacks.push_back(&*encoder);
  if (decoder) stacks.push_back(&*decoder);
  return stacks;
}

std::unique_ptr<Model> Model::load(const std::filesystem::path& path,
                                   const kernels::Kernels& kernels) {
  auto model = std::make_unique<Model>();
  model->kernels = &kernels;
  ModelFiles files = open_model_files(path);
  model->contract = std::move(files.contract);
  model->weights = std::move(files.weights);
  bind(*model, model->weights.tensors(), model->weights.where());
  return model;
}

}  // namespace quern::model
