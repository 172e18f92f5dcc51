#include "signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "base/mapped_file.hpp"
#include "base/temporary.hpp"

namespace quern::tool {

namespace {

volatile std::sig_atomic_t g_signal = 0;
const char* g_last_words = nullptr;  // set before any handler
volatile std::sig_atomic_t g_flag_only = 0;  // catch_signals() was called

void on_signal(int number) {
  if (g_flag_only != 0 && g_signal == 0 && number != SIGQUIT) {
    g_signal = number;
    return;
  }
  if (base::remove_temporaries_in_handler() && g_last_words != nullptr) {
    [[maybe_unused]] const ssize_t written = ::write(2, g_last_words, std::strlen(g_last_words));
  }
  std::signal(number, SIG_DFL);
  std::raise(number);  // blocked until this handler returns
}

}  // namespace

void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= 2) continue;
    ::close(fd);
    return;
  }
}

void install_signal_handlers(const char* last_words) {
  g_last_words = last_words;
  base::install_mapping_fault_handler();
  std::signal(SIGXFSZ, SIG_IGN);
  constexpr std::array<int, 4> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (const int number : kSignals) {
    struct sigaction action{};
    const bool ignored = ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (ignored && number == SIGHUP) continue;
    action = {};
    action.sa_handler = on_signal;
    ::sigaction(number, &action, nullptr);
  }
}

void catch_signals() { g_flag_only = 1; }

bool interrupted() { return g_signal != 0; }

void raise_pending_signal() {
  if (g_signal == 0) return;
  std::signal(g_signal, SIG_DFL);
  std::raise(g_signal);
}

}  // namespace quern::tool
