#include "telemetry/gpu_libraries.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "folder_fixture.h"

namespace tprimat {
namespace {

std::vector<GpuProcess> on_device(const std::vector<GpuProcess>& all, int64_t device) {
  std::vector<GpuProcess> found;
  for (const GpuProcess& each : all)
    if (each.device == device) found.push_back(each);
  return found;
}

class GpuProcesses : public FolderTest {};

TEST_F(GpuProcesses, OfNvmlAreNamedWhereTheyAreSeen) {
  ::setenv("FAKE_GPU_PROCESSES", "17 4", 1);
  put("17/comm", "python3\n");
  const auto all = gpu_processes({open_nvml(FAKE_NVML).library}, root_);
  ::unsetenv("FAKE_GPU_PROCESSES");
  const auto first = on_device(all, 0);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0], (GpuProcess{"nvml", Platform::nvd, 0, 4, "", 3e9}));
  EXPECT_EQ(first[1], (GpuProcess{"nvml", Platform::nvd, 0, 17, "python3", 3e9}));
  EXPECT_EQ(describe(first[0]), "process 4 on GPU 0, 3.00 GB");
  EXPECT_EQ(describe(first[1]), "process 17 (python3) on GPU 0, 3.00 GB");
}

TEST_F(GpuProcesses, AreAskedForUntilAllFit) {
  const auto second = on_device(gpu_processes({open_nvml(FAKE_NVML).library}, root_), 1);
  ASSERT_EQ(second.size(), 100u);
  EXPECT_FALSE(second[0].memory_bytes.has_value()) << "the driver does not say";
  EXPECT_EQ(second[1].memory_bytes, 1e6);
  EXPECT_EQ(describe(second[0]), "process 4711 on GPU 1");
}

TEST_F(GpuProcesses, OfRocmSmiAreThoseOfTheDevice) {
  const auto all = gpu_processes({open_rocm_smi(FAKE_ROCM_SMI).library}, root_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], (GpuProcess{"rocm_smi", Platform::amd, 0, 4711, "", 5e9}));
}

TEST_F(GpuProcesses, ComputeUnitsAreThoseThatTheKernelLists) {
  put("0/gpu_id", "0\n");
  put("0/properties", "simd_count 0\nsimd_per_cu 0\n");
  put("1/gpu_id", "51234\n");
  put("1/properties", "cpu_cores_count 0\nsimd_count 1216\nsimd_per_cu 4\nmax_waves_per_simd 8\n");
  put("2/gpu_id", "99\n");
  put("2/properties", "simd_count many\n");
  EXPECT_EQ(read_kfd_compute_units(root_, 51234), 304);
  EXPECT_EQ(read_kfd_compute_units(root_, 99), std::nullopt);
  EXPECT_EQ(read_kfd_compute_units(root_, 0), std::nullopt) << "the processor's node";
  EXPECT_EQ(read_kfd_compute_units(root_ / "nowhere", 51234), std::nullopt);
}

TEST_F(GpuProcesses, OfAmdSmiAreThoseThatTheKernelLists) {
  put("4711/vram_51234", "5000000000\n");
  put("4711/vram_99", "1\n");
  put("4712/vram_51234", "0\n");
  put("4713/vram_99", "7\n");
  put("self/vram_51234", "7\n");
  const auto holders = read_kfd_holders(root_, 51234);
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(holders[0].process, 4711);
  EXPECT_EQ(holders[0].memory_bytes, 5e9);
  EXPECT_TRUE(read_kfd_holders(root_ / "nowhere", 1).empty());
}

}  // namespace
}  // namespace tprimat
