#include "result/summary.h"

#include <gtest/gtest.h>

#include "result/metrics.h"
#include "result/peak.h"
#include "result/result_file.h"
#include "sample_result.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

const double k_nan = std::numeric_limits<double>::quiet_NaN();

TEST(Summary, FiguresOfASmallRunByHand) {
  RunResult result = sample_result();
  summarise_run(result, {.usd_per_hour = 36});
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_EQ(result.warmup.steps_excluded, 1);
  EXPECT_EQ(result.performance_metrics->total_steps, 21);
  EXPECT_DOUBLE_EQ(result.performance_metrics->total_time_seconds, 25);
  EXPECT_DOUBLE_EQ(*result.performance_metrics->tokens_per_second, 1024);
  EXPECT_DOUBLE_EQ(*result.performance_metrics->tokens_per_second_per_gpu, 512);
  EXPECT_DOUBLE_EQ(*result.memory_metrics.peak_memory_allocated_gb, 2.5);
  EXPECT_NEAR(result.derived.usd_per_1e12_tokens->value, 0.01 / 1024 * 1e12, 1e-3);
  EXPECT_FALSE(result.derived.mfu) << "no peak, so no MFU";
}

TEST(Summary, RateIsTokensOverTimeNotAMeanOfRates) {
  RunResult result = sample_result(11);
  for (size_t i = 1; i < 11; ++i) result.step_times[i] = i % 2 == 0 ? 1.0 : 3.0;
  summarise_run(result, {});
  EXPECT_DOUBLE_EQ(result.derived.tokens_per_second->value, 10 * 1024 / 20.0);
  EXPECT_LT(*result.derived.tokens_per_second->low, result.derived.tokens_per_second->value);
  EXPECT_GT(*result.derived.tokens_per_second->high, result.derived.tokens_per_second->value);
}

TEST(Summary, MfuIsFlopsOverThePeakForEveryFormula) {
  RunResult result = sample_result();
  summarise_run(result, {.peak = PeakInfo{"test", 1e9, "by hand"}});
  const double causal = flops_per_token(*result.model_info.shape, 128, FlopFormula::causal);
  EXPECT_EQ(result.derived.flops_per_token.size(), 3u);
  EXPECT_EQ(result.derived.headline_formula, formula_id(FlopFormula::causal));
  EXPECT_NEAR(result.derived.mfu->value, 512 * causal / 1e9, 1e-12);
  EXPECT_GT(result.derived.mfu_by_formula.at(formula_id(FlopFormula::full)), result.derived.mfu->value);
}

TEST(Summary, ImpossibleMfuMakesTheRunInvalid) {
  RunResult result = sample_result();
  summarise_run(result, {.peak = PeakInfo{"test", 1e6, "far too low"}});
  EXPECT_GT(result.derived.mfu->value, 1);
  EXPECT_EQ(result.status, RunStatus::invalid);
  EXPECT_NE(result.status_reason->find("impossible"), std::string::npos);
  EXPECT_FALSE(result.warnings.empty());
}

TEST(Summary, IsIdempotent) {
  RunResult once = sample_result();
  once.step_times[7] = 30;
  once.learning_rates.pop_back();
  summarise_run(once, {.peak = PeakInfo{"test", 1e9, "by hand"}, .usd_per_hour = 3});
  RunResult twice = once;
  summarise_run(twice, stored_options(twice));
  EXPECT_EQ(print_json(run_result_to_json(once)), print_json(run_result_to_json(twice)));
  EXPECT_EQ(once.statistics->outliers, std::vector<int64_t>{8});
}

TEST(Summary, UnknownBatchHasNoTokenRate) {
  RunResult result = sample_result();
  result.training_config.global_batch_size.reset();
  summarise_run(result, {.usd_per_hour = 36});
  EXPECT_FALSE(result.derived.tokens_per_second);
  EXPECT_FALSE(result.performance_metrics->tokens_per_second);
  EXPECT_FALSE(result.derived.usd_per_1e12_tokens);
  EXPECT_DOUBLE_EQ(*result.performance_metrics->avg_step_time_seconds, 1);
}

TEST(Summary, UnknownDeviceCountHasNoRatePerGpu) {
  RunResult result = sample_result();
  result.training_config.num_gpus.reset();
  result.gpu_info.device_count.reset();
  summarise_run(result, {.peak = PeakInfo{"test", 1e9, "by hand"}});
  EXPECT_TRUE(result.derived.tokens_per_second);
  EXPECT_FALSE(result.derived.tokens_per_second_per_gpu);
  EXPECT_FALSE(result.derived.mfu);
}

TEST(Summary, OnlyTheFirstStepGivesNoSteadyState) {
  RunResult result = sample_result(1);
  summarise_run(result, {});
  EXPECT_FALSE(result.statistics);
  EXPECT_FALSE(result.derived.tokens_per_second);
  EXPECT_DOUBLE_EQ(result.performance_metrics->total_time_seconds, 5);
}

TEST(Summary, FixedWarmUpIsObeyed) {
  RunResult result = sample_result();
  summarise_run(result, {.fixed_warmup_steps = 4});
  EXPECT_EQ(result.warmup.steps_excluded, 4);
  EXPECT_EQ(result.warmup.method, WarmupMethod::fixed);
  EXPECT_EQ(result.statistics->count, 17);
}

TEST(Summary, EnergyCountsOnlyWhenItIsValid) {
  RunResult result = sample_result();
  result.telemetry.push_back({.source = "nvml",
                              .samples = 30,
                              .interval_seconds = {},
                              .mean_utilisation = {},
                              .others_busy_threads = {},
                              .mean_power_watts = {},
                              .energy_joules = 2048.0,
                              .peak_memory_used_gb = {},
                              .energy_valid = {},
                              .energy_note = {}});
  summarise_run(result, {});
  EXPECT_FALSE(result.derived.joules_per_token);
  result.telemetry[0].energy_valid = true;
  summarise_run(result, {});
  EXPECT_DOUBLE_EQ(result.derived.joules_per_token->value, 0.1);
}

struct ValidityCase {
  const char* name;
  void (*spoil)(RunResult& result);
  RunStatus status;
  const char* reason;
};
class Validity : public ::testing::TestWithParam<ValidityCase> {};
TEST_P(Validity, FailsClosed) {
  RunResult result = sample_result();
  GetParam().spoil(result);
  summarise_run(result, {});
  EXPECT_EQ(result.status, GetParam().status);
  EXPECT_NE(result.status_reason.value_or("").find(GetParam().reason), std::string::npos)
      << result.status_reason.value_or("");
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Validity,
    ::testing::Values(
        ValidityCase{"short", [](RunResult& r) { r.step_times.resize(7); }, RunStatus::invalid, "step 7 of 21"},
        ValidityCase{"empty", [](RunResult& r) { r.step_times.clear(); }, RunStatus::failed, "no step"},
        ValidityCase{"zero_time", [](RunResult& r) { r.step_times[4] = 0; }, RunStatus::invalid, "step 5"},
        ValidityCase{"nan_time", [](RunResult& r) { r.step_times[4] = k_nan; }, RunStatus::invalid, "step 5"},
        ValidityCase{"endless_time", [](RunResult& r) { r.step_times[4] = 1e308; }, RunStatus::invalid, "step 5"},
        ValidityCase{"no_time_at_all", [](RunResult& r) { r.step_times[4] = 1e-300; }, RunStatus::invalid, "step 5"},
        ValidityCase{"nan_loss", [](RunResult& r) { r.loss_values[19] = r.loss_values[20] = k_nan; },
                     RunStatus::invalid, "from step 20"},
        ValidityCase{"infinite_loss", [](RunResult& r) { r.loss_values[2] = INFINITY; }, RunStatus::invalid,
                     "infinite"},
        ValidityCase{
            "interrupted",
            [](RunResult& r) { r.status = RunStatus::interrupted, r.status_reason = "Ctrl-C", r.step_times.resize(7); },
            RunStatus::interrupted, "Ctrl-C"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Summary, SparseLossesAreAWarningNotAFailure) {
  RunResult result = sample_result();
  for (size_t i = 0; i < 21; ++i)
    if (i % 5 != 2) result.loss_values[i] = k_nan;
  summarise_run(result, {});
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_EQ(result.warnings.size(), 1u);
}

TEST(Metrics, EveryMetricReadsASummarisedRun) {
  RunResult result = sample_result();
  summarise_run(result, {.peak = PeakInfo{"test", 1e9, "by hand"}, .usd_per_hour = 36});
  EXPECT_EQ(metrics().front().key, "tokens_per_second_per_gpu");
  EXPECT_DOUBLE_EQ(find_metric("tokens_per_second_per_gpu")->read(result)->value, 512);
  EXPECT_DOUBLE_EQ(find_metric("first_step_time")->read(result)->value, 5);
  EXPECT_NEAR(find_metric("final_loss")->read(result)->value, 6.805, 1e-9);
  EXPECT_NEAR(find_metric("days_per_1e12_tokens")->read(result)->value, 1e12 / 1024 / 86400, 1e-6);
  EXPECT_EQ(find_metric("nonsense"), nullptr);
}

TEST(Metrics, AnEmptyRunHasNoFigures) {
  RunResult result;
  for (const Metric& metric : metrics()) EXPECT_FALSE(metric.read(result)) << metric.key;
}

TEST(Peak, KnownDeviceAndPrecisionOnly) {
  const auto peak = catalogue_peak("NVIDIA H100 80GB HBM3", Precision::bf16);
  ASSERT_TRUE(peak);
  EXPECT_NEAR(peak->flops_per_second, 989e12, 1e12);
  EXPECT_NE(peak->id.find("catalogue:"), std::string::npos);
  EXPECT_FALSE(catalogue_peak("GeForce 256", Precision::bf16));
  EXPECT_FALSE(catalogue_peak("", Precision::bf16));
}

TEST(Profile, CostsWhatItsStepsTakeLongerThanTheSteadyOnes) {
  RunResult plain = sample_result(), profiled = sample_result();
  profiled.profile = RunProfile{.profiler = Profiler::own, .first_step = 23, .last_step = 24};
  profiled.profile->step_times = {1.25, 1.75};
  summarise_run(plain, {});
  summarise_run(profiled, {});
  EXPECT_DOUBLE_EQ(profiled.profile->step_time_seconds.value(), 1.5);
  EXPECT_DOUBLE_EQ(profiled.profile->cost.value(), 0.5);
  profiled.profile.reset();
  EXPECT_EQ(run_result_to_json(profiled), run_result_to_json(plain)) << "the profiled steps are in no other figure";
}

TEST(Profile, HasNoCostWithoutAValidTime) {
  RunResult result = sample_result();
  result.profile = RunProfile{.first_step = 23, .last_step = 23, .step_times = {std::nan("")}};
  summarise_run(result, {});
  EXPECT_FALSE(result.profile->step_time_seconds || result.profile->cost);
}

TEST(StatedPeak, CountsWhereTheCatalogueHasNoneOrFirst) {
  std::vector<StatedPeak> stated = {{"h100", Precision::bf16, 494e12, false}, {"My GPU", Precision::bf16, 1e15, false}};
  EXPECT_EQ(choose_peak(stated, "NVIDIA H100 80GB HBM3", Precision::bf16)->id, "catalogue:H100-SXM-80GB:bf16");
  EXPECT_EQ(choose_peak(stated, "my_gpu", Precision::bf16)->flops_per_second, 1e15);
  EXPECT_FALSE(choose_peak(stated, "my_gpu", Precision::fp8));
  stated[0].counts_first = true;
  EXPECT_EQ(choose_peak(stated, "NVIDIA H100 80GB HBM3", Precision::bf16)->id, "config:h100:bf16");
}

TEST(StatedPeak, IsFoundInAResult) {
  const auto found = find_stated_peak(stated_peak_info({"My: GPU", Precision::fp8, 1e15, true}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, "My: GPU");
  EXPECT_EQ(found->precision, Precision::fp8);
  for (const char* id : {"config:bf16", "config:", "", "catalogue:H100-SXM-80GB:bf16", "config:x:int4"}) {
    PeakInfo other;
    other.id = id;
    EXPECT_FALSE(find_stated_peak(other)) << id;
  }
}

}  // namespace
}  // namespace tprimat
