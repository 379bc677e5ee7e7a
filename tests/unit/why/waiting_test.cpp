#include "why/waiting.h"

#include <gtest/gtest.h>

#include "unit/why/rank_traces.h"

namespace tprimat::results {
namespace {

using test::RankTrace;

// Three ranks with clocks of their own; rank 1 computes 4 ms longer, so the others wait 4 ms of their 5 ms.
std::vector<logs::Trace> make_late_ranks() {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1, 2}) {
    RankTrace trace(rank, 1000.0 * static_cast<double>(rank));
    for (int64_t step = 0; step < 3; ++step)
      trace.begin_step(step)
          .work("aten::mm", rank == 1 ? 14 : 10)
          .collective("all_reduce", "dp", 3, rank == 1 ? 1 : 5)
          .end_step()
          .idle(2);
    ranks.push_back(trace.trace());
  }
  return ranks;
}

TEST(Waiting, IsWhatACallTakesBeyondTheShortest) {
  const Waiting waiting = match_collectives(make_late_ranks());
  ASSERT_EQ(waiting.ranks.size(), 3u);
  EXPECT_EQ(waiting.ranks[0].host_events[1], 4'000'000);
  EXPECT_EQ(waiting.ranks[0].host_events[0], 0);
  EXPECT_EQ(waiting.ranks[0].waiting, 12'000'000);
  EXPECT_EQ(waiting.ranks[0].transfer, 3'000'000);
  EXPECT_EQ(waiting.ranks[0].matched_calls, 3);
  EXPECT_EQ(waiting.ranks[1].waiting, 0);
  EXPECT_EQ(waiting.ranks[1].last_calls, 3);
  EXPECT_EQ(waiting.ranks[2].unmatched, 0);
  EXPECT_TRUE(waiting.notes.empty());
}

TEST(Waiting, NamesTheLateRankAndItsLongerWork) {
  const Waiting waiting = match_collectives(make_late_ranks());
  ASSERT_TRUE(waiting.late.has_value());
  EXPECT_EQ(waiting.late->index, 1u);
  EXPECT_DOUBLE_EQ(waiting.late->share, 1.0);
  EXPECT_NEAR(waiting.late->seconds, 0.004, 1e-12);
  ASSERT_EQ(waiting.late->longer.size(), 1u);
  EXPECT_EQ(waiting.late->longer[0].what, "aten::mm");
  EXPECT_NEAR(waiting.late->longer[0].seconds, 0.004, 1e-12);
  EXPECT_NEAR(waiting.late->longer[0].other_seconds, 0.010, 1e-12);
}

TEST(Waiting, ASleepIsNoRecordedOperation) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1}) {
    RankTrace trace(rank);
    trace.begin_step(7).work("aten::mm", 10).idle(rank == 0 ? 6 : 0);
    trace.collective("all_reduce", "dp", 2, rank == 0 ? 1 : 7).end_step();
    ranks.push_back(trace.trace());
  }
  const Waiting waiting = match_collectives(ranks);
  ASSERT_TRUE(waiting.late.has_value());
  EXPECT_EQ(waiting.late->index, 0u);
  ASSERT_FALSE(waiting.late->longer.empty());
  EXPECT_EQ(waiting.late->longer[0].what, "no recorded operation");
}

TEST(Waiting, EqualRanksWaitForNobody) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1, 2, 3})
    ranks.push_back(
        RankTrace(rank).begin_step(0).work("aten::mm", 10).collective("all_reduce", "dp", 4, 2).end_step().trace());
  const Waiting waiting = match_collectives(ranks);
  EXPECT_FALSE(waiting.late.has_value());
  EXPECT_EQ(waiting.ranks[3].waiting, 0);
}

TEST(Waiting, CallsOfUnequalNumberStayUnmatched) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1}) {
    RankTrace trace(rank);
    trace.begin_step(0).collective("all_reduce", "dp", 2, 2);
    if (rank == 0) trace.collective("all_reduce", "dp", 2, 9);
    ranks.push_back(trace.end_step().trace());
  }
  const Waiting waiting = match_collectives(ranks);
  EXPECT_EQ(waiting.ranks[0].waiting, 0);
  EXPECT_EQ(waiting.ranks[0].unmatched, 11'000'000);
  ASSERT_EQ(waiting.notes.size(), 1u);
  EXPECT_EQ(waiting.notes[0],
            "all_reduce of dp: 3 calls have no counterpart, since ranks made different numbers of them");
}

// Two tensor-parallel pairs, 0 with 1 and 2 with 3, whose collectives bear one name.
TEST(Waiting, GroupsOfOneNameAreToldApartByTheirEnds) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1, 2, 3}) {
    RankTrace trace(rank, 100.0 * static_cast<double>(rank));
    trace.begin_step(0);
    for (int i = 0; i < 8; ++i) {
      const double pause = rank < 2 ? 1 + i : 9 - i;  // the pairs are not in step
      const bool late = rank % 2 == 1;
      trace.work("aten::mm", late ? pause + 1 : pause).collective("all_gather", "tp", 2, late ? 1 : 2);
    }
    ranks.push_back(trace.end_step().trace());
  }
  const Waiting waiting = match_collectives(ranks);
  EXPECT_EQ(waiting.ranks[0].waiting, 8'000'000);
  EXPECT_EQ(waiting.ranks[1].waiting, 0);
  EXPECT_EQ(waiting.ranks[2].waiting, 8'000'000);
  EXPECT_EQ(waiting.ranks[3].last_calls, 8);
}

TEST(Waiting, AMessageWaitsBeyondTheShortestOfItsSize) {
  std::vector<logs::Trace> ranks;
  ranks.push_back(
      RankTrace(0).begin_step(0).collective("send", "pp", 2, 1).collective("send", "pp", 2, 3).end_step().trace());
  ranks.push_back(RankTrace(1)
                      .begin_step(0)
                      .collective("receive", "pp", 2, 5)
                      .collective("receive", "pp", 2, 2)
                      .end_step()
                      .trace());
  const Waiting waiting = match_collectives(ranks);
  EXPECT_EQ(waiting.ranks[0].waiting, 2'000'000);
  EXPECT_EQ(waiting.ranks[1].waiting, 3'000'000);
}

TEST(Waiting, UnequalExpertsShowBetweenAllToAlls) {
  std::vector<logs::Trace> ranks;
  for (const int64_t rank : {0, 1}) {
    const double experts = rank == 0 ? 6 : 2;
    ranks.push_back(RankTrace(rank)
                        .begin_step(0)
                        .collective("all_to_all", "ep", 2, 1)
                        .work("experts", experts)
                        .collective("all_to_all", "ep", 2, rank == 0 ? 1 : 5)
                        .work("attention", 3)
                        .end_step()
                        .trace());
  }
  const Waiting waiting = match_collectives(ranks);
  const auto imbalance = find_expert_imbalance(ranks, waiting);
  ASSERT_TRUE(imbalance.has_value());
  EXPECT_DOUBLE_EQ(imbalance->slowest_over_mean, 1.5);
  EXPECT_EQ(imbalance->slowest, 0u);
  EXPECT_NEAR(imbalance->waiting_seconds, 0.002, 1e-12);
  EXPECT_EQ(waiting.late->longer.at(0).what, "experts");
}

TEST(Waiting, OneTraceHasNone) {
  const std::vector<logs::Trace> ranks{RankTrace(0).collective("all_reduce", "dp", 2, 2).trace()};
  const Waiting waiting = match_collectives(ranks);
  ASSERT_EQ(waiting.ranks.size(), 1u);
  EXPECT_TRUE(waiting.ranks[0].host_events.empty());
}

}  // namespace
}  // namespace tprimat::results
