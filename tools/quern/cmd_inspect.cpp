// quern inspect: the contract as a table a person can check against a model card; from a model, or from a
// bare config.json without weights.

#include <iostream>
#include <utility>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "contract/describe.hpp"
#include "contract/json.hpp"
#include "contract/tensors.hpp"
#include "convert/inspect_config.hpp"
#include "model/model.hpp"

namespace quern::tool {

namespace {

struct InspectOptions {
  std::string model, config, recipe_file, arch_as;
  bool json = false, tensors = false;
};

struct Inspected {
  contract::Contract contract;
  std::vector<contract::StoredTensor> stored;
  std::vector<weights::TensorView> tensors;
};

// Reads the pair of files; the weights themselves are not touched.
Inspected inspect_model(const std::string& path) {
  model::ModelFiles files = model::open_model_files(path);
  Inspected result;
  result.contract = std::move(files.contract);
  result.tensors = files.weights.tensors();
  for (const weights::TensorView& tensor : result.tensors)
    result.stored.push_back({tensor.name, std::string(tensor.format->name), tensor.bytes.size()});
  return result;
}

// Without a weight file: what one would hold.
void print_expected(const contract::Contract& contract) {
  for (const contract::TensorSpec& tensor : contract::expected_tensors(contract))
    std::cout << tensor.name << "\t-\t" << tensor.rows << " x " << tensor.columns << "\t-\n";
}

void print_tensors(const Inspected& inspected) {
  for (const weights::TensorView& tensor : inspected.tensors)
    std::cout << tensor.name << "\t" << tensor.format->name << "\t" << tensor.rows << " x " << tensor.columns << "\t"
              << tensor.bytes.size() << "\n";
}

}  // namespace

int cmd_inspect(const std::vector<std::string>& arguments) {
  CLI::App app("Prints a model's architecture, equations, parameters and cache as a table.", "quern inspect");
  InspectOptions options;
  app.add_option("-m,--model,model", options.model, "model directory (or its model.quern or model.json)");
  app.add_option("--config", options.config, "a config.json instead of a model: no weights needed");
  app.add_option("--recipe", options.recipe_file, "with --config: a recipe file beside the built-in ones");
  app.add_option("--arch-as", options.arch_as, "with --config: the recipe to use");
  app.add_flag("--json", options.json, "one JSON object instead of tables");
  app.add_flag("--tensors", options.tensors, "list the tensors: name, format, shape, bytes (of a configuration: name and shape)");
  if (parse_arguments(app, arguments)) return 0;
  if (options.model.empty() == options.config.empty())
    base::usage_error("quern inspect", "give one of -m MODEL and --config config.json");
  Inspected inspected;
  if (options.config.empty()) {
    inspected = inspect_model(options.model);
  } else {
    inspected.contract = convert::inspect_config(options.config, options.recipe_file, options.arch_as);
  }
  if (options.tensors && !options.config.empty())
    print_expected(inspected.contract);
  else if (options.tensors)
    print_tensors(inspected);
  else
    std::cout << (options.json ? contract::describe_json(inspected.contract, inspected.stored)
                               : contract::describe_text(inspected.contract, inspected.stored));
  return 0;
}

}  // namespace quern::tool
