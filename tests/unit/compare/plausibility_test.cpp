#include "compare/plausibility.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compare/audit.h"
#include "compare/compare_runs.h"
#include "result/peak.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

RunResult busy_run() {
  RunResult run = noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 1).result;
  summarise_run(run, {.peak = catalogue_peak(run.gpu_info.device_name, Precision::bf16), .usd_per_hour = 16});
  return run;
}

RunResult with_power(const char* source, double watts, double utilisation) {
  RunResult run = busy_run();
  TelemetrySummary all;
  all.source = source;
  all.mean_power_watts = watts;
  all.mean_utilisation = utilisation;
  all.energy_joules = watts * 59;
  all.energy_valid = true;
  run.telemetry = {all};
  summarise_run(run, stored_options(run));
  return run;
}

// Eight H100 of 700 W each.
TEST(ImpossiblePower, IsBelowOrAboveWhatTheDevicesDraw) {
  EXPECT_FALSE(find_impossible_power(with_power("nvml", 70, 0.9)).empty()) << "70 W for eight H100";
  EXPECT_FALSE(find_impossible_power(with_power("nvml", 70, 0)).empty()) << "idle devices train nothing";
  EXPECT_FALSE(find_impossible_power(with_power("nvml", 50e3, 0.9)).empty());
  EXPECT_FALSE(find_impossible_power(with_power("nvml", -5, 0.9)).empty());
  EXPECT_FALSE(find_impossible_power(with_power("nvml:0", 3000, 0.9)).empty()) << "one device";
  EXPECT_FALSE(find_impossible_power(with_power("ipmi", 50e3, 0.9)).empty());
  EXPECT_TRUE(find_impossible_power(with_power("nvml", 4800, 0.98)).empty());
  EXPECT_TRUE(find_impossible_power(with_power("nvml", 1000, 0.3)).empty()) << "a run that waits";
  EXPECT_TRUE(find_impossible_power(with_power("ipmi", 10.2e3, 0.9)).empty()) << "the whole machine";
}

TEST(ImpossiblePower, OfTheEnergyAlone) {
  RunResult run = with_power("nvml", 4800, 0.9);
  run.telemetry[0].energy_joules = 48 * 59;
  summarise_run(run, stored_options(run));
  EXPECT_FALSE(find_impossible_power(run).empty());
}

TEST(ImpossiblePrice, IsNoneThatAnybodyPays) {
  const auto priced = [](double usd) {
    RunResult run = busy_run();
    run.derived.usd_per_hour = usd;
    return find_impossible_price(run);
  };
  for (const double usd : {0.0, -16.0, 1e-4, 1e5}) EXPECT_FALSE(priced(usd).empty()) << usd;
  for (const double usd : {2.0, 16.0, 98.0}) EXPECT_TRUE(priced(usd).empty()) << usd;
}

TEST(ImpossibleTime, IsOfMillisecondsTakenForSeconds) {
  const auto slowed = [](double factor, bool with_shape, int64_t layers) {
    RunResult run = busy_run();
    run.model_info.shape->num_layers = layers;
    run.model_info.shape->hidden_size = run.model_info.shape->ffn_hidden_size = 4096;
    run.model_info.shape->num_attention_heads = run.model_info.shape->num_key_value_heads = 64;
    if (!with_shape) run.model_info.shape.reset();
    for (double& seconds : run.step_times) seconds *= factor;
    summarise_run(run, stored_options(run));
    return find_impossible_time(run);
  };
  EXPECT_FALSE(slowed(3000, true, 32).empty());
  EXPECT_TRUE(slowed(3, true, 32).empty());
  RunResult without_peak = noisy_run("a.json", Platform::nvd, Framework::nemo, 3000, 1).result;
  without_peak.model_info.shape->num_layers = 320;
  summarise_run(without_peak, {});
  EXPECT_FALSE(find_impossible_time(without_peak).empty()) << "the catalogue knows the peak";
  EXPECT_FALSE(slowed(2e4, false, 32).empty()) << "less than a token a second";
  EXPECT_TRUE(slowed(100, false, 32).empty());
}

TEST(ImpossibleTime, ASmallModelMayWasteADevice) {
  RunResult run = busy_run();
  run.model_info.shape->num_layers = 1;
  run.model_info.shape->vocab_size = 256;
  run.training_config.global_batch_size = 8;
  for (double& seconds : run.step_times) seconds *= 5;
  summarise_run(run, stored_options(run));
  ASSERT_LT(run.derived.mfu->value, 5e-4);
  EXPECT_TRUE(find_impossible_time(run).empty());
}

RunResult stamped(double share, double checkpoint_seconds = 0) {
  RunResult run = noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 1).result;
  run.reported.emplace();
  run.reported->unix_time.emplace();
  double clock = 1.7e9;
  for (size_t i = 0; i < run.step_times.size(); ++i) {
    clock += run.step_times[i] / share + (i % 20 == 5 ? checkpoint_seconds : 0);
    run.reported->unix_time->push_back(clock);
  }
  return run;
}

TEST(ClockGap, IsBetweenTheStepsAndTheLogsClock) {
  for (const double share : {1000.0, 60.0, 2.0, 0.3, 0.001}) EXPECT_TRUE(describe_clock_gap(stamped(share))) << share;
  for (const double share : {1.0, 1.1, 0.8}) EXPECT_FALSE(describe_clock_gap(stamped(share))) << share;
  EXPECT_FALSE(describe_clock_gap(stamped(1, 600))) << "checkpoints are not steps";
  RunResult derived = stamped(3);
  derived.source.step_time = TimeSource::from_timestamps;
  EXPECT_FALSE(describe_clock_gap(derived)) << "no second witness";
}

// DeepSpeed times the step that it prints, of ten: the stamps lie ten steps apart, and none of them tells the others.
TEST(ClockGap, IsNoneWhereALineTellsOneStepOfTen) {
  const auto every_tenth = [](RunResult run) {
    run.steps.emplace().numbers.emplace();
    for (size_t i = 0; i < run.step_times.size(); ++i) run.steps->numbers->push_back(static_cast<int64_t>(10 * i + 10));
    return run;
  };
  EXPECT_TRUE(describe_clock_gap(stamped(0.1))) << "these steps follow each other";
  EXPECT_FALSE(describe_clock_gap(every_tenth(stamped(0.1))));
  EXPECT_TRUE(describe_clock_gap(every_tenth(stamped(1000)))) << "one of ten takes longer than the ten";
}

TEST(ClockGap, IsFoundInThousandsOfFilesToo) {
  LoadedRun run{"a.json", stamped(1000)};
  run.clock_gap = describe_clock_gap(run.result);
  run.result.reported.reset();
  const auto findings = audit_contender({"A", "a", {run}, {}});
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& each) {
    return each.code == "clock_contradiction" && each.severity == Severity::error;
  }));
}

// Named alike, and not the same: somebody compares "llama" with "llama".
struct NamesakeCase {
  const char *name, *code;
  void (*reference)(RunResult&);
  void (*subject)(RunResult&);
};
class Namesakes : public ::testing::TestWithParam<NamesakeCase> {};
TEST_P(Namesakes, AreToldApart) {
  LoadedRun a = noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 1);
  LoadedRun b = noisy_run("b.json", Platform::amd, Framework::prim, 1, 2);
  GetParam().reference(a.result), GetParam().subject(b.result);
  const auto findings = audit_pair({"A", "a", {a}, {}}, {"B", "b", {b}, {}});
  const auto found =
      std::find_if(findings.begin(), findings.end(), [](const Finding& each) { return each.code == GetParam().code; });
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->severity, found->code == "model_shape" ? Severity::error : Severity::warning);
}
void no_shape(RunResult& run) { run.model_info.shape.reset(); }
INSTANTIATE_TEST_SUITE_P(
    All, Namesakes,
    ::testing::Values(NamesakeCase{"NothingKnown", "model_not_shown", no_shape, no_shape},
                      NamesakeCase{"OneShape", "model_not_shown", [](RunResult&) {}, no_shape},
                      NamesakeCase{"OtherCounts", "model_shape",
                                   [](RunResult& run) {
                                     no_shape(run);
                                     run.model_info.num_parameters = 8030261248;
                                   },
                                   [](RunResult& run) {
                                     no_shape(run);
                                     run.model_info.num_parameters = 6738415616;
                                   }},
                      NamesakeCase{"OtherFullNames", "model_shape",
                                   [](RunResult& run) {
                                     no_shape(run);
                                     run.model_info.full_name = "Llama 3.1 8B";
                                   },
                                   [](RunResult& run) {
                                     no_shape(run);
                                     run.model_info.full_name = "Llama 2 7B";
                                   }},
                      NamesakeCase{"ANameAgainstAShape", "model_shape", [](RunResult&) {},
                                   [](RunResult& run) {
                                     no_shape(run);
                                     run.model_info.full_name = "Llama 3.1 8B";
                                   }},
                      NamesakeCase{"OtherWindow", "model_shape", [](RunResult&) {},
                                   [](RunResult& run) { run.model_info.shape->sliding_window = 256; }},
                      NamesakeCase{"OtherRotaryBase", "model_details", [](RunResult&) {},
                                   [](RunResult& run) { run.model_info.shape->rope_theta = 5e5; }},
                      NamesakeCase{"OtherRotaryScaling", "model_details", [](RunResult&) {},
                                   [](RunResult& run) { run.model_info.shape->rope_scaling = RopeScaling(); }}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Namesakes, OneFullNameShowsOneModel) {
  LoadedRun a = noisy_run("a.json", Platform::nvd, Framework::nemo, 1, 1);
  LoadedRun b = noisy_run("b.json", Platform::nvd, Framework::nemo, 1, 2);
  no_shape(a.result), no_shape(b.result);
  a.result.model_info.full_name = "Llama 3.1 8B", b.result.model_info.full_name = "meta-llama/Llama-3.1-8B";
  EXPECT_TRUE(audit_pair({"A", "a", {a}, {}}, {"B", "b", {b}, {}}).empty());
}

}  // namespace
}  // namespace tprimat::results
