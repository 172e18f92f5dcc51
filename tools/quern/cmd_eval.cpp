#include "base/error.hpp"
#include "command.hpp"
namespace quern::tool {
int cmd_eval(const std::vector<std::string>&) { base::usage_error("quern eval", "not there yet"); }
}  // namespace quern::tool
