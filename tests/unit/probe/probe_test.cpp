#include <gtest/gtest.h>

#include <algorithm>

#include "probe/gemm_probe.h"
#include "probe/memory_probe.h"

namespace tprimat {
namespace {

TEST(MeasureGemmPeak, TheFastestShapeIsThePeakAndTheRuleIsStated) {
  const auto peak = measure_gemm_peak(Precision::fp32, 1);
  ASSERT_TRUE(peak);
  ASSERT_GE(peak->shapes.size(), 3u);
  double fastest = 0;
  for (const GemmRate& shape : peak->shapes) {
    EXPECT_GT(shape.flops_per_second, 1e8);
    EXPECT_TRUE(shape.cpu_share > 0 && shape.cpu_share <= 1) << shape.cpu_share;
    fastest = std::max(fastest, shape.flops_per_second);
  }
  EXPECT_EQ(peak->flops_per_second, fastest);
  EXPECT_LT(fastest, 2e12);  // no core does this many fp32 operations
  EXPECT_NE(peak->how.find("1 threads"), std::string::npos) << peak->how;
}

TEST(MeasureGemmPeak, IsAbsentWithoutInstructions) {
  EXPECT_FALSE(measure_gemm_peak(Precision::fp8, 1));
  EXPECT_FALSE(measure_gemm_peak(Precision::tf32, 1));
}

TEST(MeasureMemoryBandwidth, IsPlausible) {
  const MemoryBandwidth memory = measure_memory_bandwidth(0);
  EXPECT_GT(memory.read_bytes_per_second, 1e8);
  EXPECT_LT(memory.read_bytes_per_second, 1e13);
  EXPECT_GT(memory.triad_bytes_per_second, 1e8);
  EXPECT_GT(memory.buffer_bytes, 0);
}

}  // namespace
}  // namespace tprimat
