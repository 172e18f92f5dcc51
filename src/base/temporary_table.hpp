// The temporaries of this process as a table that a signal handler can read. Only temporary.cpp enters names;
// the handlers call remove_temporaries_in_handler() (temporary.hpp).
#pragma once

namespace quern::base {

// A slot, or -1 when the table is full or the path too long: the next process removes it as stale then.
int enter_temporary(const char* path);
void leave_temporary(int slot);  // -1: nothing

}  // namespace quern::base
