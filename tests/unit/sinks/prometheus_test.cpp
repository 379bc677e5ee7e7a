#include <gtest/gtest.h>

#include <regex>

#include "base/files.h"
#include "result/metrics.h"
#include "unit/sinks/export_samples.h"
#include "unit/temporary_folder.h"

namespace tprimat::results {
namespace {

using namespace test;

std::string exposition_of(const std::vector<RunResult>& results) {
  const TemporaryFolder folder;
  export_results("prometheus", folder.path(), results);
  return read_file(folder / "tprimat.prom");
}

TEST(PrometheusSink, GivesGaugesInBaseUnits) {
  const std::string text = exposition_of({short_run()});
  const std::string labels = R"({run="run1",model="llama",platform="nvd",framework="mega"} )";
  EXPECT_NE(text.find("# TYPE tprimat_step_time_median_seconds gauge\n"), std::string::npos);
  EXPECT_NE(text.find("tprimat_step_time_median_seconds" + labels + "0.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tprimat_peak_memory_allocated_bytes" + labels + "40500000000\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tprimat_run_start_timestamp_seconds" + labels + "1767225600\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tprimat_tokens_per_second" + labels + "262144\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tprimat_run_complete" + labels + "1\n"), std::string::npos) << text;
}

TEST(PrometheusSink, TellsHowExpertsWereChosen) {
  const std::string text = exposition_of({sparse_run()});
  EXPECT_NE(text.find(R"(routing="balanced",dispatcher="deepep")"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntprimat_router_z_loss_nats{"), std::string::npos) << text;
  const std::string dense = exposition_of({short_run()});
  EXPECT_EQ(dense.find("routing"), std::string::npos);
  EXPECT_EQ(dense.find("router_z_loss"), std::string::npos);
}

TEST(PrometheusSink, LeavesOutWhatIsNotKnown) {
  const std::string text = exposition_of({empty_run()});
  EXPECT_EQ(text.find("tprimat_mfu"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_NE(text.find("tprimat_run_complete{run=\"run1\",model=\"nothing\"} 0\n"), std::string::npos) << text;
}

TEST(PrometheusSink, DescribesEachGaugeOnceForAllRuns) {
  const std::string text = exposition_of({short_run(), short_run()});
  EXPECT_EQ(count_of(text, "# TYPE tprimat_tokens_per_second gauge"), 1u);
  EXPECT_EQ(count_of(text, "\ntprimat_tokens_per_second{"), 2u);
}

// Every line is a comment or a sample; names end in their unit.
TEST(PrometheusSink, HostileLabelsBreakNoLine) {
  const std::string text = exposition_of({hostile_run()});
  const std::regex line(
      R"re(# (HELP|TYPE) tprimat_\w+ .*|tprimat_\w+\{(\w+="([^"\\]|\\[\\"n])*"(,|(?=\})))+\} [-+.e0-9]+)re");
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string each; std::getline(lines, each); ++count) EXPECT_TRUE(std::regex_match(each, line)) << each;
  EXPECT_GT(count, 20u);
}

TEST(PrometheusSink, KnowsEveryMetric) {
  RunResult r = sample_run("", Platform::nvd, Framework::mega, 0.5, 40).result;
  r.memory_metrics.peak_memory_reserved_gb = 50;
  r.memory_metrics.peak_device_used_gb = 60;
  PeakInfo peak;
  peak.flops_per_second = 1e15;
  TelemetrySummary sensor;
  sensor.source = "nvml";
  sensor.mean_power_watts = 500;
  sensor.energy_joules = 1e6;
  sensor.energy_valid = true;
  r.telemetry = {sensor};
  r.gpu_info.total_memory_gb = 100;
  r.prediction.emplace();
  r.prediction->step_time_seconds = 0.4;
  r.prediction->memory_gb = 45;
  r.time_to_train.emplace();
  r.time_to_train->status = "success", r.time_to_train->seconds = 600;
  r.experts.emplace();
  r.experts->load = 1.5, r.experts->dropped_share = 0.1, r.experts->aux_loss = 0.01;
  summarise_run(r, {.peak = peak, .usd_per_hour = 10});
  const std::string text = exposition_of({r});
  size_t known = 0;
  for (const Metric& metric : metrics()) known += metric.read(r) ? 1 : 0;
  EXPECT_EQ(known, metrics().size());
  EXPECT_EQ(count_of(text, "# TYPE "), known + 5);  // info, complete, start, devices, steps
}

}  // namespace
}  // namespace tprimat::results
