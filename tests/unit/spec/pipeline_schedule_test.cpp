#include "spec/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace tprimat {
namespace {

ParallelSpec pipeline(int64_t stages, int64_t chunks) {
  ParallelSpec layout;
  layout.pipeline = stages;
  layout.virtual_pipeline = chunks;
  return layout;
}

// Runs all stages against each other: an action waits for what it receives. Returns whether all end.
bool all_end(const ParallelSpec& layout, int64_t micro_batches) {
  using Kind = PipelineAction::Kind;
  const int64_t places = layout.pipeline * layout.virtual_pipeline;
  std::vector<std::vector<PipelineAction>> schedules;
  for (int stage = 0; stage < layout.pipeline; ++stage)
    schedules.push_back(pipeline_schedule(layout, stage, micro_batches));
  std::vector<size_t> at(schedules.size());
  std::set<std::tuple<Kind, int64_t, int64_t>> done;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < schedules.size(); ++stage) {
      if (at[stage] == schedules[stage].size()) continue;
      const PipelineAction action = schedules[stage][at[stage]];
      const int64_t place = action.chunk * layout.pipeline + static_cast<int64_t>(stage);
      const bool forward = action.kind == Kind::forward;
      const bool ready = forward
                             ? place == 0 || done.contains({Kind::forward, place - 1, action.micro})
                             : done.contains({Kind::forward, place, action.micro}) &&
                                   (place == places - 1 || done.contains({Kind::backward, place + 1, action.micro}));
      if (!ready) continue;
      EXPECT_TRUE(done.insert({action.kind, place, action.micro}).second) << "twice";
      ++at[stage];
      moved = true;
    }
  }
  return done.size() == static_cast<size_t>(2 * places * micro_batches);
}

TEST(PipelineScheduleTest, EveryMicroBatchPassesEveryChunkOnceAndNothingWaitsForEver) {
  for (const int64_t stages : {1, 2, 3, 4, 8})
    for (const int64_t chunks : {1, 2, 3})
      for (const int64_t micro : {1, 2, 3, 4, 8, 16, 24}) {
        if (chunks > 1 && (stages == 1 || micro % stages != 0)) continue;
        EXPECT_TRUE(all_end(pipeline(stages, chunks), micro)) << stages << " " << chunks << " " << micro;
      }
}

// What 1F1B is for: the first of PP stages holds PP micro batches, not all of them.
TEST(PipelineScheduleTest, HoldsNoMoreMicroBatchesThanItMust) {
  EXPECT_EQ(micro_batches_under_way(pipeline_schedule(pipeline(4, 1), 0, 32), 1), std::vector<int64_t>{4});
  EXPECT_EQ(micro_batches_under_way(pipeline_schedule(pipeline(4, 1), 3, 32), 1), std::vector<int64_t>{1});
  const auto interleaved = micro_batches_under_way(pipeline_schedule(pipeline(4, 2), 0, 32), 2);
  EXPECT_EQ(interleaved[0] + interleaved[1], 12);  // largest of each chunk: 11 at once, the warm-up of 10 and one more
}

TEST(PipelineScheduleTest, OneStageTakesTurns) {
  const auto schedule = pipeline_schedule(pipeline(1, 1), 0, 2);
  ASSERT_EQ(schedule.size(), 4u);
  EXPECT_EQ(schedule[0], (PipelineAction{PipelineAction::Kind::forward, 0, 0}));
  EXPECT_EQ(schedule[1], (PipelineAction{PipelineAction::Kind::backward, 0, 0}));
}

}  // namespace
}  // namespace tprimat
