#include "planner/schedule.h"

#include <gtest/gtest.h>

#include <random>

namespace tprimat::planner {
namespace {

std::vector<ChunkSeconds> equal_places(const Pipeline& pipeline, ChunkSeconds each) {
  return std::vector<ChunkSeconds>(static_cast<size_t>(pipeline.stages * pipeline.chunks), each);
}

// 1F1B written down once more, rank by rank in the order of time: p - s forward passes, then one of each.
double slow_one_forward_one_backward(int64_t stages, int64_t micro_batches, const std::vector<ChunkSeconds>& places) {
  const auto p = static_cast<size_t>(stages), m = static_cast<size_t>(micro_batches);
  std::vector<std::vector<double>> forward(p, std::vector<double>(m, -1)), backward = forward;
  std::vector<double> now(p);
  std::vector<size_t> forwards(p), backwards(p);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < p; ++s) {
      const bool forward_next = forwards[s] < m && forwards[s] - backwards[s] < p - s;
      const size_t k = forward_next ? forwards[s] : backwards[s];
      if (!forward_next && k == m) continue;
      double ready = 0;
      if (forward_next && s > 0) ready = forward[s - 1][k];
      if (!forward_next && s + 1 < p) ready = backward[s + 1][k];
      if (ready < 0) continue;
      now[s] = std::max(now[s], ready) + (forward_next ? places[s].forward : places[s].backward + places[s].weights);
      (forward_next ? forward : backward)[s][k] = now[s];
      ++(forward_next ? forwards : backwards)[s];
      moved = true;
    }
  }
  return *std::max_element(now.begin(), now.end());
}

// (p - 1) / v times a rank's time for a micro-batch (arXiv 2104.04473, section 2.2).
TEST(Schedule, OfEqualStagesIsTheClosedForm) {
  const ChunkSeconds each{1, 1.2, 0.8};
  for (const int64_t stages : {2, 3, 4, 8, 16})
    for (const int64_t chunks : {1, 2, 4, 7})
      for (const int64_t rounds : {1, 2, 5, 40}) {
        const Pipeline pipeline{stages, chunks, static_cast<double>(rounds * stages), false};
        const double rank = each.total() * static_cast<double>(chunks);
        const double bubble = rank * static_cast<double>(stages - 1) / static_cast<double>(chunks);
        EXPECT_NEAR(simulate_pipeline(pipeline, equal_places(pipeline, each)), pipeline.micro_batches * rank + bubble,
                    1e-9)
            << stages << ' ' << chunks << ' ' << rounds;
      }
}

// What is simulated of many micro-batches says how long all of them take, however unequal the stages are.
TEST(Schedule, OfUnequalStagesIsThatOfASlowSimulation) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  for (int round = 0; round < 300; ++round) {
    const int64_t stages = 2 + round % 7, micro_batches = 1 + round % 53;
    std::vector<ChunkSeconds> places;
    for (int64_t place = 0; place < stages; ++place)
      places.push_back({seconds(random), seconds(random), seconds(random)});
    const double expected = slow_one_forward_one_backward(stages, micro_batches, places);
    EXPECT_NEAR(simulate_pipeline({stages, 1, static_cast<double>(micro_batches), false}, places), expected,
                0.02 * expected)
        << stages << ' ' << micro_batches;
  }
}

// B and W count apart here
// (arXiv 2401.10241, table 2: ZB-H1's bubble is (p - 1) (F + B - W)).
TEST(Schedule, DelayedWeightsFillABubbleAsTheirPaperSays) {
  const ChunkSeconds each{1, 1, 1};
  for (const int64_t stages : {2, 4, 8})
    for (const double micro_batches : {8.0, 16.0, 64.0}) {
      if (micro_batches < static_cast<double>(stages)) continue;
      const Pipeline pipeline{stages, 1, micro_batches, true};
      const double bubble = simulate_pipeline(pipeline, equal_places(pipeline, each)) - micro_batches * each.total();
      EXPECT_NEAR(bubble, static_cast<double>(stages - 1) * (1 + 1 - 1), 1e-9) << stages << ' ' << micro_batches;
    }
}

TEST(Schedule, DelayedWeightsNeverTakeLonger) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  for (int round = 0; round < 200; ++round) {
    const int64_t stages = 2 + round % 7;
    std::vector<ChunkSeconds> places;
    for (int64_t place = 0; place < stages; ++place)
      places.push_back({seconds(random), seconds(random), seconds(random)});
    const double micro_batches = 1 + round % 40;
    EXPECT_LE(simulate_pipeline({stages, 1, micro_batches, true}, places),
              simulate_pipeline({stages, 1, micro_batches, false}, places) + 1e-9);
  }
}

// Four million actions and more are not simulated: neither time nor memory grows without bound.
TEST(Schedule, OfAnEndlessPipelineIsItsLeast) {
  const Pipeline pipeline{10000, 1, 64000, false};
  const std::vector<ChunkSeconds> places = equal_places(pipeline, {1, 1, 1});
  EXPECT_DOUBLE_EQ(simulate_pipeline(pipeline, places), least_seconds(pipeline, places));
  EXPECT_DOUBLE_EQ(least_seconds(pipeline, places), 3 * (64000.0 + 9999));
}

TEST(Schedule, IsNeverFasterThanItsLeast) {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  for (int round = 0; round < 200; ++round) {
    Pipeline pipeline{2 + round % 5, 1 + round % 3, 0, false};
    pipeline.micro_batches = static_cast<double>(pipeline.stages * (1 + round % 7));
    pipeline.delays_weights = pipeline.chunks == 1 && round % 2 == 0;
    std::vector<ChunkSeconds> places;
    for (int64_t place = 0; place < pipeline.stages * pipeline.chunks; ++place)
      places.push_back({seconds(random), seconds(random), seconds(random)});
    EXPECT_GE(simulate_pipeline(pipeline, places), least_seconds(pipeline, places) * (1 - 1e-12)) << round;
  }
}

TEST(Schedule, AFractionOfAMicroBatchLiesBetweenItsNeighbours) {
  const Pipeline whole{4, 1, 9, false}, more{4, 1, 10, false}, between{4, 1, 9.5, false};
  const std::vector<ChunkSeconds> places = equal_places(whole, {1, 1, 1});
  EXPECT_GT(simulate_pipeline(between, places), simulate_pipeline(whole, places));
  EXPECT_LT(simulate_pipeline(between, places), simulate_pipeline(more, places));
}

}  // namespace
}  // namespace tprimat::planner
