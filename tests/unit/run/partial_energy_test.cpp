#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "result/result_file.h"
#include "suite_fixture.h"
#include "unit/run/shared_gpu.h"

// The energy of a run is that of all its devices, or it is absent.
namespace tprimat::suite {
namespace {

// One GPU that always draws 400 W.
class PoweredGpu : public SharedGpu {
 public:
  Reading read(int64_t, FaultLog&) const override {
    Reading reading = reading_of_now();
    reading.power_watts = 400.0;
    return reading;
  }
};

class PartialEnergy : public SuiteTest {
 protected:
  RunResult run_on(int64_t ranks, Whereabouts place = Whereabouts::children) {
    put_gpu();
    SuitePlan suite = plan({});
    PlannedRun& run = suite.runs.front();
    run.plan.command[2] = "100";  // ms per step: long enough for several readings
    run.plan.place = place;
    run.spec.parallel.data = ranks;
    SuiteContext context = around();
    context.gpu_libraries = {std::make_shared<PoweredGpu>()};
    SilentReporter reporter;
    return load_run_result(run_suite(suite, options_, context, reporter).outcomes.at(0).result_path);
  }
  static bool warns(const RunResult& result, const std::string& words) {
    return std::ranges::any_of(result.warnings,
                               [&](const std::string& each) { return each.find(words) != std::string::npos; });
  }
};

TEST_F(PartialEnergy, OfAllDevicesThereIsAFigure) {
  const RunResult result = run_on(1);
  ASSERT_TRUE(result.derived.joules_per_token);
  EXPECT_FALSE(warns(result, "devices were sampled"));
}

TEST_F(PartialEnergy, OfHalfOfTheDevicesThereIsNone) {
  const RunResult result = run_on(2);
  EXPECT_FALSE(result.derived.joules_per_token);
  EXPECT_TRUE(warns(result, "1 of the 2 devices were sampled, so there is no energy per token"));
}

TEST_F(PartialEnergy, OfOtherMachinesThereIsNone) {
  const RunResult result = run_on(2, Whereabouts::elsewhere);
  EXPECT_FALSE(result.derived.joules_per_token);
  EXPECT_TRUE(warns(result, "0 of the 2 devices were sampled, so there is no energy per token"));
}

}  // namespace
}  // namespace tprimat::suite
