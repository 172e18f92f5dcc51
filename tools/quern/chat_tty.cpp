#include "chat_tty.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/temporary.hpp"

namespace quern::tool {

namespace {

constexpr std::string_view kBracketsOn = "\x1b[?2004h", kBracketsOff = "\x1b[?2004l";
constexpr int kMostInterrupts = 3;  // unanswered: the program is stuck, so the default action takes over

volatile std::sig_atomic_t g_interrupts = 0, g_end = 0, g_resized = 0, g_continued = 0;
volatile std::sig_atomic_t g_mode = 0;   // Tty::Mode
volatile std::sig_atomic_t g_saved = 0;  // g_typed holds the shell's modes
int g_output = 1;
struct termios g_typed {
}, g_editing{}, g_running{};
struct sigaction g_old_bus {};

// Async-signal-safe, as all that handlers call.
void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(g_output, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void apply(Tty::Mode mode) {
  const struct termios& modes = mode == Tty::Mode::editing   ? g_editing
                                : mode == Tty::Mode::running ? g_running
                                                             : g_typed;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
  if (mode == Tty::Mode::editing) put(kBracketsOn);
}

void restore_modes() {
  if (g_saved == 0) return;
  if (g_mode == static_cast<int>(Tty::Mode::editing)) put(kBracketsOff);
  if (g_mode != static_cast<int>(Tty::Mode::typed)) {
    put("\x1b[0m");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &g_typed);
  }
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

void die_of(int signal) {
  restore_modes();
  if (signal != SIGTSTP) base::remove_temporaries_in_handler();  // of a session that is being saved
  set_handler(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
}

void on_interrupt(int signal) {
  g_interrupts = g_interrupts + 1;
  if (g_interrupts >= kMostInterrupts) die_of(signal);
}

void on_end(int signal) {
  if (g_end != 0) die_of(signal);
  g_end = signal;
}

void on_resize(int) {
  g_resized = 1;
}

void on_continue(int) {
  const int error = errno;
  if (g_saved != 0 && g_mode != static_cast<int>(Tty::Mode::typed)) apply(static_cast<Tty::Mode>(g_mode));
  g_continued = 1;
  errno = error;
}

void on_stop(int signal) {
  const int error = errno;
  die_of(signal);  // stops here, and goes on behind it
  set_handler(signal, on_stop);
  on_continue(SIGCONT);  // a process group without a shell is not stopped, and gets no SIGCONT
  errno = error;
}

void on_bus(int signal, siginfo_t* info, void* context) {
  restore_modes();
  if ((g_old_bus.sa_flags & SA_SIGINFO) != 0 && g_old_bus.sa_sigaction != nullptr)
    g_old_bus.sa_sigaction(signal, info, context);
  else
    die_of(signal);
}

void watch_crashes() {
  constexpr std::array<int, 5> kCrashes = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGQUIT};
  for (const int signal : kCrashes) set_handler(signal, die_of);
  struct sigaction bus {};
  bus.sa_sigaction = on_bus;
  bus.sa_flags = SA_SIGINFO;
  ::sigemptyset(&bus.sa_mask);
  ::sigaction(SIGBUS, &bus, &g_old_bus);
}

bool has_cursor(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) != 0 && kind != nullptr && kind[0] != '\0' && std::strcmp(kind, "dumb") != 0;
}

}  // namespace

void watch_signals() {
  set_handler(SIGINT, on_interrupt);
  set_handler(SIGTERM, on_end);
  set_handler(SIGHUP, on_end);
}

bool take_interrupt() {
  const bool was = g_interrupts != 0;
  g_interrupts = 0;
  return was;
}
bool interrupt_pending() {
  return g_interrupts != 0;
}
int end_signal() {
  return g_end;
}

void raise_default(int signal) {
  die_of(signal);
}

bool terminal_has_cursor() {
  return has_cursor(STDERR_FILENO);
}

Tty* Tty::open() {
  static Tty tty;
  tty.output_ = has_cursor(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO;
  if (!has_cursor(STDIN_FILENO) || !has_cursor(tty.output_)) return nullptr;
  if (::tcgetattr(STDIN_FILENO, &g_typed) != 0) return nullptr;
  g_editing = g_running = g_typed;
  g_editing.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INLCR | INPCK | ISTRIP | IXON);
  g_editing.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
  g_running.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN);
  g_running.c_iflag &= ~static_cast<tcflag_t>(ICRNL);  // what is typed ahead looks as typed while editing
  for (struct termios* modes : {&g_editing, &g_running}) {
    modes->c_cc[VMIN] = 1;
    modes->c_cc[VTIME] = 0;
  }
  g_output = tty.output_;
  g_saved = 1;
  set_handler(SIGWINCH, on_resize);
  set_handler(SIGTSTP, on_stop);
  set_handler(SIGCONT, on_continue);
  watch_crashes();
  return &tty;
}

void Tty::set_mode(Mode mode) {
  if (g_mode == static_cast<int>(mode)) return;
  if (g_mode == static_cast<int>(Mode::editing)) put(kBracketsOff);
  g_mode = static_cast<int>(mode);
  apply(mode);
}

std::optional<std::string> Tty::read(int timeout_ms) {
  // Woken now and then: a signal may come between a look at its flag and the wait.
  constexpr int kLookMs = 200;
  struct pollfd wanted {
    STDIN_FILENO, POLLIN, 0
  };
  const int wait = timeout_ms < 0 ? kLookMs : timeout_ms;
  const int ready = ::poll(&wanted, 1, wait);
  if (ready < 0) return errno == EINTR ? std::optional<std::string>("") : std::nullopt;
  if (ready == 0) return "";
  std::array<char, 65536> bytes{};
  const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return "";
  if (n <= 0) return std::nullopt;
  return std::string(bytes.data(), static_cast<std::size_t>(n));
}

void Tty::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = ::write(output_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

terminal::ScreenSize Tty::size() const {
  struct winsize window {};
  if (::ioctl(output_, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {80, 24};
  return {window.ws_col, window.ws_row};
}

bool Tty::take_resized() {
  const bool was = g_resized != 0;
  g_resized = 0;
  return was;
}

bool Tty::take_continued() {
  const bool was = g_continued != 0;
  g_continued = 0;
  return was;
}

void Tty::suspend() {
  on_stop(SIGTSTP);
}

}  // namespace quern::tool
