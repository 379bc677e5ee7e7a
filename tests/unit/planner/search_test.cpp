#include "planner/search.h"

#include <gtest/gtest.h>

#include "planner_samples.h"

namespace tprimat {
namespace {

constexpr double k_alike = 2e-5;  // layouts closer than this are sorted by simplicity

SearchOutcome all_layouts(const PlanRequest& request) { return search_layouts(request, built_in_parameters(), 100000); }

TEST(Search, EveryLayoutMultipliesOut) {
  const PlanRequest request = sample_request(64);
  const SearchOutcome outcome = all_layouts(request);
  ASSERT_GT(outcome.fitting, 50);
  for (const RankedLayout& plan : outcome.ranked) {
    const Layout& l = plan.workload.layout;
    EXPECT_EQ(l.num_gpus(), 64);
    EXPECT_EQ(request.global_batch % (l.data * l.micro_batch), 0);
    EXPECT_EQ(request.shape.model.num_layers % (l.pipeline * l.chunks), 0);
    EXPECT_EQ(request.shape.model.num_attention_heads % l.tensor, 0);
  }
}

TEST(Search, IsSortedAndTheFrontierIsUndominated) {
  const SearchOutcome outcome = all_layouts(sample_request(64));
  for (size_t i = 1; i < outcome.ranked.size(); ++i)
    EXPECT_LE(outcome.ranked[i - 1].time.total(), outcome.ranked[i].time.total() * (1 + k_alike));
  ASSERT_FALSE(outcome.frontier.empty());
  EXPECT_EQ(outcome.frontier.front().time.total(), outcome.ranked.front().time.total());
  for (size_t i = 1; i < outcome.frontier.size(); ++i) {
    EXPECT_GE(outcome.frontier[i].time.total() * (1 + k_alike), outcome.frontier[i - 1].time.total());
    EXPECT_LT(outcome.frontier[i].memory.total(), outcome.frontier[i - 1].memory.total());
  }
}

TEST(Search, MoreMemoryNeverMakesAFittingLayoutNotFit) {
  PlanRequest request = sample_request(16);
  int64_t before = 0;
  for (const double gigabytes : {16.0, 24.0, 40.0, 80.0, 141.0, 288.0}) {
    request.machine.memory_bytes = gigabytes * 1e9;
    const SearchOutcome outcome = all_layouts(request);
    EXPECT_GE(outcome.fitting, before) << gigabytes;
    before = outcome.fitting;
  }
  EXPECT_GT(before, 0);
}

TEST(Search, WhereNothingFitsTheSmallestIsNamed) {
  PlanRequest request = sample_request(1);
  const SearchOutcome outcome = all_layouts(request);
  EXPECT_EQ(outcome.fitting, 0);
  ASSERT_TRUE(outcome.smallest.has_value());
  EXPECT_GT(outcome.smallest->memory.total(), request.machine.memory_bytes);
}

}  // namespace
}  // namespace tprimat
