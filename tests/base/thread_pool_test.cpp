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

TEST_CASE("a thread goes through its part in order, and through another's from the end") {
  constexpr std::size_t kItems = 1000, kGrain = 10, kThreads = 4;
  ThreadPool pool(kThreads, kThreads);
  std::size_t helped = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::size_t> begins[kThreads];
    auto work = [&](std::size_t begin, std::size_t, std::size_t thread) {
      begins[thread].push_back(begin);
      for (volatile int i = 0; i < (thread == 1 ? 2000 : 20);) i = i + 1;  // one is slow: the others help
    };
    pool.parallel_for(kItems, kGrain, work);
    constexpr std::size_t kPart = kItems / kThreads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      const std::vector<std::size_t>& order = begins[thread];
      for (std::size_t i = 0; i < order.size(); ++i) {
        const bool own = order[i] / kPart == thread;
        const bool same_part = i > 0 && order[i] / kPart == order[i - 1] / kPart;
        helped += own ? 0 : 1;
        if (own) REQUIRE(order[i] == thread * kPart + i * kGrain);
        if (!own && same_part) REQUIRE(order[i] < order[i - 1]);
      }
    }
  }
  CHECK(helped > 0);
}

TEST_CASE("loops of more items than chunks can be numbered cover them all") {
  ThreadPool pool(2, 2);
  constexpr std::size_t kItems = (std::size_t{1} << 40) + 3;
  std::atomic<std::size_t> sum = 0;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) { sum += end - begin; };
  pool.parallel_for(kItems, std::size_t{1} << 8, work);  // 2^32 chunks of that grain
  CHECK(sum == kItems);
}

TEST_CASE("a watched pool tells of each loop of several threads, until it is watched no more") {
  ThreadPool pool(3, 3);
  std::vector<LoopTimes> seen;
  pool.set_watch([&](const LoopTimes& times) { seen.push_back(times); });
  auto work = [](std::size_t, std::size_t, std::size_t) {
    for (volatile int i = 0; i < 1000;) i = i + 1;
  };
  for (int i = 0; i < 100; ++i) pool.parallel_for(30, 1, work);
  pool.parallel_for(1, 1, work);  // stays on the calling thread
  REQUIRE(seen.size() == 100u);
  for (const LoopTimes& times : seen) {
    REQUIRE(times.threads.size() == 3u);
    CHECK(times.threads[0].begin != 0);  // the calling thread always comes
    CHECK(times.threads[0].end >= times.threads[0].begin);  // equal: the clock may be coarse
    for (const LoopTimes::Span& thread : times.threads) {
      if (thread.end == 0) continue;  // it did not come
      CHECK(thread.begin >= times.loop.begin);
      CHECK(thread.end >= thread.begin);
      CHECK(thread.end <= times.loop.end);
    }
  }
  pool.set_watch({});
  pool.parallel_for(30, 1, work);
  CHECK(seen.size() == 100u);
}
