#include "planner/refine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "own_samples.h"

namespace tprimat::planner {
namespace {

TEST(Refine, AFitToOneLeavesOtherMachinesAndProgramsAlone) {
  Observation own = *observe_results({sample_gpu_result("H100", 9)}, {})[0].observed;
  own.seconds = 1.2 * predict_seconds(built_in_parameters(), own.machine, own.workload);
  const Refinement refined = refine(built_in_parameters(), {own});
  const ParameterSet& fitted = refined.parameters;
  const auto error = [&](const ParameterSet& p) {
    return std::fabs(predict_seconds(p, own.machine, own.workload) / own.seconds - 1);
  };
  EXPECT_LT(error(fitted), 0.4 * error(built_in_parameters())) << "one run is enough";
  ASSERT_FALSE(refined.moved.empty());
  EXPECT_EQ(refined.moved.front().name, "product_16@machine:H100-SXM-80GB");
  EXPECT_GT(std::fabs(refined.moved.front().deviations), 0.5);
  for (const MovedParameter& each : refined.moved)
    EXPECT_TRUE(each.name.ends_with("@machine:H100-SXM-80GB")) << each.name;
  for (const PlanParameter& each : built_in_parameters().all())
    EXPECT_EQ(fitted.at(each.name), each.value) << each.name << ": others have it too";
  for (const Machine& other : machines())
    for (const Family& family : families()) {
      if (other.id == own.machine.id || family.own_trainer) continue;
      Workload w = sample_workload();
      w.family = &family, w.precision = PlanPrecision::fp16;  // which all have
      EXPECT_EQ(predict_seconds(fitted, other, w), predict_seconds(built_in_parameters(), other, w)) << other.id;
    }
}

TEST(Refine, ProgramsMoveWhereTheyMay) {
  const Observation own = *observe_results({sample_gpu_result("H100", 9)}, {})[0].observed;
  const Refinement refined = refine(built_in_parameters(), {own}, FitScope::all);
  EXPECT_NE(refined.parameters.at("scale@megatron_core"), built_in_parameters().at("scale@megatron_core"));
  EXPECT_EQ(refined.parameters.at("product_16@hopper"), built_in_parameters().at("product_16@hopper"));
}

TEST(Refine, AMachinesParametersAreWrittenAndReadBack) {
  const Observation own = *observe_results({sample_gpu_result("H100", 9)}, {})[0].observed;
  const Refinement refined = refine(built_in_parameters(), {own});
  const ParameterSet read = parse_parameters(format_parameters(refined.parameters), "own.tsv");
  EXPECT_NEAR(
      predict_seconds(read, own.machine, own.workload) / predict_seconds(refined.parameters, own.machine, own.workload),
      1, 1e-3);
  const Refinement again = refine(read, {own});
  EXPECT_EQ(again.parameters.all().size(), read.all().size()) << "no second copies";
  EXPECT_EQ(format_parameters(calibrate(read, {})), format_parameters(built_in_parameters()))
      << "tables say nothing of one machine";
}

TEST(Refine, AProbedMachineBeginsAtWhatWasMeasured) {
  Machine probed = *find_machine("H100");
  probed.measured.product_16 = 0.6 * probed.peak_16;
  const NamedResult named = sample_gpu_result("H100", 9);
  const auto seen = observe_results({named}, {}, {probed});
  ASSERT_TRUE(seen[0].observed) << seen[0].missing;
  EXPECT_EQ(seen[0].observed->machine.measured.product_16, probed.measured.product_16);
  for (const MovedParameter& each : refine(built_in_parameters(), {*seen[0].observed}).moved)
    if (each.name == "product_16@machine:H100-SXM-80GB") EXPECT_NEAR(each.before, 0.6, 1e-9);
}

}  // namespace
}  // namespace tprimat::planner
