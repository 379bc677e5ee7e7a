#include "why/pipeline_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "example_data.h"
#include "unit/why/pipeline_fixture.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

TEST(PipelineReport, HasTheBubbleOfTheSchedule) {
  const PipelineReport report = report_pipeline(
      make_pipeline_replay(test::make_pipeline({.stages = 4, .micro_batches = 12, .dp_ranks = 2}), "test"));
  EXPECT_EQ(report.micro_batches, 12);
  EXPECT_EQ(report.workers.size(), 8u);
  EXPECT_NEAR(report.bubble, 3.0 / 15, 1e-12);
  EXPECT_NEAR(report.balanced_bubble, 3.0 / 15, 1e-12);
  EXPECT_DOUBLE_EQ(report.workers[5].forward_seconds, 12);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0],
            "With equally fast workers, the bubble of 12 micro-batches on 4 stages would be 20.0 %. Use more "
            "micro-batches or virtual stages.");
}

TEST(PipelineReport, NamesTheSlowWorker) {
  test::PipelineShape shape{.stages = 2, .micro_batches = 32, .dp_ranks = 2};
  shape.seconds = [](const WorkerOperation& row) { return row.stage == 0 && row.dp_rank == 1 ? 2.0 : 1.0; };
  const PipelineReport report = report_pipeline(make_pipeline_replay(test::make_pipeline(shape), "test"));
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_TRUE(report.findings[1].starts_with("Stage 0 of replica 1 is slow")) << report.findings[1];
  EXPECT_NE(render_pipeline(report).find("replica 1"), std::string::npos);
}

// Megatron's interleaved schedule of two stages with two chunks each and four micro-batches.
TEST(PipelineReport, ChunksOfRecordsAreNumberedAsMegatronDoes) {
  logs::PipelineRecords records;
  records.layout.world_size = 2;
  records.layout.pipeline = 2;
  records.layout.virtual_stages = 2;
  for (int64_t rank = 0; rank < 2; ++rank) {
    logs::PipelineIteration iteration;
    iteration.iteration = 1;
    for (int64_t i = 0; i < 8; ++i) {
      iteration.forward.push_back({i, i + 1});
      iteration.backward.push_back({8 + i, 9 + i});
    }
    records.ranks.push_back({rank, {iteration}});
  }
  const std::vector<WorkerOperation> rows = operations_of(records);
  ASSERT_EQ(rows.size(), 32u);
  const auto place = [&](size_t i) { return std::pair(rows[i].chunk, rows[i].micro_batch); };
  EXPECT_EQ(place(1), std::pair(0, 1));
  EXPECT_EQ(place(2), std::pair(1, 0));
  EXPECT_EQ(place(5), std::pair(0, 3));
  EXPECT_EQ(place(8), std::pair(1, 0));  // the first backward one
  EXPECT_EQ(place(15), std::pair(0, 3));
  EXPECT_EQ(rows[16].stage, 1);
  make_pipeline_replay(rows, "test");  // everything that is sent is received
}

struct RankFact {
  int64_t iteration;
  double total, bubbles[8];
};

// "bubble 35.5 % of 3193.6 ms" and so on, of an independent script.
constexpr RankFact k_facts[] = {{2, 3.1936, {35.5, 36.1, 35.7, 35.4, 34.5, 35.7, 36.4, 29.9}},
                                {7, 3.2379, {36.4, 37.0, 36.4, 35.6, 35.6, 35.0, 37.4, 30.0}},
                                {20, 3.2654, {36.4, 37.4, 35.0, 36.5, 35.7, 35.0, 36.1, 30.2}}};

TEST(PipelineReport, HasTheBubblesOfRecordedRanks) {
  const std::string folder = TPRIMAT_SHARED_DATA "/trace_pairs/pipeline/primus_pp8";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  ASSERT_TRUE(is_pipeline_input(folder));
  const PipelineReplay all = load_pipeline(folder);
  for (const RankFact& fact : k_facts) {
    auto rows = all.operations;
    std::erase_if(rows, [&](const WorkerOperation& row) { return row.step != fact.iteration; });
    const PipelineReport report = report_pipeline(make_pipeline_replay(rows, folder));
    EXPECT_NEAR(report.step_seconds / fact.total, 1, 0.001);
    for (size_t rank = 0; rank < 8; ++rank)
      EXPECT_NEAR(report.workers.at(rank).bubble * 100 / fact.bubbles[rank], 1, 0.01) << fact.iteration << " " << rank;
  }
}

TEST(PipelineReport, SaysWhatTheLastStageOfRecordedRanksCosts) {
  const std::string folder = TPRIMAT_SHARED_DATA "/trace_pairs/pipeline/primus_pp8";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  const PipelineReport report = report_pipeline(load_pipeline(folder));
  EXPECT_EQ(report.steps, 19);  // without the warm-up
  EXPECT_EQ(report.micro_batches, 16);
  EXPECT_NEAR(report.step_seconds, 3.2683, 0.003);
  EXPECT_NEAR(report.balanced_bubble, 7.0 / 23, 0.001);  // (p - 1) / (m + p - 1)
  EXPECT_EQ(report.stragglers.stages.front().name, "stage 7");
  EXPECT_GT(report.stragglers.last_stage_share.value(), 0.5);
  EXPECT_LT(std::fabs(report.stragglers.replay_error()), 0.02);
}

}  // namespace
}  // namespace tprimat::results
