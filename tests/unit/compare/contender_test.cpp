#include "compare/contender.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

TEST(Contender, LabelsGrowUntilTheyDiffer) {
  LoadedRuns runs = two_runs(1.0);
  runs.runs.push_back(sample_run("c.json", Platform::nvd, Framework::nemo, 1.0));
  runs.runs.push_back(sample_run("d.json", Platform::nvd, Framework::nemo, 1.0));
  runs.runs[0].result.precision = Precision::fp8;
  const auto contenders = compare_runs(runs, {}).groups[0].contenders;
  EXPECT_EQ(contenders[0].label, "NVIDIA NeMo fp8");
  EXPECT_EQ(contenders[1].label, "AMD Primus");
  EXPECT_EQ(contenders[2].label, "NVIDIA NeMo bf16 c");
  EXPECT_EQ(contenders[3].label, "NVIDIA NeMo bf16 d");
}

TEST(Contender, FigureOfRunsIsTheirMeanWithStudentsInterval) {
  Contender contender{"A", "", {}, {}};
  for (const double time : {1.0, 1.1, 1.2})
    contender.runs.push_back(sample_run("a", Platform::nvd, Framework::nemo, time));
  const auto figure = read_figure(contender, *find_metric("mean_step_time"));
  EXPECT_NEAR(figure->value, 1.1, 1e-3);
  EXPECT_NEAR(std::log(*figure->high / figure->value), 4.303 * 0.1 / 1.1 / std::sqrt(3), 2e-3);
  EXPECT_NEAR(*figure->low * *figure->high, figure->value * figure->value, 1e-9);
  contender.runs.pop_back();
  const auto two = read_figure(contender, *find_metric("mean_step_time"));
  EXPECT_NEAR(std::log(*two->high / two->value), 12.706 * 0.05 / 1.05, 3e-2) << "two runs show little";
}

// The mean of the rates 1 and 1/3 would be 0.67 of the steady one, and the mean of their times says 0.5.
TEST(Change, FiguresOfUnsteadyRunsHaveTheRatioOfTheVerdict) {
  LoadedRuns runs;
  for (const auto& [path, time] : {std::pair("a.json", 1.0), {"b_r1.json", 1.0}, {"b_r2.json", 3.0}})
    runs.runs.push_back(sample_run(path, Platform::nvd, Framework::nemo, time));
  const Comparison comparison = compare_runs(runs, {.baseline = "a.json"});
  const ModelGroup& group = comparison.groups[0];
  for (const char* key : {"tokens_per_second_per_gpu", "tokens_per_second", "mean_step_time"}) {
    const Change change = measure_change(group, group.pairs[0], *find_metric(key));
    ASSERT_TRUE(change.before && change.after && change.share) << key;
    EXPECT_NEAR(change.after->value / change.before->value, 1 + change.share->value, 1e-9) << key;
    EXPECT_NEAR(change.after->value - change.before->value, change.difference->value, 1e-6 * change.after->value)
        << key;
  }
  const auto rate = read_figure(group.contenders[1], metrics().front());
  EXPECT_NEAR(rate->value / read_figure(group.contenders[0], metrics().front())->value, 0.5, 1e-3);
  EXPECT_LT(*rate->low, rate->value);
  EXPECT_GT(*rate->high, rate->value);
}

}  // namespace
}  // namespace tprimat::results
