#include "signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace quern::tool {

namespace {

volatile std::sig_atomic_t g_signal = 0;

void on_signal(int number) {
  g_signal = number;
  std::signal(number, SIG_DFL);
}

}  // namespace

void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= 2) continue;
    ::close(fd);
    return;
  }
}

void catch_signals() {
  constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  for (const int number : kSignals) {
    struct sigaction action{};
    action.sa_handler = on_signal;
    ::sigaction(number, &action, nullptr);
  }
}

bool interrupted() { return g_signal != 0; }

void raise_pending_signal() {
  if (g_signal == 0) return;
  std::signal(g_signal, SIG_DFL);
  std::raise(g_signal);
}

}  // namespace quern::tool
