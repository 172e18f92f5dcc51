#include "bench_worker.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iostream>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "signals.hpp"

extern char** environ;

namespace quern::tool {

namespace {

constexpr std::string_view kGreeting = "quern-bench-worker 1 ";
constexpr std::size_t kMaxLine = 4096;

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Both standard streams of the child are `theirs`; its standard error is ours.
pid_t start(const std::string& program, std::vector<std::string> words, int theirs) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs, STDOUT_FILENO);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) base::environment_error(base::printable(program), "cannot start it", error);
  return child;
}

}  // namespace

int run_bench_worker(BenchBed& bed) {
  catch_signals();
  std::cout << kGreeting << bed.rows().size() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const std::optional<std::uint64_t> row = number_of(line);
    if (!row || *row >= bed.rows().size())
      base::reject("standard input", "not a row", base::printable(line, 40), base::cat("0 to ", bed.rows().size() - 1));
    bench::Timing timing;
    if (!bed.run(static_cast<std::size_t>(*row), timing)) return 0;
    std::cout << timing.total_ns << std::endl;
  }
  return 0;
}

BenchWorker::BenchWorker(const std::string& program, const std::vector<std::string>& arguments) : program_(program) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    base::environment_error(base::printable(program), "no connection to it", errno);
  socket_ = ends[0];
  std::vector<std::string> words = {program, "bench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back("--worker");
  try {
    child_ = start(program, std::move(words), ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  const std::optional<std::string> line = receive();
  if (!line && interrupted()) return;
  const std::string_view text = line ? std::string_view(*line) : std::string_view();
  const auto rows = text.substr(0, kGreeting.size()) == kGreeting ? number_of(text.substr(kGreeting.size())) : std::nullopt;
  if (!rows || *rows == 0) {
    ::close(socket_);
    ::waitpid(child_, nullptr, 0);
    base::environment_error(base::printable(program),
                            base::cat("does not answer as a bench worker (got ",
                                      line ? "\"" + base::printable(*line, 60) + "\"" : "nothing",
                                      ", expected a quern of this version or later)"));
  }
  n_rows_ = static_cast<std::size_t>(*rows);
}

BenchWorker::~BenchWorker() {
  if (socket_ >= 0) ::close(socket_);  // the end of its input
  while (child_ > 0 && ::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::uint64_t> BenchWorker::run(std::size_t row) {
  send(base::cat(row, "\n"));
  const std::optional<std::string> line = receive();
  if (interrupted()) return std::nullopt;
  const std::optional<std::uint64_t> ns = line ? number_of(*line) : std::nullopt;
  if (!ns || *ns == 0)
    base::environment_error(base::printable(program_), line ? "gave no time for a repetition" : "ended before its time");
  return ns;
}

void BenchWorker::send(const std::string& line) {
  // A few bytes: never in parts. A child that is gone shows when its answer is read.
  while (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) < 0 && errno == EINTR && !interrupted()) {
  }
}

std::optional<std::string> BenchWorker::receive() {
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char chunk[256];
    const ssize_t n = ::read(socket_, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR && !interrupted()) continue;
    if (n <= 0 || buffer_.size() > kMaxLine) return std::nullopt;
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
}

}  // namespace quern::tool
