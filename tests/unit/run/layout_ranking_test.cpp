#include "run/layout_ranking.h"

#include <gtest/gtest.h>

#include "text/json_fields.h"

namespace tprimat::suite {
namespace {

// Layouts that differ in DP and MBS, with these predicted seconds.
LayoutPlan plan_of(const std::vector<double>& seconds) {
  LayoutPlan plan{Platform::cpu, Framework::native, "gpt", 1024, seconds.size(), {}};
  for (size_t i = 0; i < seconds.size(); ++i) {
    planner::Layout layout{.data = 2, .micro_batch = static_cast<int64_t>(i) + 1};
    plan.layouts.push_back({layout, name_layout(layout), seconds[i]});
  }
  return plan;
}

RunOutcome outcome_of(const LayoutPlan& plan, size_t layout, double seconds, int64_t run = 1) {
  RunOutcome outcome;
  outcome.model = "gpt";
  outcome.strategy = plan.layouts[layout].strategy;
  outcome.run = run;
  outcome.step_seconds = seconds;
  return outcome;
}

RunOutcome failed(RunOutcome outcome, RunStatus status, const std::string& reason) {
  outcome.status = status;
  outcome.reason = reason;
  return outcome;
}

std::vector<int64_t> measured_ranks(const LayoutRanking& ranking) {
  std::vector<int64_t> ranks;
  for (const RankedLayout& each : ranking.layouts) ranks.push_back(each.measured_rank.value_or(0));
  return ranks;
}

TEST(LayoutRanking, RanksByTheMeasuredTime) {
  const LayoutPlan plan = plan_of({1.0, 1.1, 1.2});
  const LayoutRanking ranking =
      rank_layouts(plan, {outcome_of(plan, 0, 1.5), outcome_of(plan, 1, 1.2), outcome_of(plan, 2, 1.8)});
  EXPECT_EQ(measured_ranks(ranking), (std::vector<int64_t>{2, 1, 3}));
  EXPECT_DOUBLE_EQ(*ranking.layouts[0].over_predicted, 1.5);
  EXPECT_DOUBLE_EQ(*ranking.first_choice_behind, 0.25);
  EXPECT_DOUBLE_EQ(*ranking.rank_correlation, 0.5);
  EXPECT_EQ(ranking.judgement,
            "The fastest measured layout is DP 2, MBS 2 (predicted rank 2); the planner's first choice, DP 2, MBS 1, "
            "takes 25.0 % longer; the rank correlation of the 3 layouts is 0.50.");
  const std::string text = render_layout_ranking(ranking);
  EXPECT_NE(text.find("native gpt on cpu: the planner's layouts, predicted and measured"), std::string::npos) << text;
  EXPECT_NE(text.find("measured/predicted"), std::string::npos);
  EXPECT_EQ(text.find("VP"), std::string::npos) << "no layout has any";
  EXPECT_EQ(text.find("spread"), std::string::npos) << "one run shows none";
}

TEST(LayoutRanking, TheFirstChoiceIsTheBest) {
  const LayoutPlan plan = plan_of({1.0, 2.0});
  const LayoutRanking ranking = rank_layouts(plan, {outcome_of(plan, 0, 1.1), outcome_of(plan, 1, 1.9)});
  EXPECT_FALSE(ranking.rank_correlation) << "the ranks of two say nothing";
  EXPECT_DOUBLE_EQ(*ranking.first_choice_behind, 0);
  EXPECT_EQ(ranking.judgement, "The planner's first choice, DP 2, MBS 1, is the fastest measured layout.");
}

TEST(LayoutRanking, EqualTimesShareARank) {
  const LayoutPlan plan = plan_of({1.0, 1.0 + 1e-7, 1.2, 1.3});
  const LayoutRanking ranking = rank_layouts(
      plan, {outcome_of(plan, 0, 2.0), outcome_of(plan, 1, 1.5), outcome_of(plan, 2, 1.5), outcome_of(plan, 3, 3.0)});
  EXPECT_EQ(ranking.layouts[0].predicted_rank, 1);
  EXPECT_EQ(ranking.layouts[1].predicted_rank, 1);
  EXPECT_EQ(ranking.layouts[2].predicted_rank, 3);
  EXPECT_EQ(measured_ranks(ranking), (std::vector<int64_t>{3, 1, 1, 4}));
  EXPECT_TRUE(ranking.judgement.starts_with("The fastest measured layout is DP 2, MBS 2 (predicted rank 1)"))
      << ranking.judgement;
}

TEST(LayoutRanking, WhereAllAreEqualNothingCorrelates) {
  const LayoutPlan plan = plan_of({1.0, 1.1, 1.2});
  const LayoutRanking ranking =
      rank_layouts(plan, {outcome_of(plan, 0, 2.0), outcome_of(plan, 1, 2.0), outcome_of(plan, 2, 2.0)});
  EXPECT_EQ(measured_ranks(ranking), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_FALSE(ranking.rank_correlation);
  EXPECT_TRUE(ranking.judgement.starts_with("The planner's first choice, DP 2, MBS 1, is the fastest"));
}

TEST(LayoutRanking, RunsWithoutAFigureHaveNoRankAndSayWhy) {
  const LayoutPlan plan = plan_of({1.0, 1.1, 1.2, 1.3});
  const LayoutRanking ranking = rank_layouts(
      plan, {failed(outcome_of(plan, 0, 0.1), RunStatus::failed, "out of memory on rank 1"), outcome_of(plan, 1, 1.5),
             failed(outcome_of(plan, 2, 0.2), RunStatus::invalid, "loss is NaN"), outcome_of(plan, 3, 1.4)});
  EXPECT_EQ(measured_ranks(ranking), (std::vector<int64_t>{0, 2, 0, 1}));
  EXPECT_FALSE(ranking.first_choice_behind);
  EXPECT_FALSE(ranking.rank_correlation);
  EXPECT_EQ(ranking.judgement,
            "The fastest measured layout is DP 2, MBS 4 (predicted rank 4); the planner's first choice, DP 2, MBS 1, "
            "was not measured.");
  const std::string text = render_layout_ranking(ranking);
  EXPECT_NE(text.find("DP 2, MBS 1, run 1 failed: out of memory on rank 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("DP 2, MBS 3, run 1 invalid: loss is NaN\n"), std::string::npos) << text;
}

TEST(LayoutRanking, RepetitionsCountByTheirMedian) {
  const LayoutPlan plan = plan_of({1.0, 1.1});
  const LayoutRanking ranking =
      rank_layouts(plan, {outcome_of(plan, 0, 1.0), outcome_of(plan, 1, 1.02), outcome_of(plan, 0, 1.04, 2),
                          outcome_of(plan, 1, 1.0, 2), outcome_of(plan, 0, 1.2, 3),
                          failed(outcome_of(plan, 1, 9.0, 3), RunStatus::failed, "killed by signal 9 (SIGKILL)")});
  EXPECT_DOUBLE_EQ(*ranking.layouts[0].measured_seconds, 1.04);
  EXPECT_EQ(ranking.layouts[0].runs_measured, 3);
  EXPECT_NEAR(*ranking.layouts[0].spread, 0.2 / 1.04, 1e-12);
  EXPECT_EQ(ranking.layouts[1].runs_measured, 2);
  EXPECT_EQ(ranking.layouts[1].without_figure, std::vector<std::string>{"run 3 failed: killed by signal 9 (SIGKILL)"});
  EXPECT_EQ(measured_ranks(ranking), (std::vector<int64_t>{2, 1}));
  EXPECT_NE(ranking.judgement.find("takes 3.0 % longer, within the spread of the runs"), std::string::npos)
      << ranking.judgement;
  EXPECT_NE(render_layout_ranking(ranking).find("spread"), std::string::npos);
}

TEST(LayoutRanking, RunsOfOthersDoNotCount) {
  const LayoutPlan plan = plan_of({1.0});
  RunOutcome other = outcome_of(plan, 0, 5.0);
  other.model = "llama";
  RunOutcome another = outcome_of(plan, 0, 6.0);
  another.framework = Framework::mega;
  EXPECT_EQ(rank_layouts(plan, {other, another}).judgement,
            "No layout was measured, so the planner's ranking is not judged.");
  EXPECT_EQ(rank_layouts(plan, {other, outcome_of(plan, 0, 2.0)}).judgement,
            "Only DP 2, MBS 1 was measured, so the planner's ranking is not judged.");
}

TEST(LayoutRanking, IsJsonToo) {
  const LayoutPlan plan = plan_of({1.0, 1.1});
  const Json json = to_json(rank_layouts(plan, {outcome_of(plan, 0, 1.5)}));
  EXPECT_EQ(json["framework"], "native");
  EXPECT_EQ(json["layouts"][0]["measured_rank"], 1);
  EXPECT_EQ(json["layouts"][0]["measured_step_time_seconds"], 1.5);
  EXPECT_EQ(json["layouts"][1]["micro_batch_size"], 2);
  EXPECT_FALSE(json["layouts"][1].contains("measured_rank"));
  EXPECT_FALSE(json.contains("rank_correlation"));
}

}  // namespace
}  // namespace tprimat::suite
