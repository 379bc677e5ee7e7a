#include <gtest/gtest.h>

#include "result/gpu_cores.h"
#include "result/metric_text.h"
#include "result/summary.h"
#include "sample_result.h"

namespace tprimat {
namespace {

std::optional<Estimate> read(const char* key, const RunResult& result) { return find_metric(key)->read(result); }

// 1024 tokens/s on 2 devices, with an interval of 10 % either way.
RunResult priced_result() {
  RunResult result = sample_result();
  result.gpu_info.total_memory_gb = 80;
  result.memory_metrics.peak_memory_allocated_gb = 20;
  result.memory_metrics.peak_memory_reserved_gb = 30;
  result.memory_metrics.peak_device_used_gb = 40;
  summarise_run(result, {.usd_per_hour = 6.0});
  result.derived.tokens_per_second = Estimate{1000, 800, 1250};
  result.derived.joules_per_token = Estimate{2, 1.5, 2.5};
  result.derived.usd_per_1e12_tokens = Estimate{2e6, 1.6e6, 2.5e6};
  return result;
}

TEST(Resources, FollowFromOtherFigures) {
  const RunResult result = priced_result();
  EXPECT_DOUBLE_EQ(read("tokens_per_wh", result)->value, 1800);
  EXPECT_DOUBLE_EQ(*read("tokens_per_wh", result)->low, 1440) << "of the dearest token";
  EXPECT_DOUBLE_EQ(*read("tokens_per_wh", result)->high, 2400);
  EXPECT_DOUBLE_EQ(read("tokens_per_usd_hour", result)->value, 5e5);
  EXPECT_DOUBLE_EQ(*read("tokens_per_usd_hour", result)->low, 4e5);
  EXPECT_DOUBLE_EQ(read("days_per_1e12_tokens", result)->value, 1e9 / 86400);
  EXPECT_DOUBLE_EQ(read("days_per_15e12_tokens", result)->value, 15e9 / 86400);
  EXPECT_DOUBLE_EQ(*read("days_per_15e12_tokens", result)->high, 15e12 / 800 / 86400);
  EXPECT_DOUBLE_EQ(read("memory_allocated_share", result)->value, 0.25);
  EXPECT_DOUBLE_EQ(read("memory_reserved_share", result)->value, 0.375);
  EXPECT_DOUBLE_EQ(read("device_used_share", result)->value, 0.5);
}

TEST(Resources, TokensPerUsdHourAreTokensPerHourOverThePrice) {
  RunResult result = sample_result();
  summarise_run(result, {.usd_per_hour = 6.0});
  EXPECT_NEAR(read("tokens_per_usd_hour", result)->value, result.derived.tokens_per_second->value * 3600 / 6, 1e-6);
}

TEST(Resources, AreAbsentWithoutTheirInputs) {
  RunResult result = sample_result();
  summarise_run(result, {});
  for (const char* key : {"tokens_per_wh", "tokens_per_usd_hour", "memory_allocated_share", "device_used_share"})
    EXPECT_FALSE(read(key, result)) << key;
  EXPECT_FALSE(read("days_per_15e12_tokens", RunResult{}));
  result.memory_metrics.peak_memory_allocated_gb = 20;
  result.gpu_info.total_memory_gb = 19;
  EXPECT_FALSE(read("memory_allocated_share", result)) << "more than the device has";
  result.gpu_info.total_memory_gb = 0;
  EXPECT_FALSE(read("memory_allocated_share", result)) << "a device without memory";
}

TEST(Resources, ARankOfACpuHasNoDeviceOfItsOwn) {
  RunResult result = priced_result();
  result.platform = Platform::cpu;
  EXPECT_FALSE(read("memory_allocated_share", result)) << "two ranks share the machine's memory";
  EXPECT_TRUE(read("device_used_share", result)) << "that of all processes of the run";
  result.training_config.num_gpus = 1;
  EXPECT_TRUE(read("memory_allocated_share", result));
}

TEST(Resources, ATextNamesWhatIsKnown) {
  const std::string text = describe_resources(list_figures(priced_result()));
  EXPECT_NE(text.find("memory allocated, of the device: 25.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("tokens per Wh: 1 800"), std::string::npos) << text;
  EXPECT_NE(text.find("tokens per USD-hour: 500 000"), std::string::npos) << text;
  EXPECT_EQ(describe_resources(list_figures(RunResult{})), "");
}

TEST(Resources, AMetricRestatesOneThatExists) {
  for (const Metric& metric : metrics())
    if (!metric.restates.empty()) EXPECT_NE(find_metric(metric.restates), nullptr) << metric.key;
}

TEST(PossibleRange, CutsAnInterval) {
  const Estimate cut = limit_interval({0.9, -0.2, 1.4}, {0, 1});
  EXPECT_EQ(cut.value, 0.9);
  EXPECT_EQ(cut.low, 0);
  EXPECT_EQ(cut.high, 1);
  EXPECT_EQ(limit_interval({0.5, 0.4, 0.6}, {0, 1}).high, 0.6);
  const Estimate impossible = limit_interval({1.2, 1.1, 1.3}, {0, 1});
  EXPECT_EQ(impossible.value, 1.2) << "the audit reports it";
  EXPECT_FALSE(impossible.low || impossible.high);
}

TEST(PossibleRange, OfAnMfuEndsAtThePeak) {
  RunResult result = sample_result();
  for (size_t i = 1; i < result.step_times.size(); ++i) result.step_times[i] = i % 2 == 0 ? 0.7 : 1.3;
  summarise_run(result, {});
  const double rate = result.derived.tflops_per_gpu->value * 1e12;
  summarise_run(result, {.peak = PeakInfo{.id = "config:bf16", .flops_per_second = 1.01 * rate, .source = "test"}});
  EXPECT_LT(result.derived.mfu->value, 1);
  EXPECT_EQ(result.derived.mfu->high, 1.0);
  EXPECT_GT(*result.derived.tflops_per_gpu->high, 1.01 * rate / 1e12) << "only the share is cut";
}

TEST(GpuCores, OfTheCatalogueAreSmsOrComputeUnits) {
  RunResult result = sample_result();
  const auto nvidia = find_gpu_cores(result);
  ASSERT_TRUE(nvidia);
  EXPECT_EQ(nvidia->text(), "132 SMs (16 896 CUDA cores)");
  EXPECT_EQ(nvidia->source, "catalogue:H100-SXM-80GB");
  result.platform = Platform::amd;
  result.gpu_info.device_name = "AMD Instinct MI300X";
  EXPECT_EQ(find_gpu_cores(result)->text(), "304 CUs (19 456 stream processors)");
}

TEST(GpuCores, OfAnotherDeviceContradict) {
  RunResult result = sample_result();
  result.platform = Platform::amd;
  result.gpu_info.device_name = "AMD Instinct MI300X";
  result.gpu_info.gpu_cores = 16896;
  const auto cores = find_gpu_cores(result);
  EXPECT_EQ(cores->lanes, 19456);
  EXPECT_EQ(cores->contradiction, "16896 against 19456 of the catalogue");
}

TEST(GpuCores, ReportedByTheDriverComeFirst) {
  RunResult result = sample_result();
  result.gpu_info.compute_units = 38;  // a partition
  const auto cores = find_gpu_cores(result);
  EXPECT_EQ(cores->units, 38);
  EXPECT_EQ(cores->source, "reported by the driver");
}

TEST(GpuCores, AreAbsentWhereUnknown) {
  RunResult result = sample_result();
  result.gpu_info.device_name = "some board";
  EXPECT_FALSE(find_gpu_cores(result));
  result.gpu_info.gpu_cores = 0;
  EXPECT_FALSE(find_gpu_cores(result)) << "older tools wrote 0 for an unknown count";
  result.gpu_info.gpu_cores = 5120;
  EXPECT_EQ(find_gpu_cores(result)->text(), "5 120 CUDA cores");
  result.platform = Platform::cpu;
  EXPECT_FALSE(find_gpu_cores(result));
}

}  // namespace
}  // namespace tprimat
