#include "trace/profile_summary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "example_data.h"
#include "zip_fixture.h"

namespace tprimat::logs {
namespace {

std::string tracelens_report() {
  return make_workbook({
      {"gpu_timeline", sheet_data({{"type", "time ms", "percent"},
                                   {"computation_time", "6", "60"},
                                   {"exposed_comm_time", "1.5", "15"},
                                   {"exposed_memcpy_time", "0.5", "5"},
                                   {"busy_time", "8", "80"},
                                   {"idle_time", "2", "20"},
                                   {"total_time", "10", "100"},
                                   {"total_comm_time", "3", "30"},
                                   {"total_memcpy_time", "0.75", "7.5"}})},
      {"kernel_summary", sheet_data({{"Kernel name", "Kernel stream", "Kernel duration (\u00b5s)_sum",
                                      "Kernel duration (\u00b5s)_count", "Percent of kernels time (%)"},
                                     {"gemm_a", "0", "4000", "3", "50"},
                                     {"gemm_a", "7", "1000", "1", "12.5"},
                                     {"ncclDevKernel", "9", "3000", "2", "37.5"}})},
  });
}

void expect_reported_times(const Timeline& timeline) {
  EXPECT_DOUBLE_EQ(timeline.span_seconds.value(), 0.010);
  EXPECT_DOUBLE_EQ(timeline.busy_seconds.value(), 0.008);
  EXPECT_DOUBLE_EQ(timeline.idle_seconds.value(), 0.002);
  EXPECT_DOUBLE_EQ(timeline.compute_seconds.value(), 0.006);
  EXPECT_DOUBLE_EQ(timeline.communication_seconds.value(), 0.003);
  EXPECT_DOUBLE_EQ(timeline.exposed_communication_seconds.value(), 0.0015);
  EXPECT_DOUBLE_EQ(timeline.copy_seconds.value(), 0.00075);
  EXPECT_DOUBLE_EQ(timeline.exposed_copy_seconds.value(), 0.0005);
}

TEST(ProfileSummary, ReadsATraceLensReport) {
  const std::string bytes = tracelens_report();
  const ProfileSummary summary = summarise_profile(bytes, "report.xlsx");
  EXPECT_EQ(summary.format, ProfileFormat::tracelens_report);
  ASSERT_EQ(summary.devices.size(), 1u);
  expect_reported_times(summary.devices[0].timeline);
  ASSERT_EQ(summary.devices[0].kernels.size(), 2u);
  EXPECT_EQ(summary.devices[0].kernels[0].name, "gemm_a");
  EXPECT_EQ(summary.devices[0].kernels[0].calls, 4);
  EXPECT_DOUBLE_EQ(summary.devices[0].kernels[0].share, 0.625);
  EXPECT_EQ(summary.devices[0].classes[1].kernel_class, KernelClass::collective);
  EXPECT_EQ(summary.devices[0].kernel_calls, 6);
  const std::string text = render_profile(summary);
  EXPECT_NE(text.find("TraceLens report with 2 sheets"), std::string::npos);
  EXPECT_NE(text.find("exposed communication"), std::string::npos);
}

TEST(ProfileSummary, ReadsTheRanksOfAReport) {
  const std::string bytes = make_workbook({{"All_Ranks_Combined", sheet_data({{"type", "time ms", "percent", "rank"},
                                                                              {"total_time", "10", "100", "0"},
                                                                              {"busy_time", "9", "90", "0"},
                                                                              {"total_time", "11", "100", "1"},
                                                                              {"other_time", "5", "100", "1"}})}});
  const ProfileSummary summary = summarise_profile(bytes, "report.xlsx");
  ASSERT_EQ(summary.devices.size(), 2u);
  EXPECT_EQ(summary.devices[0].rank, 0);
  EXPECT_DOUBLE_EQ(summary.devices[0].timeline.busy_seconds.value(), 0.009);
  EXPECT_EQ(summary.devices[1].rank, 1);
  EXPECT_DOUBLE_EQ(summary.devices[1].timeline.span_seconds.value(), 0.011);
  EXPECT_FALSE(summary.devices[1].timeline.busy_seconds.has_value());  // not told, so not known
}

TEST(ProfileSummary, ListsTheSheetsOfAnyOtherWorkbook) {
  const ProfileSummary summary =
      summarise_profile(make_workbook({{"Sheet1", sheet_data({{"model", "TFLOPs"}, {"x", "1"}})}}), "w.xlsx");
  EXPECT_EQ(summary.format, ProfileFormat::workbook);
  ASSERT_EQ(summary.sheets.size(), 1u);
  EXPECT_EQ(summary.sheets[0].rows, 2);
  EXPECT_EQ(summary.sheets[0].columns, 2);
  EXPECT_NE(summary.notes.at(0).find("not a TraceLens report"), std::string::npos);
}

TEST(ProfileSummary, PrintsATraceWithoutItsControlCharacters) {
  const std::string name = "evil\\u001b[31m kernel " + std::string(200, 'x');
  const ProfileSummary summary = summarise_profile(trace_of({trace_event("kernel", name, 0, 5)}), "t.json");
  const std::string text = render_profile(summary);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("\u2026"), std::string::npos);
  EXPECT_NE(text.find("1 kernel, 0.005 ms in all"), std::string::npos);
  EXPECT_THROW(summarise_profile(std::string_view(), "t.json"), Error);
}

// The samples are not part of the project; where they lie beside it, their facts must come out.
class SampleProfiles : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_EXAMPLE_DATA(folder() / "traces"); }
  static std::filesystem::path folder() { return TPRIMAT_SHARED_DATA; }
  static DeviceSummary device(const std::string& file) {
    const ProfileSummary summary = summarise_profile(folder() / file);
    EXPECT_EQ(summary.devices.size(), 1u) << file;
    return summary.devices.at(0);
  }
};

TEST_F(SampleProfiles, Traces) {
  struct Fact {
    std::string file;
    int64_t events, kernels;
    double microseconds;
    std::string name;
  };
  const Fact facts[] = {
      {"tracelens_mi300_bert_small", 2653, 60, 388.344, "AMD Instinct MI300X VF"},
      {"tracelens_mi210_gpu_only_trace", 2443, 562, 5343.422, "AMD Instinct MI210"},
      {"tracelens_torch_compile_triton", 246, 12, 12549.021, "AMD Instinct MI300X"},
      {"hta_mi250_minitoy_train_rocm6.2", 220, 14, 110.881, "AMD Radeon Graphics"},
      {"hta_alexnet_critical_path", 1408, 79, 10692, "NVIDIA A100-PG509-200"},
      {"hta_cuda_event_sync", 92, 4, 49, "NVIDIA A100-PG509-200"},
  };
  for (const Fact& fact : facts) {
    const ProfileSummary summary = summarise_profile(folder() / "traces" / (fact.file + ".json.gz"));
    EXPECT_EQ(summary.events, fact.events) << fact.file;
    ASSERT_EQ(summary.devices.size(), 1u) << fact.file;
    EXPECT_EQ(summary.devices[0].kernel_calls, fact.kernels) << fact.file;
    EXPECT_NEAR(summary.devices[0].kernel_seconds.value() * 1e6, fact.microseconds, 1e-6) << fact.file;
    EXPECT_EQ(summary.devices[0].name, fact.name) << fact.file;
  }
  EXPECT_EQ(device("traces/hta_mi250_minitoy_train_rocm6.2.json.gz").steps.at(0).step, 1);
  EXPECT_EQ(device("traces/hta_cuda_event_sync.json.gz").step_marks, "host");
}

TEST_F(SampleProfiles, TraceAndItsReportAgree) {
  const DeviceSummary trace = device("traces/tracelens_mi210_gpu_only_trace.json.gz");
  const DeviceSummary report = device("xlsx/tracelens_mi210_gpu_only_perf_report.xlsx");
  EXPECT_EQ(trace.kernel_calls, report.kernel_calls);
  EXPECT_NEAR(trace.kernel_seconds.value(), report.kernel_seconds.value(), 1e-12);
  for_each_field<Timeline>([&](const auto& each) {  // the report adds up binary fractions of large numbers
    EXPECT_NEAR((trace.timeline.*each.member).value(), (report.timeline.*each.member).value(), 1e-7) << each.key;
  });
  ASSERT_EQ(trace.kernels.size(), report.kernels.size());
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(trace.kernels[i].name, report.kernels[i].name);
    EXPECT_EQ(trace.kernels[i].calls, report.kernels[i].calls);
  }
}

TEST_F(SampleProfiles, Workbook) {
  const ProfileSummary summary = summarise_profile(folder() / "xlsx" / "primus_perf_data.xlsx");
  EXPECT_EQ(summary.format, ProfileFormat::workbook);
  ASSERT_EQ(summary.sheets.size(), 1u);
  EXPECT_EQ(summary.sheets[0].name, "Sheet1");
  EXPECT_EQ(summary.sheets[0].rows, 60);
}

}  // namespace
}  // namespace tprimat::logs
