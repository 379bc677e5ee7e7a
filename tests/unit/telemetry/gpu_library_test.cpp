#include "telemetry/gpu_library.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_fixture.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/nvml_functions.h"
#include "telemetry/sensor.h"

namespace tprimat {
namespace {

Reading read_once(const GpuLibrary& library, int64_t device) {
  FaultLog faults;
  return library.read(device, faults);
}

TEST(Nvml, ReadsDevicesInBaseUnits) {
  const auto nvml = open_nvml(FAKE_NVML).library;
  ASSERT_NE(nvml, nullptr);
  const auto devices = nvml->devices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices[0].memory_bytes, 80e9);
  EXPECT_EQ(devices[0].power_limit_watts, 700.0);
  EXPECT_EQ(devices[0].cores, 16896);
  EXPECT_EQ(devices[0].compute_units, 132) << "SMs of 128 CUDA cores";
  EXPECT_EQ(devices[1].compute_units, 58);
  EXPECT_EQ(nvml->driver_version(), "550.54.15");
  EXPECT_EQ(nvml->stack_version(), "12.4");
  const Reading reading = read_once(*nvml, 0);
  EXPECT_EQ(reading.power_watts, 412.5);
  EXPECT_NEAR(reading.energy_joules.value(), 123456.0, 60 * 412.5);
  EXPECT_EQ(reading.memory_used_bytes, 20e9);
  EXPECT_EQ(reading.temperature_celsius, 61.0);
  EXPECT_EQ(reading.clock_hz, 1.98e9);
  EXPECT_EQ(reading.memory_clock_hz, 2.619e9);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.97);
  EXPECT_EQ(reading.throttle, k_throttle_power);
}

TEST(Nvml, LeavesAbsentWhatADeviceDoesNotGive) {
  const auto nvml = open_nvml(FAKE_NVML).library;
  ASSERT_NE(nvml, nullptr);
  FaultLog faults;
  faults.count_reading();
  const Reading reading = nvml->read(1, faults);
  EXPECT_FALSE(reading.power_watts.has_value());
  EXPECT_FALSE(reading.energy_joules.has_value());
  EXPECT_TRUE(reading.memory_used_bytes.has_value());
  EXPECT_EQ(faults.notes(), std::vector<std::string>{"energy counter, power: not supported by this device"});
}

TEST(Nvml, TellsTheStateOfADevice) {
  const auto nvml = open_nvml(FAKE_NVML).library;
  ASSERT_NE(nvml, nullptr);
  const GpuState good = nvml->state(0);
  EXPECT_EQ(good.ecc, true);
  EXPECT_EQ(good.uncorrected_errors, 0);
  EXPECT_EQ(good.persistence, true);
  EXPECT_EQ(good.mig, false);
  EXPECT_EQ(good.max_clock_hz, 1.98e9);
  EXPECT_EQ(good.slowdown_celsius, 89.0);
  EXPECT_EQ(good.pcie_lanes, 16);
  EXPECT_EQ(good.now.temperature_celsius, 61.0);
  const Lies lies("ecc_errors,no_persistence,mig,narrow_link,hot");
  const GpuState bad = nvml->state(0);
  EXPECT_EQ(bad.uncorrected_errors, 3);
  EXPECT_EQ(bad.persistence, false);
  EXPECT_EQ(bad.mig, true);
  EXPECT_EQ(bad.pcie_lanes, 4);
  EXPECT_EQ(bad.now.throttle, k_throttle_thermal | k_throttle_hardware);
}

TEST(Nvml, NumbersDevicesAsTheLibraryDoes) {
  const Lies lies("first_hidden");
  const auto nvml = open_nvml(FAKE_NVML).library;
  ASSERT_NE(nvml, nullptr);
  const auto devices = nvml->devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].index, 1);
  EXPECT_EQ(devices[0].name, "NVIDIA L4");
}

TEST(Nvml, SortsThrottleReasons) {
  EXPECT_EQ(nvml::to_throttle(0x1), 0u) << "an idle GPU";
  EXPECT_EQ(nvml::to_throttle(0x100), k_throttle_set);
  EXPECT_EQ(nvml::to_throttle(0x200), k_throttle_hardware) << "the limit of the board";
  EXPECT_EQ(nvml::to_throttle(0x400), k_throttle_hardware) << "reliability";
}

TEST(RocmSmi, ReadsDevicesInBaseUnits) {
  const auto rocm = open_rocm_smi(FAKE_ROCM_SMI).library;
  ASSERT_NE(rocm, nullptr);
  const auto devices = rocm->devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].platform, Platform::amd);
  EXPECT_EQ(devices[0].name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(devices[0].memory_bytes, 206141652992.0);
  EXPECT_FALSE(devices[0].power_limit_watts.has_value());
  const Reading reading = read_once(*rocm, 0);
  EXPECT_DOUBLE_EQ(reading.power_watts.value(), 650.0);
  EXPECT_NEAR(reading.energy_joules.value(), 15.3, 60 * 650.0);
  EXPECT_DOUBLE_EQ(reading.temperature_celsius.value(), 58.0);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.99);
  EXPECT_EQ(reading.clock_hz, 2.1e9);
  EXPECT_EQ(reading.memory_clock_hz, 1.3e9);
}

TEST(RocmSmi, ReadsClocksInBothLayouts) {
  const auto rocm = open_rocm_smi(FAKE_ROCM_SMI).library;
  ASSERT_NE(rocm, nullptr);
  const Setting old("FAKE_OLD_FREQUENCIES", "1");
  EXPECT_EQ(read_once(*rocm, 0).clock_hz, 2.1e9);
}

class AmdSmiVersions : public testing::TestWithParam<const char*> {};

TEST_P(AmdSmiVersions, ReadsDevicesInBaseUnits) {
  const Setting version("FAKE_AMD_SMI_VERSION", GetParam());
  const auto amd = open_amd_smi(FAKE_AMD_SMI).library;
  ASSERT_NE(amd, nullptr);
  const auto devices = amd->devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].platform, Platform::amd);
  EXPECT_EQ(devices[0].name, "AMD Instinct MI300X");
  EXPECT_EQ(devices[0].memory_bytes, 206141652992.0);
  EXPECT_EQ(devices[0].power_limit_watts, 750.0);
  EXPECT_EQ(amd->driver_version(), "6.8.5");
  read_once(*amd, 0);
  const Reading reading = read_once(*amd, 0);
  EXPECT_EQ(reading.power_watts, 650.0);
  EXPECT_NEAR(reading.energy_joules.value(), 1000.0, 60 * 650.0);
  EXPECT_EQ(reading.temperature_celsius, 58.0);
  EXPECT_EQ(reading.memory_used_bytes, 30e9);
  EXPECT_DOUBLE_EQ(reading.utilisation.value(), 0.99);
  EXPECT_EQ(reading.clock_hz, 1.9e9);
  EXPECT_EQ(reading.memory_clock_hz, 1.3e9);
  EXPECT_EQ(reading.throttle, k_throttle_power);
  const Lies lies("hot");
  EXPECT_NE(read_once(*amd, 0).throttle.value() & k_throttle_thermal, 0u);
}

// Of ROCm 6.2, 6.3.1, 6.3.3, 6.4 and 7.0.
INSTANTIATE_TEST_SUITE_P(Known, AmdSmiVersions, testing::Values("24.6", "24.7", "25.1", "25.25", "26.0"),
                         [](const auto& each) {
                           std::string name = std::string("v") + each.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(AmdSmi, TellsTheStateOfADevice) {
  const auto amd = open_amd_smi(FAKE_AMD_SMI).library;
  ASSERT_NE(amd, nullptr);
  EXPECT_EQ(amd->state(0).uncorrected_errors, 0);
  EXPECT_EQ(amd->state(0).partition, "SPX");
  EXPECT_EQ(amd->state(0).max_clock_hz, 2.1e9);
  const Lies lies("ecc_errors,partitioned");
  EXPECT_EQ(amd->state(0).uncorrected_errors, 3);
  EXPECT_EQ(amd->state(0).partition, "CPX");
}

TEST(AmdSmi, RefusesVersionsThatItDoesNotKnow) {
  for (const char* unknown : {"23", "27"}) {
    const Setting version("FAKE_AMD_SMI_VERSION", unknown);
    const OpenedLibrary opened = open_amd_smi(FAKE_AMD_SMI);
    EXPECT_EQ(opened.library, nullptr);
    EXPECT_EQ(opened.refusal,
              std::string("AMD SMI (libamd_smi) has version ") + unknown + "; this program supports versions 24 to 26");
  }
}

TEST(GpuLibrary, AbsentIsNormal) {
  EXPECT_EQ(open_nvml("libno-such-library.so").library, nullptr);
  EXPECT_EQ(open_nvml("libno-such-library.so").refusal, "");
  EXPECT_EQ(open_nvml(FAKE_ROCM_SMI).library, nullptr) << "a library without nvmlInit_v2 is not NVML";
  EXPECT_NE(open_nvml(FAKE_ROCM_SMI).refusal, "");
  EXPECT_EQ(open_rocm_smi("libno-such-library.so").library, nullptr);
  EXPECT_EQ(open_amd_smi("libno-such-library.so").library, nullptr);
}

TEST(GpuLibrary, SaysWhyItDoesNotStart) {
  const Lies lies("init_fails");
  EXPECT_NE(open_nvml(FAKE_NVML).refusal.find("the driver is not loaded"), std::string::npos);
  EXPECT_NE(open_amd_smi(FAKE_AMD_SMI).refusal.find("the driver is not loaded"), std::string::npos);
  EXPECT_NE(open_rocm_smi(FAKE_ROCM_SMI).refusal.find("the driver is not loaded"), std::string::npos);
}

}  // namespace
}  // namespace tprimat
