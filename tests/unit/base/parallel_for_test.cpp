#include "base/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace tprimat {
namespace {

TEST(ParallelFor, DoesEachOnce) {
  for (const size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> done(count);
    parallel_for(count, [&](size_t i) { ++done[i]; });
    for (const auto& each : done) EXPECT_EQ(each, 1);
  }
}

TEST(ParallelFor, RethrowsTheFirstComplaint) {
  EXPECT_THROW(parallel_for(100,
                            [](size_t i) {
                              if (i == 3) throw std::runtime_error("three");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace tprimat
