#include "trace/recorded_totals.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "example_data.h"

namespace tprimat::logs {
namespace {

constexpr const char* k_timeline =
    "type,time ms,percent\ncomputation_time,70,70\nexposed_comm_time,20,20\nexposed_memcpy_time,4,4\n"
    "busy_time,94,94\nidle_time,6,6\ntotal_time,100,100\ntotal_comm_time,30,30\n";
constexpr const char* k_products =
    "name,Input Dims_first,Input type_first,Kernel Time (\u00b5s)_sum,name_count\n"
    "aten::mm,\"[[8, 16], [16, 4]]\",\"['c10::BFloat16', 'c10::BFloat16']\",2500,5\n"
    "aten::mm,\"[[8, 32], [32, 4]]\",\"['c10::BFloat16', 'c10::BFloat16']\",4500,5\n";
constexpr const char* k_collectives =
    "rank,Process Group Name,Collective name,Group size,dtype,In msg size (MB)_first,dur_sum,operation_count\n"
    "0,0,allreduce,8,Float,0.5,1000,4\n0,0,broadcast,8,Int,0.25,2500,1\n0,0,allreduce,8,BFloat16,0.5,500,2\n";

std::string refusal(std::string_view timeline) {
  Workbook report;
  add_csv_sheet(report, "gpu_timeline", timeline);
  try {
    read_recorded_totals(report, "report");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(RecordedTotals, ReadsAFolderOfTables) {
  const ScratchFolder scratch;
  EXPECT_FALSE(is_tracelens_folder(scratch.path()));
  write_file_atomically(scratch.path() / "gpu_timeline.csv", k_timeline);
  write_file_atomically(scratch.path() / "GEMM.csv", k_products);
  write_file_atomically(scratch.path() / "coll_analysis.csv", k_collectives);
  EXPECT_TRUE(is_tracelens_folder(scratch.path()));
  const RecordedTotals totals = read_recorded_totals(scratch.path());
  EXPECT_EQ(totals.timeline.span_seconds, 0.1);
  EXPECT_EQ(totals.timeline.exposed_communication_seconds, 0.02);
  ASSERT_EQ(totals.operations_shaped.size(), 2u);
  EXPECT_EQ(totals.operations_shaped[0].shapes, "[8,32] [32,4] bf16");
  EXPECT_EQ(totals.operations_shaped[0].calls, 5);
  EXPECT_EQ(totals.operations_shaped[0].total_seconds, 0.0045);
  ASSERT_EQ(totals.collectives.size(), 2u);
  EXPECT_EQ(totals.collectives[0].call, (CollectiveCall{"broadcast", "0", 262144, 8}));
  EXPECT_EQ(totals.collectives[1].calls, 6);  // rows of the same size are one
}

TEST(RecordedTotals, RefusesWhatDoesNotAddUp) {
  EXPECT_EQ(refusal(k_timeline), "");
  std::string doctored = k_timeline;
  doctored.replace(doctored.find("idle_time,6"), 11, "idle_time,9");
  EXPECT_NE(refusal(doctored).find("total of 100.000 ms, but its parts add up to 103.000 ms"), std::string::npos);
  EXPECT_NE(refusal("type,time ms\nbusy_time,3\n").find("0 time lines"), std::string::npos);
  EXPECT_NE(refusal("type,time ms\ntotal_time,3\n").find("no total, computation and idle"), std::string::npos);
  EXPECT_THROW(read_recorded_totals(std::filesystem::path("/nowhere")), Error);
}

class SampleReports : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_EXAMPLE_DATA(folder()); }
  static std::filesystem::path folder() {
    return std::filesystem::path(TPRIMAT_SHARED_DATA) / "trace_pairs" / "rccl_threads_28ch_rank0";
  }
};

double milliseconds(const std::optional<double>& seconds) { return seconds.value_or(0.0) * 1e3; }

// The facts stand in the list beside the reports.
TEST_F(SampleReports, TheirDifferenceIsThatOfTheFacts) {
  const RecordedTotals a = read_recorded_totals(folder() / "256thread"),
                       b = read_recorded_totals(folder() / "512thread");
  const auto difference = [&](auto figure) {
    return milliseconds(b.timeline.*figure) - milliseconds(a.timeline.*figure);
  };
  EXPECT_NEAR(difference(&Timeline::span_seconds), 2075.617, 1e-3);
  EXPECT_NEAR(difference(&Timeline::compute_seconds), 17.264, 1e-3);
  EXPECT_NEAR(difference(&Timeline::exposed_communication_seconds), 1239.814, 1e-3);
  EXPECT_NEAR(difference(&Timeline::exposed_copy_seconds), -8.645, 1e-3);
  EXPECT_NEAR(difference(&Timeline::idle_seconds), 827.184, 1e-3);
  EXPECT_EQ(b.collectives.at(0).call.operation, "all_reduce");
  EXPECT_EQ(b.collectives[0].call.bytes, 9450497 * 4);
  EXPECT_NEAR(b.collectives[0].total_seconds, 1.552080, 1e-6);
  EXPECT_EQ(a.collectives.size(), 9u);
  EXPECT_EQ(a.kernels.at(0).calls, 162);
  EXPECT_NEAR(a.kernels[0].total_seconds, 1.285367, 1e-6);
}

TEST_F(SampleReports, ProductsAndAttentionAreThoseOfTheSummary) {
  const RecordedTotals totals = read_recorded_totals(folder() / "256thread");
  double products = 0.0;
  bool has_backward = false;
  for (const OperationTotal& each : totals.operations_shaped) {
    if (each.name == "aten::mm" || each.name == "aten::addmm") products += each.total_seconds;
    has_backward = has_backward || each.name == "aten::_scaled_dot_product_flash_attention backward";
  }
  EXPECT_NEAR(products, 0.872323, 1e-5);
  EXPECT_TRUE(has_backward);
  EXPECT_EQ(totals.operations.at(0).name, "aten::mm");
  EXPECT_EQ(totals.operations.size(), 38u);
}

}  // namespace
}  // namespace tprimat::logs
