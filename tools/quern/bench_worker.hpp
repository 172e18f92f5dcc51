// The two ends of --against: a child (`quern bench --worker`) that runs one repetition of a row for each line it reads,
// and the parent's hold on such a child. Loading is thus not repeated, and two programs can alternate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "bench_bed.hpp"

namespace quern::tool {

// The child: "quern-bench-worker 1 ROWS" once, then for each line with a row's number its nanoseconds. Ends with its
// standard input.
int run_bench_worker(BenchBed& bed);

class BenchWorker {
 public:
  // Starts `program bench arguments... --worker`. Environment errors when it does not start or does not answer as
  // a worker (another program, an older quern); the child's own error line is on standard error by then.
  BenchWorker(const std::string& program, const std::vector<std::string>& arguments);
  BenchWorker(const BenchWorker&) = delete;
  BenchWorker& operator=(const BenchWorker&) = delete;
  ~BenchWorker();  // waits for the child

  std::size_t n_rows() const { return n_rows_; }
  // Nanoseconds of one repetition; none when interrupted.
  std::optional<std::uint64_t> run(std::size_t row);

 private:
  void send(const std::string& line);
  std::optional<std::string> receive();  // one line without its end; none: the child is gone

  std::string program_, buffer_;
  pid_t child_ = -1;
  int socket_ = -1;
  std::size_t n_rows_ = 0;
};

}  // namespace quern::tool
