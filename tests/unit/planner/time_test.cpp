#include <gtest/gtest.h>

#include "planner_samples.h"
#include "spec/flop_breakdown.h"

namespace tprimat::planner {
namespace {

TEST(TimeProduct, LargeAlignedProductsReachTheRate) {
  const double n = 1 << 20, flops = 2 * n * n * n;
  EXPECT_NEAR(time_product(n, n, n, {1e15, 200, 0.9}), flops / 1e15, 1e-3 * flops / 1e15);
}

TEST(TimeProduct, HalfTheRateWhereOneDimensionIsTheSaturation) {
  const double n = 1 << 24;
  EXPECT_NEAR(time_product(n, n, 256, {1e15, 256, 1}), 2 * 2 * n * n * 256 / 1e15, 1e-3 * 4 * n * n * 256 / 1e15);
}

TEST(TimeProduct, TilesAreFilledAndOddWidthsCost) {
  EXPECT_DOUBLE_EQ(time_product(128, 128, 4096, {1e15, 0, 1}), time_product(64, 128, 4096, {1e15, 0, 1}));
  EXPECT_GT(time_product(4096, 4096, 1800, {1e15, 0, 0.9}), time_product(4096, 4096, 1856, {1e15, 0, 0.9}));
}

TEST(StepTime, NeverBeatsThePeak) {
  Workload workload = sample_workload();
  const Machine machine = *find_machine("H100");
  for (const int64_t tensor : {1, 2, 4, 8})
    for (const int64_t micro : {1, 2, 4}) {
      workload.layout.tensor = tensor, workload.layout.data = 8 / tensor, workload.layout.micro_batch = micro;
      const double flops = break_down(workload.shape, {8192, true, 0}).total() * 8192 * 128;
      EXPECT_GT(seconds_of(workload, machine), flops / (8 * machine.peak_16)) << tensor << ' ' << micro;
    }
}

TEST(StepTime, PartsAddUpAndNoneIsNegative) {
  Workload workload = sample_workload();
  workload.layout.pipeline = 4, workload.layout.chunks = 2, workload.layout.context = 2;
  const Machine machine = *find_machine("H100");
  const StepTime t = time_step(workload, machine, resolve_rates(built_in_parameters(), machine, workload));
  for (const double part : {t.products, t.attention, t.elementwise, t.ends, t.recompute, t.tensor, t.context,
                            t.transfers, t.data, t.bubble, t.optimizer, t.overhead})
    EXPECT_GE(part, 0);
  EXPECT_GT(t.bubble, 0);
  EXPECT_GT(t.tensor, 0);
  EXPECT_NEAR(t.tokens_per_second_per_gpu(workload) * t.total() * 64, 128.0 * 8192, 1);
}

// Doubling a bandwidth or a peak never slows a step, whatever the layout.
TEST(StepTime, FasterHardwareIsNeverSlower) {
  const Machine machine = *find_machine("H100");
  for (double Machine::*const figure :
       {&Machine::memory_bandwidth, &Machine::link_bandwidth, &Machine::network_bandwidth})
    for (const int64_t tensor : {1, 8})
      for (const int64_t pipeline : {1, 4})
        for (const int64_t data : {1, 16}) {
          Workload workload = sample_workload();
          workload.layout.tensor = tensor, workload.layout.pipeline = pipeline, workload.layout.data = data;
          Machine faster = machine;
          faster.*figure *= 2;
          EXPECT_LE(seconds_of(workload, faster), seconds_of(workload, machine)) << tensor << pipeline << data;
        }
}

TEST(StepTime, RecomputationCostsAForwardPass) {
  Workload workload = sample_workload();
  const Machine machine = *find_machine("H100");
  const double none = seconds_of(workload, machine);
  workload.layout.recompute = Recompute::full;
  EXPECT_GT(seconds_of(workload, machine), 1.2 * none);
  EXPECT_LT(seconds_of(workload, machine), 1.4 * none);
}

TEST(StepTime, MoreChunksShortenTheBubble) {
  Workload workload = sample_workload();
  workload.layout.pipeline = 4;
  const Machine machine = *find_machine("H100");
  const Rates rates = resolve_rates(built_in_parameters(), machine, workload);
  const double one = time_step(workload, machine, rates).bubble;
  workload.layout.chunks = 8;
  EXPECT_NEAR(time_step(workload, machine, rates).bubble, one / 8, 0.1 * one / 8);  // the last stage has the head
}

// Over all stages together a pipeline does no less of the head's work than one stage does.
TEST(StepTime, APipelineDoesTheWholeHead) {
  Workload workload = sample_workload();
  const Machine machine = *find_machine("H100");
  const Rates rates = resolve_rates(built_in_parameters(), machine, workload);
  const double whole = time_step(workload, machine, rates).ends;
  for (const int64_t stages : {2, 4, 8, 16}) {
    workload.layout.pipeline = stages;
    EXPECT_GE(static_cast<double>(stages) * time_step(workload, machine, rates).ends, (1 - 1e-9) * whole) << stages;
  }
}

}  // namespace
}  // namespace tprimat::planner
