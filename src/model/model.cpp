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

std::unique_ptr<Model> Model::load(const std::filesystem::path& path,
                                   const kernels::Kernels& kernels) {
  const ModelPaths paths = resolve_model_path(path);
  auto model = std::make_unique<Model>();
  model->kernels = &kernels;
  model->contract = contract::read_contract(base::read_text_file(paths.contract, kMaxContractBytes),
                                            paths.contract.string());
  model->weights = weights::WeightFile::open(paths.weights);
  check_pair(model->contract, model->weights, paths.contract);
  bind(*model, model->weights.tensors(), paths.weights.string());
  return model;
}

}  // namespace quern::model
