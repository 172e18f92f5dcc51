#include "base/thread_pool.hpp"

#include <atomic>
#include <vector>

#include "catch.hpp"

using namespace quern::base;

TEST_CASE("every item runs once, for any number of threads, items and grain") {
  for (std::size_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads, threads);
    CHECK(pool.n_threads() == threads);
    for (std::size_t items : {0u, 1u, 2u, 7u, 100u, 1000u}) {
      for (std::size_t grain : {1u, 3u, 64u}) {
        std::vector<std::atomic<int>> count(items);
        std::atomic<bool> wrong = false;
        auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
          if (end - begin > grain || thread >= threads) wrong = true;
          for (std::size_t i = begin; i < end; ++i) ++count[i];
        };
        pool.parallel_for(items, grain, work);
        bool once = true;
        for (const std::atomic<int>& n : count) once = once && n == 1;
        CHECK(once);
        CHECK(!wrong);
      }
    }
  }
}

TEST_CASE("many short jobs and pauses between them all finish") {
  ThreadPool pool(4, 4);
  std::atomic<std::size_t> sum = 0;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) { sum += end - begin; };
  for (int i = 0; i < 20000; ++i) pool.parallel_for(16, 1, work);
  CHECK(sum == 320000u);
}

TEST_CASE("threads that do not run leave their share to those that do") {
  for (std::size_t running : {1u, 2u, 3u}) {
    ThreadPool pool(8, running);
    CHECK(pool.n_threads() == 8u);
    std::vector<std::atomic<int>> count(20);
    std::atomic<bool> wrong = false;
    auto work = [&](std::size_t begin, std::size_t end, std::size_t thread) {
      if (thread >= running) wrong = true;
      for (std::size_t i = begin; i < end; ++i) ++count[i];
    };
    pool.parallel_for(count.size(), 1, work);
    bool once = true;
    for (const std::atomic<int>& n : count) once = once && n == 1;
    CHECK(once);
    CHECK(!wrong);
  }
}

TEST_CASE("items of very different length, on more threads than CPUs, all end before the loop does") {
  ThreadPool pool(8, 8);
  for (int round = 0; round < 200; ++round) {
    std::atomic<std::size_t> ended = 0;
    auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
      volatile std::size_t sink = 0;
      for (std::size_t i = 0; i < begin * 1000; ++i) sink = sink + i;
      ended += end - begin;
    };
    pool.parallel_for(40, 1, work);
    REQUIRE(ended == 40u);
  }
}

TEST_CASE("the default number of threads is at least one") {
  CHECK(default_thread_count() >= 1);
  CHECK(usable_cpus() >= default_thread_count());
}
