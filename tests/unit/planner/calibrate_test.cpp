#include "planner/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/memory.h"
#include "planner_samples.h"

namespace tprimat::planner {
namespace {

std::vector<Observation> observe(const ParameterSet& truth) {
  std::vector<Observation> observations;
  const Machine machine = *find_machine("H100");
  for (const int64_t tensor : {1, 2, 4, 8})
    for (const int64_t length : {1024, 4096, 8192, 32768})
      for (const int64_t data : {1, 8, 64}) {
        Workload workload = sample_workload();
        workload.sequence_length = length;
        workload.global_batch = 256;
        workload.layout.tensor = tensor, workload.layout.data = data;
        observations.push_back(
            {workload, machine, predict_seconds(truth, machine, workload), estimate_memory(workload, truth).total()});
      }
  return observations;
}

double worst_error(const ParameterSet& parameters, const std::vector<Observation>& observations) {
  double worst = 0;
  for (const Observation& each : observations)
    worst = std::max(worst, std::fabs(predict_seconds(parameters, each.machine, each.workload) / each.seconds - 1));
  return worst;
}

ParameterSet changed(const std::string& name, double factor) {
  ParameterSet set = built_in_parameters();
  for (size_t i = 0; i < set.all().size(); ++i)
    if (set.all()[i].name == name) set.set_value(i, set.all()[i].value * factor);
  return set;
}

TEST(Calibrate, FindsTheMachineThatMadeTheMeasurements) {
  const ParameterSet truth = changed("product_16@hopper", 0.8);
  const auto observations = observe(truth);
  ASSERT_GT(worst_error(built_in_parameters(), observations), 0.1);
  const ParameterSet fitted = calibrate(built_in_parameters(), observations);
  EXPECT_LT(worst_error(fitted, observations), 0.05);
  // The scale of the whole step carries a part of it, as its prior allows.
  EXPECT_LT(fitted.at("product_16@hopper"), 0.95 * built_in_parameters().at("product_16@hopper"));
}

TEST(Calibrate, OneWrongRowBendsLittle) {
  auto observations = observe(built_in_parameters());
  observations.front().seconds *= 5;
  const ParameterSet fitted = calibrate(built_in_parameters(), observations);
  observations.erase(observations.begin());
  EXPECT_LT(worst_error(fitted, observations), 0.1);
}

TEST(Calibrate, WithoutMeasurementsNothingMoves) {
  const ParameterSet fitted = calibrate(built_in_parameters(), {});
  EXPECT_EQ(format_parameters(fitted), format_parameters(built_in_parameters()));
}

TEST(Calibrate, BeginsAtThePriorsWhateverTheValues) {
  const auto observations = observe(changed("product_16@hopper", 0.8));
  EXPECT_EQ(format_parameters(calibrate(built_in_parameters(), observations)),
            format_parameters(calibrate(changed("product_16@hopper", 0.5), observations)));
}

TEST(Calibrate, OtherArchitecturesAreLeftAlone) {
  const ParameterSet fitted = calibrate(built_in_parameters(), observe(changed("product_16@hopper", 0.8)));
  EXPECT_EQ(fitted.at("product_16@ampere"), built_in_parameters().at("product_16@ampere"));
  EXPECT_NE(fitted.at("product_16@hopper"), built_in_parameters().at("product_16@hopper"));
}

}  // namespace
}  // namespace tprimat::planner
