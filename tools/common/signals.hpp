// Signals of both programs. Whatever ends them, no temporary file is left, and the shell sees the true cause.
#pragma once

namespace quern::tool {

// Descriptors 0, 1 and 2 are open (on /dev/null if need be), so no file of ours ever gets their numbers.
void open_standard_streams();

// First thing in main(). SIGINT, SIGTERM, SIGHUP and SIGQUIT remove temporaries (and where there were any, print
// `last_words` on standard error) and end the process; a SIGHUP that nohup ignores stays ignored. SIGXFSZ is ignored:
// a limit on file sizes is an error of write(), as a full disk is. A fault in a mapped file is one line and exit
// code 4 (base/mapped_file.hpp).
void install_signal_handlers(const char* last_words = nullptr);

// From now on the first SIGINT, SIGTERM or SIGHUP only sets the flag; a second one ends the process. For commands
// that ask interrupted() often.
void catch_signals();
bool interrupted();

// Re-raises the signal that was caught, with its default action; returns when there was none.
void raise_pending_signal();

}  // namespace quern::tool
