// A model of which only the shapes exist: bound as a real one is, so that everything that follows from shapes
// (cache layers, scratch, operations) comes from the code that runs, while no weight is read and no memory
// taken. Sources: a converted model, its model.json alone, or a bare configuration with a type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "convert/convert.hpp"
#include "model/lazy_array.hpp"
#include "model/model.hpp"

namespace quern::plan {

struct ShapeModel {
  std::unique_ptr<model::Model> model;  // its tensors have formats and shapes; their bytes are zeros
  std::string where, type;              // of the weights: "as converted", or the policy's line
  std::uint64_t file_bytes = 0;         // of model.quern; estimated from its tensors where there is none
  std::uint64_t contract_bytes = 0;     // of model.json, 0 when there is none
  bool converted = false;               // the weight file exists

  model::LazyArray<std::byte> zeros;              // stands for the bytes of every tensor
  std::vector<weights::TensorView> tensors;
};

struct SourceOptions {
  convert::ConvertOptions convert;  // type, tensor types, recipe, arch_as of a bare configuration
};

// path: a model directory, model.quern, model.json, config.json, or a directory with a config.json.
ShapeModel open_shapes(const std::filesystem::path& path, const SourceOptions& options,
                       const kernels::Kernels& kernels);

// Of a contract and a policy alone.
ShapeModel shapes_of(contract::Contract contract, const convert::ConvertOptions& options,
                     const kernels::Kernels& kernels, std::string where);

}  // namespace quern::plan
