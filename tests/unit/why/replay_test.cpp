#include "why/replay.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "unit/why/pipeline_fixture.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

TEST(Replay, BeginsAfterWhatItWaitsFor) {
  ReplayGraph graph;
  for (int i = 0; i < 5; ++i) graph.add_operation();
  graph.add_edge(0, 1);
  graph.add_edge(2, 3);
  graph.add_group(std::vector<uint32_t>{1, 3});
  graph.add_edge(3, 4);
  graph.finish("test");
  const Replay times = replay(graph, std::vector<double>{1, 0.5, 3, 0.25, 1}, std::vector<double>{0, 0, 0, 0, 0.125});
  EXPECT_DOUBLE_EQ(times.begin[1], 1);  // is ready, and waits in the group
  EXPECT_DOUBLE_EQ(times.end[1], 3.5);  // from the begin of the last
  EXPECT_DOUBLE_EQ(times.end[3], 3.25);
  EXPECT_DOUBLE_EQ(times.begin[4], 3.375);
  EXPECT_EQ(graph.group(1).size(), 2u);
  EXPECT_EQ(graph.before(4).size(), 1u);
}

TEST(Replay, RefusesACircle) {
  ReplayGraph graph;
  for (int i = 0; i < 2; ++i) graph.add_operation();
  graph.add_edge(0, 1);
  graph.add_edge(1, 0);
  EXPECT_THROW(graph.finish("test"), Error);
}

TEST(Replay, OneForwardOneBackwardHasTheKnownBubble) {
  for (const int32_t stages : {1, 2, 4, 8})
    for (const int32_t micro_batches : {1, 2, 8, 16}) {
      const PipelineReplay pipeline = make_pipeline_replay(
          test::make_pipeline({.stages = stages, .micro_batches = micro_batches, .steps = 2}), "test");
      const std::vector<double> steps = replay_steps(pipeline, pipeline.durations);
      ASSERT_EQ(steps.size(), 2u);
      // One micro-batch takes 3 s on each stage: (m + p - 1) of them, of which p - 1 are the bubble.
      EXPECT_DOUBLE_EQ(steps[1], 3.0 * (micro_batches + stages - 1)) << stages << " " << micro_batches;
      EXPECT_DOUBLE_EQ(pipeline.measured[0], steps[0]);
    }
}

// Sends and receives around the computations of two stages; the second worker posts its receive early and waits.
std::vector<WorkerOperation> make_messages() {
  const auto row = [](int32_t stage, OperationKind kind, double begin, double duration) {
    WorkerOperation operation;
    operation.stage = stage;
    operation.kind = kind;
    operation.begin = begin;
    operation.duration = duration;
    if (kind == OperationKind::forward_compute || kind == OperationKind::backward_compute) operation.micro_batch = 0;
    return operation;
  };
  return {row(0, OperationKind::forward_compute, 0, 1),   row(0, OperationKind::forward_send, 1, 0.5),
          row(0, OperationKind::backward_recv, 1.5, 3.5), row(0, OperationKind::backward_compute, 5, 2),
          row(0, OperationKind::optimizer, 7, 1),         row(1, OperationKind::forward_recv, 0.25, 1.25),
          row(1, OperationKind::forward_compute, 1.5, 1), row(1, OperationKind::backward_compute, 2.5, 2),
          row(1, OperationKind::backward_send, 4.5, 0.5), row(1, OperationKind::optimizer, 5, 1)};
}

TEST(Replay, ATransferBeginsWhenBothSidesHave) {
  const PipelineReplay pipeline = make_pipeline_replay(make_messages(), "test");
  EXPECT_DOUBLE_EQ(pipeline.durations[5], 0.5);  // 1.25 s, of which 0.75 s wait for the send
  EXPECT_DOUBLE_EQ(pipeline.durations[2], 0.5);
  EXPECT_DOUBLE_EQ(pipeline.delays[5], 0.25);
  EXPECT_DOUBLE_EQ(replay_steps(pipeline, pipeline.durations)[0], 8.0);
  std::vector<double> faster = pipeline.durations;
  faster[7] = 0.5;  // the backward computation of the last stage
  EXPECT_DOUBLE_EQ(replay_steps(pipeline, faster)[0], 6.5);
}

TEST(Replay, MissingMessagesAreNamed) {
  auto rows = make_messages();
  rows.erase(rows.begin() + 1);
  try {
    make_pipeline_replay(rows, "table.csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "table.csv: stage 0 of replica 0 has 0 of forward_send where 1 are needed in step 0\n"
                 "  record every operation of every worker");
  }
}

TEST(Replay, AWorkerThatComputesTwoThingsAtOnceIsRefused) {
  auto rows = test::make_pipeline({.stages = 2, .micro_batches = 2});
  for (WorkerOperation& row : rows) row.duration *= 3;  // doctored: they overlap now
  EXPECT_THROW(make_pipeline_replay(rows, "table.csv"), Error);
}

TEST(Replay, AStageThatIsMissingIsNamed) {
  auto rows = test::make_pipeline({.stages = 3, .micro_batches = 2});
  std::erase_if(rows, [](const WorkerOperation& row) { return row.stage == 1; });
  EXPECT_THROW(make_pipeline_replay(rows, "table.csv"), Error);
}

TEST(Replay, ShorterOperationsNeverMakeALongerStep) {
  std::mt19937 random(27);  // NOLINT: the same cases each time
  std::uniform_real_distribution<double> seconds(0.1, 4.0), factor(0.0, 1.0);
  for (int round = 0; round < 50; ++round) {
    test::PipelineShape shape{.stages = 1 + round % 5, .micro_batches = 1 + round % 7, .dp_ranks = 1 + round % 2};
    shape.seconds = [&](const WorkerOperation&) { return seconds(random); };
    const PipelineReplay pipeline = make_pipeline_replay(test::make_pipeline(shape), "test");
    std::vector<double> shorter = pipeline.durations;
    for (double& duration : shorter) duration *= factor(random);
    const double before = replay_steps(pipeline, pipeline.durations)[0];
    EXPECT_NEAR(before, pipeline.measured[0], 1e-9);
    EXPECT_LE(replay_steps(pipeline, shorter)[0], before);
  }
}

}  // namespace
}  // namespace tprimat::results
