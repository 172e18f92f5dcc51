#include "convert/inspect_config.hpp"

#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "convert/recipe.hpp"

namespace quern::convert {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

// A checkpoint that has a configuration and nothing else.
class BareConfiguration : public checkpoint::Checkpoint {
 public:
  explicit BareConfiguration(const std::filesystem::path& path)
      : where_(base::printable(path.string())), config_(base::read_text_file(path, kMaxFileBytes)) {}
  checkpoint::SourceKind kind() const override { return checkpoint::SourceKind::hugging_face; }
  const std::string& config_json() const override { return config_; }
  std::string_view where() const override { return where_; }
  const std::vector<checkpoint::SourceTensor>& tensors() const override { return no_tensors_; }
  const checkpoint::SourceTensor* find(std::string_view) const override { return nullptr; }
  const std::vector<std::string>& notices() const override { return no_notices_; }
  std::string side_file(std::string_view) const override { return {}; }
  void check_unchanged() const override {}

 private:
  std::string where_, config_;
  std::vector<checkpoint::SourceTensor> no_tensors_;
  std::vector<std::string> no_notices_;
};

Recipe recipe_of(const BareConfiguration& source, std::string_view recipe_file, std::string_view arch_as) {
  std::vector<Recipe> recipes = builtin_recipes();
  if (!recipe_file.empty())
    recipes.insert(recipes.begin(),
                   parse_recipe(base::read_text_file(recipe_file, kMaxFileBytes), base::printable(recipe_file)));
  return match_recipe(recipes, source, arch_as);
}

}  // namespace

contract::Contract inspect_config(const std::filesystem::path& config, std::string_view recipe_file,
                                  std::string_view arch_as) {
  const BareConfiguration source(config);
  const Recipe recipe = recipe_of(source, recipe_file, arch_as);
  contract::Contract contract = resolve_config(recipe, source.config_json(), source.where());
  contract.counts.parameters_by_formula = contract::parameters_by_formula(contract);
  contract.counts.parameters_in_tensors = 0;  // a configuration has none
  return contract;
}

void check_architecture(const std::filesystem::path& config, std::string_view recipe_file, std::string_view arch_as) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(config, error)) return;
  const BareConfiguration source(config);
  const base::Json json = base::parse_json(source.config_json(), source.where());
  if (json.contains("architectures") || json.contains("model_type")) recipe_of(source, recipe_file, arch_as);
}

}  // namespace quern::convert
