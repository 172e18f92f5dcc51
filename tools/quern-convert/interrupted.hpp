// Thrown from the progress callback when the user interrupts: unwinding removes the temporary
// directory.
#pragma once

namespace quern::tool {

struct Interrupted {};

}  // namespace quern::tool
