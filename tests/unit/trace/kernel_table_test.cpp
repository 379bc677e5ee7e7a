#include "trace/kernel_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/profile_summary.h"

namespace tprimat::logs {
namespace {

// In the form of `nsys stats --report cuda_gpu_kern_sum,cuda_gpu_mem_time_sum --format csv`.
constexpr const char* k_nsys =
    "Generating SQLite file x.sqlite from x.nsys-rep\n"
    "Processing [x.sqlite] with [cuda_gpu_kern_sum.py]... \n"
    "\n"
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    "60.0,6000000,30,200000.0,200000.0,190000,210000,10.0,\"void gemm<float, (int)4>(float *, int)\"\n"
    "30.0,\"3,000,000\",10,300000.0,300000.0,290000,310000,10.0,ncclDevKernel_AllReduce\n"
    "\n"
    "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n"
    "100.0,1000000,5,200000.0,200000.0,190000,210000,10.0,[CUDA memcpy Host-to-Device]\n";

constexpr const char* k_rocprof =
    "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\r\n"
    "\"Cijk_Ailk \"\"a\"\", b\",12,9000000,750000.000000,75.00,700000,800000,100.5\r\n"
    "\"__amd_rocclr_copyBuffer\",3,3000000,1000000.0,25.00,900000,1100000,100.5\r\n";

TEST(KernelTable, ReadsNsys) {
  ASSERT_TRUE(is_kernel_table(k_nsys));
  const DeviceSummary table = read_kernel_table(k_nsys, "x.csv");
  ASSERT_EQ(table.kernels.size(), 3u);
  EXPECT_EQ(table.kernels[0].name, "void gemm<float, (int)4>(float *, int)");
  EXPECT_EQ(table.kernels[0].kernel_class, KernelClass::matmul);
  EXPECT_DOUBLE_EQ(table.kernels[0].total_seconds, 0.006);
  EXPECT_DOUBLE_EQ(table.kernels[0].share, 0.6);
  EXPECT_DOUBLE_EQ(table.kernels[1].total_seconds, 0.003);
  EXPECT_EQ(table.kernels[2].kernel_class, KernelClass::copy);
  EXPECT_EQ(table.kernel_calls, 40);  // copies are none
  EXPECT_NEAR(table.kernel_seconds.value(), 0.009, 1e-12);
  EXPECT_EQ(table.classes[1].kernel_class, KernelClass::collective);
  EXPECT_FALSE(table.timeline.busy_seconds.has_value());  // not told
}

TEST(KernelTable, ReadsRocprof) {
  const ProfileSummary summary = summarise_profile(std::string_view(k_rocprof), "x_kernel_stats.csv");
  EXPECT_EQ(summary.format, ProfileFormat::kernel_table);
  const DeviceSummary& table = summary.devices.at(0);
  EXPECT_EQ(table.kernels.at(0).name, "Cijk_Ailk \"a\", b");
  EXPECT_EQ(table.kernels.at(0).calls, 12);
  EXPECT_EQ(table.classes.at(0).kernel_class, KernelClass::matmul);
  EXPECT_EQ(table.classes.at(1).kernel_class, KernelClass::elementwise);
  EXPECT_NE(render_profile(summary).find("table of kernels"), std::string::npos);
}

TEST(KernelTable, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(is_kernel_table("{\"Total Time (ns)\": 1}"));
  EXPECT_FALSE(is_kernel_table("Name,Calls\nx,1\n"));
  const std::string header = "Time (%),Total Time (ns),Instances,Name\n";
  EXPECT_THROW(read_kernel_table(header, "x"), Error);
  for (const char* row : {"1,-5,1,k", "1,x,1,k", "1,5,1.5,k", "1,nan,1,k", "1,5,1e300,k"})
    EXPECT_THROW(read_kernel_table(header + row, "x"), Error) << row;
  EXPECT_THROW(read_kernel_table(header + "short\n", "x"), Error);
}

}  // namespace
}  // namespace tprimat::logs
