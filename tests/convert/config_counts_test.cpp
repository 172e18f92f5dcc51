// Parameters of published models from their configurations alone (tests/data/configs), total and
// active. The expected numbers are the reference implementation's (scripts/config_counts.py builds
// its models).
#include <filesystem>
#include <fstream>

#include "base/json_reader.hpp"
#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "contract/describe.hpp"
#include "contract/json.hpp"
#include "contract/parameters.hpp"
#include "convert/inspect_config.hpp"
#include "scratch_directory.hpp"

namespace quern::convert {
namespace {

using base::Json;

std::vector<std::filesystem::path> config_files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(QUERN_SOURCE_DIR) + "/tests/data/configs"))
    out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

contract::Contract inspect(const Json& config) {
  const test::ScratchDirectory scratch;
  std::ofstream(scratch / "config.json") << config.dump();
  return inspect_config(scratch / "config.json", "", "");
}

Json file_json(const std::filesystem::path& path) {
  return Json::parse(base::read_text_file(path, 1 << 20));
}

}  // namespace

TEST_CASE("published configurations add up to the reference's parameters") {
  const std::vector<std::filesystem::path> files = config_files();
  CHECK(files.size() >= 39);
  for (const std::filesystem::path& path : files) {
    const Json data = file_json(path);
    INFO(path.filename().string());
    const contract::Contract contract = inspect(data["config"]);
    REQUIRE_NOTHROW(contract::validate(contract, "config"));
    const contract::ParameterParts parts = contract::parameter_parts(contract);
    CHECK(parts.total() == data["expected"]["total"].get<std::uint64_t>());
    CHECK(parts.active() == data["expected"]["active"].get<std::uint64_t>());
    const std::string text = contract::describe_text(contract);
    for (int point = 1; point <= 8; ++point)
      CHECK(text.find("\n" + std::to_string(point) + ". ") != std::string::npos);
  }
}

}  // namespace quern::convert
