#include "telemetry/gpu_library.h"

#include <gtest/gtest.h>

#include "telemetry/nvml.h"
#include "telemetry/rocm_smi.h"

namespace tprimat {
namespace {

TEST(Nvml, ReadsDevicesInBaseUnits) {
  const auto nvml = open_nvml(FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const auto devices = nvml->devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices[0].memory_bytes, 80e9);
  EXPECT_EQ(devices[0].power_limit_watts, 700.0);
  EXPECT_EQ(devices[0].cores, std::nullopt);  // the library lacks that function
  EXPECT_EQ(nvml->driver_version(), "550.54.15");
  EXPECT_EQ(nvml->stack_version(), "12.4");
  const Reading reading = nvml->read(0);
  EXPECT_EQ(reading.power_watts, 412.5);
  EXPECT_EQ(reading.energy_joules, 123456.0);
  EXPECT_EQ(reading.memory_used_bytes, 20e9);
  EXPECT_EQ(reading.temperature_celsius, 61.0);
  EXPECT_EQ(reading.clock_hz, 1.98e9);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.97);
}

TEST(Nvml, LeavesAbsentWhatADeviceDoesNotGive) {
  const auto nvml = open_nvml(FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const Reading reading = nvml->read(1);
  EXPECT_FALSE(reading.power_watts.has_value());
  EXPECT_FALSE(reading.energy_joules.has_value());
  EXPECT_TRUE(reading.memory_used_bytes.has_value());
}

TEST(RocmSmi, ReadsDevicesInBaseUnits) {
  const auto rocm = open_rocm_smi(FAKE_ROCM_SMI);
  ASSERT_NE(rocm, nullptr);
  const auto devices = rocm->devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].platform, Platform::amd);
  EXPECT_EQ(devices[0].name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(devices[0].memory_bytes, 206141652992.0);
  EXPECT_FALSE(devices[0].power_limit_watts.has_value());
  const Reading reading = rocm->read(0);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 650.0);
  EXPECT_NEAR(reading.energy_joules.value(), 15.3, 1e-5);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 58.0);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.99);
}

TEST(GpuLibrary, AbsentIsNormal) {
  EXPECT_EQ(open_nvml("libno-such-library.so"), nullptr);
  EXPECT_EQ(open_nvml(FAKE_ROCM_SMI), nullptr) << "a library without nvmlInit_v2 is not NVML";
  EXPECT_EQ(open_rocm_smi("libno-such-library.so"), nullptr);
}

}  // namespace
}  // namespace tprimat
