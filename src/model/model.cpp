#include "model/model.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/json.hpp"
#include "model/bind.hpp"

namespace quern::model {

namespace {

constexpr std::size_t kMaxContractBytes = std::size_t{64}
                                          << 20;  // tokenizer additions and template included

// Two conversions of one checkpoint share their structure; the checksum that the "weights" section records
// (16 hexadecimal digits) tells their files apart.
void check_checksum(const Model& model, const ModelPaths& paths) {
  char hex[24];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(model.weights.checksum()));
  if (model.contract.weights_json.find(hex) == std::string::npos)
    base::reject(base::printable(paths.contract.string()),
                 "was written with another model.quern: its \"weights\" section does not name this file's checksum",
                 {}, hex);
}

}  // namespace

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
  paths.weights = !directory && extension == ".quern" ? path : paths.directory / "model.quern";
  paths.contract = !directory && extension == ".json" ? path : paths.directory / "model.json";
  return paths;
}

std::unique_ptr<Model> Model::load(const std::filesystem::path& path,
                                   const kernels::Kernels& kernels) {
  const ModelPaths paths = resolve_model_path(path);
  auto model = std::make_unique<Model>();
  model->kernels = &kernels;
  model->contract = contract::read_contract(base::read_text_file(paths.contract, kMaxContractBytes),
                                            paths.contract.string());
  model->weights = weights::WeightFile::open(paths.weights);
  if (contract::structural_hash(model->contract) != model->weights.contract_hash())
    base::reject(paths.contract.string(),
                 "does not belong to this model.quern: the parts that decide the numbers differ");
  check_checksum(*model, paths);
  bind(*model, model->weights.tensors(), paths.weights.string());
  return model;
}

}  // namespace quern::model
