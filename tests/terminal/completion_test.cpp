#include "terminal/completion.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catch.hpp"

using namespace quern::terminal;
namespace fs = std::filesystem;

TEST_CASE("what candidates share never ends inside a character") {
  CHECK(common_start({}) == "");
  CHECK(common_start({"abc"}) == "abc");
  CHECK(common_start({"abc", "abd", "ab"}) == "ab");
  CHECK(common_start({"x\xC3\xA9", "x\xC3\xAA"}) == "x");
  CHECK(common_start({"a", "b"}) == "");
}

TEST_CASE("paths complete as they are typed: directories open, hidden names only when asked for") {
  const fs::path folder = fs::temp_directory_path() / ("quern_completion_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder / "dir one");
  for (const char* name : {"dime", ".hidden", "other"}) std::ofstream(folder / name) << "x";
  const std::string base = folder.string() + "/";
  CHECK(matching_paths(base + "di") == std::vector<std::string>{base + "dime", base + "dir one/"});
  CHECK(matching_paths(base) == std::vector<std::string>{base + "dime", base + "dir one/", base + "other"});
  CHECK(matching_paths(base + ".h") == std::vector<std::string>{base + ".hidden"});
  CHECK(matching_paths(base + "none/x").empty());
  ::setenv("HOME", folder.c_str(), 1);
  CHECK(matching_paths("~/di") == std::vector<std::string>{"~/dime", "~/dir one/"});
  CHECK(expand_home("~/dime") == base + "dime");
  CHECK(expand_home("~other") == "~other");
  fs::remove_all(folder);
}
