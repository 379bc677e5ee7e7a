#include "device/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace tprimat::engine {
namespace {

TEST(Parallel, EveryIndexIsDoneOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      parallel_each(count, [&](int64_t index) { ++done[static_cast<size_t>(index)]; });
      for (const auto& each : done) EXPECT_EQ(each, 1);
    }
  }
}

TEST(Parallel, RangesCoverAllAndASumHasOneForEachThread) {
  set_thread_count(3);
  std::vector<int> seen(100);
  parallel_ranges(100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), 100);
  std::vector<int64_t> sums(3);
  parallel_ranges(100,
                  [&](int64_t begin, int64_t end, int range) { sums.at(static_cast<size_t>(range)) = end - begin; });
  EXPECT_EQ(sums, (std::vector<int64_t>{33, 33, 34}));
}

// Many short loops one after the other, where threads come late and find the next one.
TEST(Parallel, ShortLoopsDoNotMix) {
  set_thread_count(8);
  for (int64_t loop = 0; loop < 20000; ++loop) {
    std::atomic<int64_t> sum = 0;
    const int64_t count = 2 + loop % 5;
    parallel_each(count, [&](int64_t index) { sum += loop + index; });
    ASSERT_EQ(sum, loop * count + count * (count - 1) / 2);
  }
}

TEST(Parallel, ALoopInALoopAndOneOfAnotherThreadAreDone) {
  set_thread_count(4);
  std::atomic<int> inner = 0;
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) parallel_each(4, [&](int64_t) { parallel_each(4, [&](int64_t) { ++inner; }); });
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(inner, 2 * 200 * 16);
}

// One piece is not done before all others are: they must go to whoever is free, those of the busy thread's share too.
TEST(Parallel, PiecesOfABusyThreadAreTakenOver) {
  set_thread_count(2);
  std::atomic<int> begun = 0, done = 0;
  parallel_each(8, [&](int64_t) {
    if (begun++ == 0)
      while (done < 7) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done, 8);
}

TEST(Parallel, AnExceptionReachesTheCallerWhenAllPiecesAreDone) {
  set_thread_count(4);
  for (int loop = 0; loop < 100; ++loop) {
    std::atomic<int> done = 0;
    const auto work = [&](int64_t index) {
      ++done;
      if (index % 3 == 1) throw std::runtime_error("no memory");
    };
    EXPECT_THROW(parallel_each(16, work), std::runtime_error);
    EXPECT_EQ(done, 16);
    parallel_each(16, [&](int64_t) { ++done; });
    EXPECT_EQ(done, 32);
  }
}

}  // namespace
}  // namespace tprimat::engine
