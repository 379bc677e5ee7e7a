#include "device/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "device/parallel.h"

namespace tprimat::engine {
namespace {

TEST(ArenaTest, SlotsAreZeroedAlignedAndApart) {
  ArenaPlan plan;
  const auto bytes = plan.reserve<char>(Component::workspace, 3);
  const auto doubles = plan.reserve<double>(Component::batch, 100);
  const Arena arena(plan);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.at(doubles)) % 128, 0u);
  EXPECT_TRUE(std::all_of(arena.at(doubles), arena.at(doubles) + 100, [](double v) { return v == 0.0; }));
  std::fill_n(arena.at(bytes), 3, 'x');
  std::fill_n(arena.at(doubles), 100, 1.0);
  EXPECT_EQ(arena.at(bytes)[2], 'x');
  EXPECT_EQ(plan.bytes_by_component().at("batch"), 896u);
  EXPECT_GE(arena.bytes(), plan.total_bytes());
}

TEST(ArenaTest, TooMuchIsAnErrorThatSaysHowMuch) {
  ArenaPlan plan;
  plan.reserve<char>(Component::workspace, int64_t{1} << 60);
  try {
    const Arena arena(plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("GB of memory"), std::string::npos);
    EXPECT_EQ(error.status(), ExitStatus::work_failed);
  }
}

TEST(ParallelTest, RangesCoverEverythingOnce) {
  set_thread_count(3);
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<int> visits(static_cast<size_t>(count));
    parallel_ranges(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
    });
    EXPECT_EQ(std::accumulate(visits.begin(), visits.end(), int64_t{0}), count);
    EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](int n) { return n == 1; }));
  }
  set_thread_count(0);
}

}  // namespace
}  // namespace tprimat::engine
