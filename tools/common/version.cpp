#include "version.hpp"

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#define PCRE2_CODE_UNIT_WIDTH 8  // pcre2.h asks for it
#include <pcre2.h>
#include <utf8proc.h>
#include <xsimd/xsimd.hpp>
#include <xxhash.h>

#include "generated/commit.hpp"
#include "kernels/select.hpp"

namespace quern::tool {

const char* version() {
  return QUERN_VERSION;
}

const char* commit() {
  return QUERN_COMMIT;
}

void print_version(std::ostream& out, const char* program) {
  out << program << " " << version() << " (" << commit() << ", " << QUERN_BUILD_TYPE << ", gcc " << __GNUC__ << "."
      << __GNUC_MINOR__ << ")\ninstruction sets:";
  for (const kernels::IsaInfo& isa : kernels::all_isas())
    out << " " << isa.name << (isa.supported ? "" : " (not on this CPU)");
  out << "\nin use: " << kernels::select_kernels().name << "\nlibraries: xsimd " << XSIMD_VERSION_MAJOR << "."
      << XSIMD_VERSION_MINOR << "." << XSIMD_VERSION_PATCH << ", CLI11 " << CLI11_VERSION << ", nlohmann/json "
      << NLOHMANN_JSON_VERSION_MAJOR << "." << NLOHMANN_JSON_VERSION_MINOR << "."
      << NLOHMANN_JSON_VERSION_PATCH << ", PCRE2 " << PCRE2_MAJOR << "." << PCRE2_MINOR << ", utf8proc "
      << utf8proc_version() << ", xxHash " << XXH_VERSION_MAJOR << "." << XXH_VERSION_MINOR << "."
      << XXH_VERSION_RELEASE << "\n";
}

}  // namespace quern::tool
