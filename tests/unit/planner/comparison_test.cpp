#include "planner/plan_comparison.h"

#include <gtest/gtest.h>

#include "planner/planned_config.h"
#include "planner_samples.h"
#include "spec/model_catalogue.h"

namespace tprimat::planner {
namespace {

PlanCase sample_case(int64_t gpus, std::optional<double> price) {
  PlanCase each{sample_request(gpus), {}};
  each.terms.tokens = 15e12, each.terms.usd_per_gpu_hour = price, each.terms.tdp_watts = 700;
  return each;
}

PlanComparison compare_samples(const std::vector<int64_t>& counts, const ComparisonOptions& options) {
  std::vector<PlanCase> cases;
  for (const int64_t gpus : counts) cases.push_back(sample_case(gpus, 2.5));
  return compare_plans(cases, built_in_parameters(), options);
}

bool is_no_worse(const FrontierPlan& a, const FrontierPlan& b) {
  return a.days <= b.days && a.layout.memory_bytes <= b.layout.memory_bytes && *a.usd <= *b.usd &&
         *a.megawatt_hours <= *b.megawatt_hours;
}

TEST(ParetoFrontier, NoneBeatsAnother) {
  const PlanComparison comparison = compare_samples({8, 16, 32, 64}, {});
  ASSERT_GT(comparison.frontier.size(), 4);
  for (const FrontierPlan& a : comparison.frontier)
    for (const FrontierPlan& b : comparison.frontier) EXPECT_FALSE(&a != &b && is_no_worse(a, b) && !is_no_worse(b, a));
}

TEST(ParetoFrontier, HoldsTheQuickestAndTheCheapest) {
  const PlanComparison comparison = compare_samples({8, 16, 32, 64}, {});
  double days = 1e9, usd = 1e12;
  for (const PlanReport& plan : comparison.plans)
    days = std::min(days, *plan.training->days), usd = std::min(usd, *plan.training->usd);
  EXPECT_DOUBLE_EQ(comparison.frontier.front().days, days);
  EXPECT_TRUE(std::any_of(comparison.frontier.begin(), comparison.frontier.end(),
                          [&](const FrontierPlan& plan) { return *plan.usd == usd; }));
  EXPECT_TRUE(comparison.plans.back().ranked.front().on_frontier);
}

FrontierPlan made_plan(double days, double memory, std::optional<double> usd) {
  FrontierPlan plan;
  plan.days = days, plan.layout.memory_bytes = memory, plan.usd = usd;
  return plan;
}

TEST(ParetoFrontier, LeavesOutWhatIsBeaten) {
  const auto frontier = pareto_frontier({made_plan(3, 3, 3.0), made_plan(1, 3, 3.0), made_plan(3, 1, 9.0)});
  ASSERT_EQ(frontier.size(), 2);
  EXPECT_EQ(frontier[0].days, 1);
  EXPECT_EQ(frontier[1].layout.memory_bytes, 1);
}

// A cost that is not known of all does not keep a slower plan on the frontier, nor take a faster one off.
TEST(ParetoFrontier, WhatIsNotKnownOfAllDoesNotCount) {
  const auto frontier = pareto_frontier({made_plan(1, 1, std::nullopt), made_plan(2, 2, 0.5)});
  ASSERT_EQ(frontier.size(), 1);
  EXPECT_EQ(frontier[0].days, 1);
}

TEST(Comparison, TargetAndBudgetAreHeldTo) {
  ComparisonOptions options;
  const PlanComparison all = compare_samples({8, 16, 32, 64}, options);
  options.target_days = *all.plans[2].training->days * 1.001;
  options.budget_usd = *all.plans[3].training->usd * 1.001;
  const PlanComparison asked = compare_samples({8, 16, 32, 64}, options);
  ASSERT_EQ(asked.answers.size(), 2);
  EXPECT_EQ(*asked.answers[0].gpus, 32);
  EXPECT_EQ(*asked.answers[1].gpus, 64);
}

TEST(Comparison, WhatCannotBeAnsweredNamesTheNearest) {
  ComparisonOptions options;
  options.target_days = 1, options.budget_usd = 10;
  const PlanComparison asked = compare_samples({8, 16}, options);
  ASSERT_EQ(asked.answers.size(), 2);
  EXPECT_FALSE(asked.answers[0].found);
  EXPECT_NE(asked.answers[0].sentence.find("the fastest is 16 x"), std::string::npos) << asked.answers[0].sentence;
  EXPECT_FALSE(asked.answers[1].found);
  EXPECT_NE(asked.answers[1].sentence.find("the cheapest is"), std::string::npos) << asked.answers[1].sentence;
}

TEST(Comparison, EfficiencyIsAgainstTheFewestThatFit) {
  ComparisonOptions options;
  options.scaling = Scaling::strong;
  const PlanComparison comparison = compare_samples({1, 8, 64}, options);
  EXPECT_FALSE(comparison.plans[0].efficiency.has_value());  // one H100 is too small
  EXPECT_DOUBLE_EQ(*comparison.plans[1].efficiency, 1);
  EXPECT_LT(*comparison.plans[2].efficiency, 1);
  EXPECT_GT(*comparison.plans[2].efficiency, 0.5);
}

// Each line shows its own; without any there is no such column.
TEST(Comparison, ShowsTheIntervalOfEachStep) {
  PlanComparison comparison = compare_samples({8, 16}, {});
  comparison.plans[0].interval = PredictionInterval{.low = 0.5, .high = 2};
  comparison.plans[1].interval.reset();
  const std::string interval = format_interval(comparison.plans[0]);
  EXPECT_NE(interval.find(" to "), std::string::npos) << interval;
  EXPECT_EQ(format_interval(comparison.plans[1]), "");
  const std::string shown = render_plan_comparison(comparison);
  EXPECT_NE(shown.find("80 %"), std::string::npos) << shown;
  EXPECT_NE(shown.find(interval), std::string::npos) << shown;
  comparison.plans[0].interval.reset();
  EXPECT_EQ(render_plan_comparison(comparison).find("80 %"), std::string::npos);
}

TEST(Comparison, WhatNeverEndsIsNoPlan) {
  PlanCase each = sample_case(64, 2.5);
  each.terms.reliability.failure_gpu_hours = 1;
  each.terms.reliability.restart_seconds = 6e6;
  ComparisonOptions options;
  options.target_days = 100, options.budget_usd = 1e9;
  const PlanComparison comparison = compare_plans({each}, built_in_parameters(), options);
  ASSERT_TRUE(comparison.plans.front().training.has_value());
  EXPECT_FALSE(comparison.plans.front().training->days.has_value());
  EXPECT_FALSE(comparison.plans.front().training->usd.has_value());
  EXPECT_FALSE(comparison.ends());
  EXPECT_TRUE(comparison.frontier.empty());
  for (const PlanAnswer& answer : comparison.answers)
    EXPECT_NE(answer.sentence.find("failures come faster than restarts complete"), std::string::npos)
        << answer.sentence;
  EXPECT_NE(render_plan_comparison(comparison).find("15T tokens never finish"), std::string::npos)
      << render_plan_comparison(comparison);
}

TEST(Comparison, WhereNothingIsLegalABatchIsNamed) {
  PlanCase each = sample_case(37, 2.5);
  ComparisonOptions options;
  options.target_days = 3, options.budget_usd = 1e9;
  const PlanComparison comparison = compare_plans({each}, built_in_parameters(), options);
  EXPECT_EQ(comparison.plans.front().batch_multiple, 37);
  for (const PlanAnswer& answer : comparison.answers)
    EXPECT_NE(answer.sentence.find("choose a GBS divisible by 37, such as 148"), std::string::npos) << answer.sentence;
}

// Each figure of a sentence is an estimate of a layout that the search made.
TEST(Reasons, NameWhatWouldNotFit) {
  PlanRequest request = sample_request(64);
  request.machine.memory_bytes = 40e9;
  const SearchOutcome outcome = search_layouts(request, built_in_parameters(), 1);
  ASSERT_FALSE(outcome.ranked.empty());
  const auto reasons = explain_choice(request, built_in_parameters(), outcome.ranked.front(), 5);
  ASSERT_FALSE(reasons.empty());
  ASSERT_LE(reasons.size(), 5);
  EXPECT_NE(reasons.front().find("would need"), std::string::npos) << reasons.front();
}

TEST(Reasons, WhereAllFitOnlyTimesAreCompared) {
  PlanRequest request = sample_request(64);
  request.machine.memory_bytes = 1e15;
  const SearchOutcome outcome = search_layouts(request, built_in_parameters(), 1);
  for (const std::string& reason : explain_choice(request, built_in_parameters(), outcome.ranked.front(), 5))
    EXPECT_EQ(reason.find("would need"), std::string::npos) << reason;
}

// A choice is held against the fastest layout with another one, whatever else that changes: CP 2 with twice the
// micro-batch is as fast as CP 1, so CP 1 is no reason.
TEST(Reasons, HoldAChoiceAgainstTheBestOfTheOthers) {
  PlanRequest request = sample_request(64);
  request.global_batch = 512;
  const SearchOutcome outcome = search_layouts(request, built_in_parameters(), 1 << 20);
  ASSERT_FALSE(outcome.ranked.empty());
  const RankedLayout& best = outcome.ranked.front();
  const auto other = std::find_if(outcome.ranked.begin(), outcome.ranked.end(), [&](const RankedLayout& plan) {
    return plan.workload.layout.pipeline != best.workload.layout.pipeline;
  });
  ASSERT_NE(other, outcome.ranked.end());
  const std::string layout = format_layout(describe_plan(*other, request));
  bool is_named = false;
  for (const std::string& reason : explain_choice(request, built_in_parameters(), best, 9)) {
    EXPECT_EQ(reason.find("CP 1 rather than 2"), std::string::npos) << reason;
    is_named |= reason.find("PP ") != std::string::npos && reason.find(layout) != std::string::npos;
  }
  EXPECT_TRUE(is_named) << layout;
}

TEST(PlannedConfig, StatesTheLayoutAndItsBatch) {
  const PlanRequest request = sample_request(64);
  PlanLine line;
  line.tensor = 2, line.data = 32, line.micro_batch = 1, line.accumulation = 4;
  line.sharding = Sharding::optimizer, line.recompute = Recompute::full;
  const std::string text = render_planned_config(request, line, {}, {});
  EXPECT_NE(text.find("nvd: {TP: 2, PP: 1, VP: 1, CP: 1, DP: 32, GA: 4, SP: true, ZeRO: 1}"), std::string::npos)
      << text;
  EXPECT_NE(text.find("nvd: {precision: bf16, recompute: full}"), std::string::npos) << text;
  EXPECT_NE(text.find("name: \"llama3.1_8b\""), std::string::npos) << text;  // the same shape
}

// A key of the configuration may mean another model in another file: the shape is stated, unless the catalogue has it.
TEST(PlannedConfig, StatesTheShapeOfAConfiguredModel) {
  PlanRequest request = sample_request(64);
  request.shape = *find_model("llama3.1_8b");
  request.shape.name = "llama";
  PlanLine line;
  line.data = 64;
  const PlannedModel model{"llama", "llama", {{"dataset_path", "/data/wiki"}}};
  const std::string known = render_planned_config(request, line, model, Framework::mega);
  EXPECT_NE(known.find("  llama:\n    name: \"llama\"\n"), std::string::npos) << known;
  EXPECT_NE(known.find("dataset_path: \"/data/wiki\""), std::string::npos) << known;
  EXPECT_EQ(known.find("num_layers"), std::string::npos) << known;
  EXPECT_NE(known.find("frameworks: [mega]"), std::string::npos) << known;
  request.shape.num_layers = 16;
  const std::string own = render_planned_config(request, line, model, {});
  EXPECT_NE(own.find("name: \"planned llama\""), std::string::npos) << own;
  EXPECT_NE(own.find("num_layers: 16\n"), std::string::npos) << own;
  EXPECT_EQ(own.find("frameworks"), std::string::npos) << own;
}

}  // namespace
}  // namespace tprimat::planner
