// What tests of recipes share: the built-in ones, and the text of an error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "catch.hpp"
#include "convert/recipe.hpp"
#include "memory_checkpoint.hpp"

namespace quern::test {

inline const std::vector<convert::Recipe>& recipes() {
  static const std::vector<convert::Recipe> all = convert::builtin_recipes();
  return all;
}

inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::input);
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline base::Json config_of(const MemoryCheckpoint& source) {
  return base::parse_json(source.config_json(), "config");
}

}  // namespace quern::test
