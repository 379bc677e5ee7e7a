#include "run/plan_layouts.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "config/layout_rules.h"
#include "run/forecast.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

// A processor of four threads that two ranks share, in two runs of every layout.
class PlanLayoutsTest : public SuiteTest {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    machine_.cpu.usable_threads = 4;
    machine_.memory_bytes = 64e9;
    experiment_.platforms[Platform::cpu].num_devices = 2;
    experiment_.runs = 2;
    request_.own_program = "tprimat";
    request_.presence = Presence::any;
  }

  void use_gpus(int64_t count) {
    experiment_.platforms = {{Platform::nvd, PlatformSetup{}}};
    experiment_.platforms[Platform::nvd].device_model = "H100";
    experiment_.platforms[Platform::nvd].num_devices = count;
    experiment_.sequence_length = 128;
    experiment_.global_batch_size = 64;
    request_.platform = Platform::nvd;
  }

  SuitePlan plan_top(size_t top) {
    context_.emplace(around());
    context_->measure_peak = [this](Precision, int64_t) {
      ++measured_;
      return MeasuredPeak{{"measured:cpu:bf16", 4e11, "test", 2e10, "test"}, {}};
    };
    layouts_.emplace(top, *context_, planner_, reporter_);
    request_.choose_layouts = [this](const PlannedRun& training) { return layouts_->choose(training); };
    return plan_suite(experiment_, request_, machine_);
  }

  const LayoutPlan& only_plan() {
    EXPECT_EQ(layouts_->plans().size(), 1u);
    return layouts_->plans().front();
  }

  std::string refusal(size_t top) {
    try {
      plan_top(top);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  planner::PlannerSettings planner_;
  SilentReporter reporter_;
  std::optional<SuiteContext> context_;
  std::optional<LayoutPlanner> layouts_;
  int measured_ = 0;
};

TEST(ParseTop, TakesACountAlone) {
  EXPECT_EQ(parse_top("top=3"), 3u);
  EXPECT_EQ(parse_top("top=1000"), 1000u);
  for (const char* wrong :
       {"", "top", "top=", "top=0", "top=-1", "top=x", "top=3x", "top=1001", "best=3", "3", " top=3"})
    EXPECT_FALSE(parse_top(wrong)) << wrong;
}

TEST(NameLayout, NamesWhatDiffers) {
  planner::Layout layout{.data = 2};
  EXPECT_EQ(name_layout(layout), "plan_dp2_mbs1");
  EXPECT_EQ(print_layout_sizes(layout), "DP 2, MBS 1");
  layout.tensor = 4, layout.pipeline = 2, layout.chunks = 3, layout.context = 8, layout.micro_batch = 16;
  layout.sharding = planner::Sharding::weights, layout.recompute = Recompute::full, layout.ends_as_layers = true;
  EXPECT_EQ(name_layout(layout), "plan_tp4_pp2_vp3_cp8_dp2_zero3_mbs16_full_ends");
  EXPECT_EQ(print_layout_sizes(layout), "TP 4, PP 2, VP 3, CP 8, DP 2, MBS 16, ZeRO 3, full recompute, ends as layers");
  planner::Layout sparse{.pipeline = 4, .data = 16, .expert = 8};
  EXPECT_EQ(name_layout(sparse, true), "plan_pp4_ep8_dp16_mbs1_listed");
  EXPECT_EQ(print_layout_sizes(sparse), "PP 4, EP 8, DP 16, MBS 1");
}

TEST_F(PlanLayoutsTest, LayoutsTakeTurns) {
  const SuitePlan suite = plan_top(3);
  const LayoutPlan& plan = only_plan();
  ASSERT_EQ(plan.layouts.size(), 3u);
  ASSERT_EQ(suite.runs.size(), 6u);
  std::set<std::string> results;
  for (size_t i = 0; i < 6; ++i) {
    const PlannedRun& run = suite.runs[i];
    const PlannedLayout& planned = plan.layouts[i % 3];
    EXPECT_EQ(run.spec.parallel.strategy, planned.strategy);
    EXPECT_EQ(run.spec.parallel.ranks(), 2);
    EXPECT_EQ(run.spec.micro_batch_size, planned.layout.micro_batch);
    EXPECT_EQ(run.spec.recompute, planned.layout.recompute);
    EXPECT_EQ(run.spec.steps, 20);
    EXPECT_EQ(run.spec.threads, 2);
    EXPECT_EQ(run.run, i < 3 ? 1 : 2);
    EXPECT_NE(run.plan.result_path.find(planned.strategy + (i < 3 ? "_r1.json" : "_r2.json")), std::string::npos);
    results.insert(run.plan.result_path);
  }
  EXPECT_EQ(results.size(), 6u);
}

TEST_F(PlanLayoutsTest, TheResultStoresTheSamePrediction) {
  experiment_.optimizer.moments = MomentFormat::bf16;
  experiment_.optimizer.master_weights = false;
  const SuitePlan suite = plan_top(5);
  PeakSource peaks(*context_, reporter_);
  double last = 0;
  for (size_t i = 0; i < 5; ++i) {
    const double planned = only_plan().layouts[i].step_seconds;
    const auto predicted = predict(suite.runs[i], machine_, planner_, peaks.find(suite.runs[i])->peak);
    EXPECT_NEAR(*predicted->step_time_seconds / planned, 1, 1e-9);
    EXPECT_GT(planned, last * (1 - 2e-5)) << "fastest first";
    last = planned;
  }
}

TEST_F(PlanLayoutsTest, ThePeakIsMeasuredOnceForPlanAndRuns) {
  const SuitePlan suite = plan_top(2);
  EXPECT_EQ(measured_, 1);
  SuiteContext later = *context_;
  later.measured_peaks = layouts_->measured_peaks();
  PeakSource peaks(later, reporter_);
  EXPECT_TRUE(peaks.find(suite.runs.front()));
  EXPECT_EQ(measured_, 1);
}

TEST_F(PlanLayoutsTest, WhereFewerExistAllAreTaken) {
  plan_top(1000);
  const LayoutPlan& plan = only_plan();
  EXPECT_GT(plan.layouts.size(), 10u);
  EXPECT_LT(plan.layouts.size(), 1000u);
  EXPECT_EQ(plan.asked, 1000u);
  std::set<std::string> names;
  for (const PlannedLayout& each : plan.layouts) {
    names.insert(each.strategy);
    const LayoutTask task{experiment_.models[0].spec, 2, each.layout.micro_batch, 4, 32};
    EXPECT_TRUE(list_broken_rules(task, planner::parallel_spec(each.layout)).empty()) << each.strategy;
  }
  EXPECT_EQ(names.size(), plan.layouts.size());
}

TEST_F(PlanLayoutsTest, OnlyLayoutsThatFitAreTaken) {
  plan_top(1000);
  const size_t all = only_plan().layouts.size();
  const SuitePlan whole = plan_top(1000);
  double most = 0;
  for (const PlannedRun& run : whole.runs) most = std::max(most, forecast(run, machine_, planner_).needed);
  machine_.memory_bytes = most - 1;
  const SuitePlan suite = plan_top(1000);
  EXPECT_LT(only_plan().layouts.size(), all);
  EXPECT_TRUE(find_misfits(suite, machine_, planner_).empty());
  machine_.memory_bytes = 1e4;
  EXPECT_NE(refusal(3).find("legal layouts of native gpt on cpu fits into"), std::string::npos) << refusal(3);
}

TEST_F(PlanLayoutsTest, AProfileIsOfTheSameLayouts) {
  plan_top(2);
  request_.profile = ProfileRequest();
  const SuitePlan profiles = plan_suite(experiment_, request_, machine_);
  ASSERT_EQ(profiles.runs.size(), 2u);
  EXPECT_EQ(profiles.runs[0].spec.parallel.strategy, only_plan().layouts[0].strategy);
  EXPECT_EQ(profiles.runs[0].profile->first_step, 11);
  EXPECT_NE(profiles.runs[0].profile->trace, profiles.runs[1].profile->trace);
}

TEST_F(PlanLayoutsTest, WhatIsNotPredictedIsRefused) {
  request_.frameworks = {Framework::tran};
  EXPECT_NE(refusal(3).find("it does not predict Hugging Face Transformers on a CPU"), std::string::npos) << refusal(3);
  request_.frameworks = {Framework::native};
  experiment_.platforms[Platform::cpu].num_devices = 7;
  EXPECT_NE(refusal(3).find("no layout of native gpt on cpu is legal with a batch of 4 on 7 devices"),
            std::string::npos)
      << refusal(3);
  use_gpus(2);
  EXPECT_NE(refusal(3).find("the native trainer was not measured on GPUs"), std::string::npos) << refusal(3);
}

TEST_F(PlanLayoutsTest, AnUnpredictedFrameworkDoesNotStopTheOthers) {
  request_.frameworks = {Framework::tran, Framework::native};
  const SuitePlan suite = plan_top(2);
  EXPECT_EQ(suite.runs.size(), 4u);
  EXPECT_EQ(suite.unavailable.size(), 1u);
}

TEST_F(PlanLayoutsTest, EveryFrameworkGetsLayoutsThatItAccepts) {
  use_gpus(8);
  experiment_.models[0].spec.num_layers = 8;
  experiment_.paths["megatron.installation"] = "/opt/megatron";
  request_.frameworks = {Framework::fsdp, Framework::mega};
  const SuitePlan suite = plan_top(4);
  EXPECT_EQ(suite.unavailable.size(), 0u);
  EXPECT_EQ(suite.runs.size(), 16u);
  EXPECT_EQ(layouts_->plans().size(), 2u);
  for (const PlannedRun& run : suite.runs) {
    EXPECT_EQ(run.spec.parallel.ranks(), 8);
    if (run.framework == Framework::fsdp) EXPECT_EQ(run.spec.parallel.data, 8);
  }
  EXPECT_EQ(measured_, 0) << "no processor is measured for GPUs";
}

TEST_F(PlanLayoutsTest, AFrameworksRefusalIsTold) {
  use_gpus(8);
  request_.frameworks = {Framework::mega};
  experiment_.seed = 0;
  EXPECT_NE(refusal(3).find("needs a seed above 0"), std::string::npos) << refusal(3);
}

}  // namespace
}  // namespace tprimat::suite
