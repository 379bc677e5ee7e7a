// Libraries that lie, fail or fall silent: a figure is then absent and a note says why.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "gpu_fixture.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/gpu_library.h"
#include "telemetry/sampler.h"
#include "telemetry/sensor.h"
#include "telemetry/sensor_summary.h"
#include "telemetry/sensors.h"

namespace tprimat {
namespace {

struct LieCase {
  const char* lies;
  std::function<bool(const Reading&)> is_absent;
  const char* note;
};

bool without_power(const Reading& reading) { return !reading.power_watts; }
bool without_energy(const Reading& reading) { return !reading.energy_joules; }
bool without_temperature(const Reading& reading) { return !reading.temperature_celsius; }
bool without_memory(const Reading& reading) { return !reading.memory_used_bytes; }
bool without_utilisation(const Reading& reading) { return !reading.utilisation; }
bool without_anything(const Reading& r) {
  return without_power(r) && without_energy(r) && without_temperature(r) && without_memory(r) &&
         without_utilisation(r) && !r.clock_hz && !r.memory_clock_hz && !r.throttle;
}

// Reads the first device once, as the sampler does.
void expect_absent(OpenedLibrary opened, const LieCase& lie) {
  ASSERT_NE(opened.library, nullptr);
  const std::shared_ptr<const GpuLibrary> library = std::move(opened.library);
  const auto sensors = open_sensors({::getpid(), 1, {library}});
  Sensor& gpu = **std::find_if(sensors.begin(), sensors.end(),
                               [&](const auto& each) { return each->name() == library->name() + ":0"; });
  const Lies lies(lie.lies);
  const Reading reading = gpu.read();
  EXPECT_TRUE(lie.is_absent(reading)) << lie.lies;
  const std::vector<std::string> notes = gpu.notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(),
                          [&](const std::string& note) { return note.find(lie.note) != std::string::npos; }))
      << lie.lies << ": " << testing::PrintToString(notes);
}

TEST(Lies, OfNvmlLeaveTheFigureAbsentWithAReason) {
  const LieCase cases[] = {
      {"power_absurd", without_power, "power: no GPU draws that, such as 2.14748e+06 W"},
      {"power_zero", without_power, "power: no GPU draws that, such as 0 W"},
      {"energy_absurd", without_energy, "energy counter: no counter reads that"},
      {"temperature_255", without_temperature, "temperature: no GPU runs at that, such as 255 C"},
      {"temperature_zero", without_temperature, "temperature: no GPU runs at that, such as 0 C"},
      {"memory_over", without_memory, "memory: more than the device has, such as 160 GB"},
      {"utilisation_over", without_utilisation, "utilisation: a share lies between 0 and 100 %, such as 250 %"},
      {"clock_absurd", [](const Reading& r) { return !r.clock_hz && !r.memory_clock_hz; },
       "clock: no GPU runs at that"},
      {"not_supported", without_anything, "throttle reasons: not supported by this device"},
      {"all_lost", without_anything,
       "power, temperature, clock, memory clock, memory, utilisation, throttle reasons: the GPU is lost"},
  };
  for (const LieCase& each : cases) expect_absent(open_nvml(FAKE_NVML), each);
}

TEST(Lies, OfAmdSmiLeaveTheFigureAbsentWithAReason) {
  const LieCase cases[] = {
      {"power_absurd", without_power, "power: no GPU draws that"},
      {"power_unknown", without_power, "power: not supported by this device"},
      {"energy_absurd", without_energy, "energy counter: not supported by this device"},
      {"temperature_255", without_temperature, "such as 255 C"},
      {"temperature_zero", without_temperature, "such as 0 C"},
      {"memory_over", without_memory, "such as 300 GB"},
      {"utilisation_over", without_utilisation, "such as 400 %"},
      {"not_supported", without_anything, "not supported by this device"},
      {"all_lost", without_anything, "the device cannot be read"},
  };
  for (const char* version : {"24", "26"}) {
    const Setting setting("FAKE_AMD_SMI_VERSION", version);
    for (const LieCase& each : cases) expect_absent(open_amd_smi(FAKE_AMD_SMI), each);
  }
}

TEST(Lies, OfRocmSmiLeaveTheFigureAbsentWithAReason) {
  const LieCase cases[] = {
      {"power_absurd", without_power, "power: no GPU draws that"},
      {"energy_absurd", without_energy, "energy counter: no counter reads that"},
      {"temperature_255", without_temperature, "such as 255 C"},
      {"memory_over", without_memory, "such as 300 GB"},
      {"utilisation_over", without_utilisation, "such as 65535 %"},
      {"not_supported", without_anything, "not supported by this device"},
      {"all_lost", without_anything, "the device is not found"},
  };
  for (const LieCase& each : cases) expect_absent(open_rocm_smi(FAKE_ROCM_SMI), each);
}

TEST(Lies, AnOldLibraryWithoutMostFunctionsStillReadsTheRest) {
  const auto nvml = open_nvml(FAKE_NVML_BARE).library;
  ASSERT_NE(nvml, nullptr);
  FaultLog faults;
  faults.count_reading();
  const Reading reading = nvml->read(0, faults);
  EXPECT_EQ(reading.power_watts, 412.5);
  EXPECT_EQ(faults.notes(),
            std::vector<std::string>{
                "energy counter, utilisation, throttle reasons: this version of the library does not report it"});
  EXPECT_FALSE(nvml->devices()[0].power_limit_watts.has_value());
  EXPECT_FALSE(nvml->stack_version().has_value());
  const GpuState state = nvml->state(0);
  EXPECT_FALSE(state.ecc || state.uncorrected_errors || state.persistence || state.mig || state.pcie_lanes);
}

TEST(Lies, OfTheNumberOfDevicesEndNoProgram) {
  {
    const Lies lies("no_devices");
    EXPECT_NE(open_nvml(FAKE_NVML).refusal.find("sees no GPU"), std::string::npos);
    EXPECT_EQ(open_amd_smi(FAKE_AMD_SMI).library, nullptr);
    EXPECT_EQ(open_rocm_smi(FAKE_ROCM_SMI).library, nullptr);
  }
  const Lies lies("count_absurd");
  EXPECT_LE(open_nvml(FAKE_NVML).library->devices().size(), 256u);
  EXPECT_LE(open_amd_smi(FAKE_AMD_SMI).library->devices().size(), 256u);
  EXPECT_LE(open_rocm_smi(FAKE_ROCM_SMI).library->devices().size(), 256u);
}

TEST(Lies, ADeviceThatDoesNotExistIsNotRead) {
  for (const bool amd : {false, true}) {
    const OpenedLibrary opened = amd ? open_amd_smi(FAKE_AMD_SMI) : open_nvml(FAKE_NVML);
    FaultLog faults;
    faults.count_reading();
    EXPECT_TRUE(without_anything(opened.library->read(7, faults)));
    EXPECT_NE(faults.notes().at(0).find("the library rejects the request"), std::string::npos);
  }
}

// What a summary says of the first device of the fake NVML after `seconds` of sampling.
SensorSummary sample_fake(const std::string& words, double seconds) {
  const Lies lies(words);
  Sampler sampler(open_sensors({::getpid(), 1, {open_nvml(FAKE_NVML).library}}));
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  for (const SensorTrace& trace : sampler.stop())
    if (trace.source == "nvml:0" && !trace.readings.empty())
      return summarise_readings(trace, {trace.readings.front().unix_time, trace.readings.back().unix_time});
  ADD_FAILURE() << "the device was not read";
  return {};
}

TEST(LyingRun, AnHonestCounterIsConfirmed) {
  const SensorSummary summary = sample_fake("", 0.6);
  EXPECT_TRUE(summary.energy_valid.value_or(false)) << summary.energy_note.value_or("");
  EXPECT_EQ(summary.energy_note, "hardware energy counter, confirmed by integrated power");
  EXPECT_EQ(summary.throttle_shares.value().at("power"), 1.0);
  EXPECT_TRUE(summary.notes.empty()) << testing::PrintToString(summary.notes);
}

TEST(LyingRun, AFrozenCounterIsReplacedByIntegratedPower) {
  const SensorSummary summary = sample_fake("energy_frozen", 0.6);
  EXPECT_TRUE(summary.energy_valid.value_or(false));
  EXPECT_EQ(summary.energy_note, "integrated power: the energy counter did not advance");
  EXPECT_NEAR(summary.energy_joules.value() / summary.mean_power_watts.value(), 0.6, 0.3);
}

TEST(LyingRun, ACounterThatRunsBackwardsOrWrapsIsReplacedByIntegratedPower) {
  for (const char* lie : {"energy_backwards", "energy_wraps"}) {
    const SensorSummary summary = sample_fake(lie, 0.6);
    EXPECT_TRUE(summary.energy_valid.value_or(false));
    EXPECT_TRUE(summary.energy_note.value_or("").starts_with("integrated power: the energy counter went back by"))
        << summary.energy_note.value_or("");
  }
}

TEST(LyingRun, WithoutPowerAFrozenCounterGivesNoEnergy) {
  const SensorSummary summary = sample_fake("energy_frozen,power_absurd", 0.4);
  EXPECT_FALSE(summary.energy_joules.has_value());
  EXPECT_FALSE(summary.energy_valid.value_or(true));
  EXPECT_FALSE(summary.mean_power_watts.has_value());
  EXPECT_EQ(summary.energy_note, "the energy counter did not advance");
}

TEST(LyingRun, ADeviceLostOnTheWayGivesNoMeansAndNoEnergy) {
  const SensorSummary summary = sample_fake("lost_after=2", 1.2);
  EXPECT_GT(summary.samples, 2u);  // also after it was lost
  EXPECT_FALSE(summary.energy_joules.has_value());
  EXPECT_FALSE(summary.energy_valid.value_or(true));
  EXPECT_FALSE(summary.mean_power_watts.has_value());
  EXPECT_FALSE(summary.mean_temperature_celsius.has_value());
  const std::string notes = testing::PrintToString(summary.notes);
  EXPECT_NE(notes.find("the GPU is lost ("), std::string::npos) << notes;
  EXPECT_NE(notes.find("mean temperature: only"), std::string::npos) << notes;
}

TEST(FaultLog, CountsWhatRepeatsAndKeepsTheFirstExample) {
  FaultLog faults;
  for (int i = 0; i < 5; ++i) faults.count_reading();
  faults.record("power", "no GPU draws that", "9000 W");
  faults.record("power", "no GPU draws that", "9001 W");
  EXPECT_EQ(faults.notes(), std::vector<std::string>{"power: no GPU draws that, such as 9000 W (2 of 5 readings)"});
}

TEST(Plausible, FactsOfADeviceAreCheckedToo) {
  GpuFacts facts;
  facts.name = "GPU\x1b[31m";
  facts.memory_bytes = 1.8e19;
  facts.power_limit_watts = 0.0;
  facts = plausible_facts(facts);
  EXPECT_FALSE(facts.memory_bytes || facts.power_limit_watts);
  EXPECT_EQ(facts.name.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace tprimat
