#include <gtest/gtest.h>

#include <random>

#include "drawn_workloads.h"

namespace tprimat::planner {
namespace {

constexpr int k_rounds = 2000;

TEST(Properties, MoreSequencesInAMicroBatchNeedNoLessMemory) {
  std::mt19937 random(5);
  for (int round = 0; round < k_rounds; ++round) {
    Workload workload = draw(random).workload;
    const double before = estimate_memory(workload, built_in_parameters()).total();
    ASSERT_TRUE(std::isfinite(before) && before > 0) << round;
    workload.layout.micro_batch *= 2, workload.global_batch *= 2;
    EXPECT_GE(estimate_memory(workload, built_in_parameters()).total(), before) << round;
  }
}

TEST(Properties, ShardingMoreNeedsNoMoreMemory) {
  std::mt19937 random(9);
  for (int round = 0; round < k_rounds; ++round) {
    Workload workload = draw(random).workload;
    // Our own trainer's buffers of exchange may take more than a stage saves.
    if (workload.family->fully_sharded || workload.family->id == "native") continue;
    double before = INFINITY;
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::gradients}) {
      workload.layout.sharding = sharding;
      const double bytes = estimate_memory(workload, built_in_parameters()).total();
      EXPECT_LE(bytes, before * (1 + 1e-12)) << round << ' ' << workload.family->id;
      before = bytes;
    }
  }
}

TEST(Properties, RecomputingAllTakesNoLessTime) {
  std::mt19937 random(13);
  for (int round = 0; round < k_rounds; ++round) {
    Drawn drawn = draw(random);
    drawn.workload.layout.recompute = Recompute::none;
    const double time = seconds_of(drawn.workload, drawn.machine);
    drawn.workload.layout.recompute = Recompute::full;
    EXPECT_GE(seconds_of(drawn.workload, drawn.machine), time * (1 - 1e-12)) << round;
  }
}

}  // namespace
}  // namespace tprimat::planner
