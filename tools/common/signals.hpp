// Ctrl-C and SIGTERM as a flag, re-raised at the end so that the shell sees the true cause.
#pragma once

namespace quern::tool {

// Descriptors 0, 1 and 2 are open (on /dev/null if need be), so no file of ours ever gets their numbers.
void open_standard_streams();

// From now on the first SIGINT, SIGTERM or SIGHUP only sets the flag; a second one ends the process.
void catch_signals();
bool interrupted();

// Re-raises the signal that was caught, with its default action; returns when there was none.
void raise_pending_signal();

}  // namespace quern::tool
