// Which table is chosen, and what is said about names that cannot be chosen.
#include "kernels/isas.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "base/error.hpp"
#include "catch.hpp"
#include "kernels/sample.hpp"

namespace {

using namespace quern;
using namespace quern::kernels;

// Sets QUERN_ISA for a scope, so that a run under QUERN_ISA=... stays what it was.
class ScopedIsa {
 public:
  explicit ScopedIsa(const char* value) {
    const char* old = std::getenv("QUERN_ISA");
    had_ = old != nullptr;
    if (had_) old_ = old;
    if (value != nullptr)
      setenv("QUERN_ISA", value, 1);
    else
      unsetenv("QUERN_ISA");
  }
  ~ScopedIsa() {
    if (had_)
      setenv("QUERN_ISA", old_.c_str(), 1);
    else
      unsetenv("QUERN_ISA");
  }

 private:
  bool had_;
  std::string old_;
};

std::string error_of(std::string_view name) {
  try {
    select_kernels(name);
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::usage);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the list ends with scalar, which always runs; names are unique and the tables' own") {
  const auto& isas = all_isas();
  REQUIRE(!isas.empty());
  CHECK(isas.back().name == "scalar");
  CHECK(isas.back().supported);
  std::set<std::string> names;
  for (const IsaInfo& isa : isas) {
    CHECK(names.insert(isa.name).second);
    REQUIRE(isa.kernels != nullptr);
    CHECK(isa.name == isa.kernels->name);
    CHECK(std::strlen(isa.kernels->description) > 0);
  }
}

TEST_CASE("without a name the best supported table is chosen") {
  const ScopedIsa none(nullptr);
  const Kernels* best = nullptr;
  for (const IsaInfo& isa : all_isas())
    if (isa.supported && best == nullptr) best = isa.kernels;
  CHECK(&select_kernels() == best);
  const ScopedIsa empty("");
  CHECK(&select_kernels() == best);
}

TEST_CASE("QUERN_ISA forces a table, and a name given in the call wins over it") {
  for (const IsaInfo& isa : all_isas()) {
    if (!isa.supported) continue;
    const ScopedIsa forced(isa.name.c_str());
    CHECK(&select_kernels() == isa.kernels);
    CHECK(&select_kernels("scalar") == all_isas().back().kernels);
  }
}

TEST_CASE("an unknown name is a usage error that lists what runs and the nearest name") {
  const std::string message = error_of("avx3");
  CHECK(message.find("--isa") != std::string::npos);
  CHECK(message.find("avx3") != std::string::npos);
  CHECK(message.find("scalar") != std::string::npos);
  const ScopedIsa forced("scaler");
  const std::string from_environment = error_of("");
  CHECK(from_environment.find("QUERN_ISA") != std::string::npos);
  CHECK(from_environment.find("did you mean \"scalar\"") != std::string::npos);
}

TEST_CASE("a table this CPU cannot run is refused with what it needs") {
  bool any = false;
  for (const IsaInfo& isa : all_isas()) {
    if (isa.supported) continue;
    any = true;
    CHECK(error_of(isa.name).find(isa.requires_features) != std::string::npos);
  }
  if (!any) std::printf("every ISA built in runs on this CPU: nothing to refuse\n");
}

TEST_CASE("the ISAs covered are printed, and QUERN_REQUIRE_ISA makes a missing one fail") {
  std::string covered;  // emulated ones say so in their names
  for (const IsaInfo& isa : tested_isas())
    if (isa.supported) covered += " " + isa.name;
  std::printf("covered ISAs:%s\n", covered.c_str());
  if (sample_step() > 1)
    std::printf("one in %zu of the cases, some of every format, cache type and mechanism\n", sample_step());
  const char* required = std::getenv("QUERN_REQUIRE_ISA");
  if (required == nullptr) return;
  std::string word;
  for (const char* p = required;; ++p) {
    if (*p != '\0' && *p != ' ' && *p != ',') {
      word += *p;
      continue;
    }
    INFO(word);
    CHECK((word.empty() || (covered + " ").find(" " + word + " ") != std::string::npos));
    word.clear();
    if (*p == '\0') break;
  }
}
