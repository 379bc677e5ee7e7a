#include "telemetry/sensors.h"
#include "telemetry/small_files.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/clock.h"
#include "folder_fixture.h"
#include "telemetry/sampler.h"
#include "telemetry/sensor.h"

namespace tprimat {
namespace {

using RaplTest = FolderTest;

TEST_F(RaplTest, AddsPackagesAndMemoryAcrossWrapAround) {
  for (const auto& [zone, name] : {std::pair{"intel-rapl:0", "package-0"},
                                   {"intel-rapl:0:0", "core"},
                                   {"intel-rapl:0:1", "dram"},
                                   {"intel-rapl-mmio:0", "package-0"}}) {
    put(std::string(zone) + "/name", std::string(name) + "\n");
    put(std::string(zone) + "/energy_uj", "900000000\n");
    put(std::string(zone) + "/max_energy_range_uj", "1000000000\n");
  }
  const auto rapl = open_rapl(root_);
  ASSERT_NE(rapl, nullptr);
  EXPECT_EQ(rapl->read().energy_joules, 0.0);
  put("intel-rapl:0/energy_uj", "50000000");     // wrapped: 150 J
  put("intel-rapl:0:0/energy_uj", "999000000");  // part of the package: not counted again
  put("intel-rapl:0:1/energy_uj", "910000000");  // 10 J
  EXPECT_DOUBLE_EQ(rapl->read().energy_joules.value(), 160.0);
  put("intel-rapl:0/energy_uj", "60000000");
  EXPECT_DOUBLE_EQ(rapl->read().energy_joules.value(), 170.0);
  std::filesystem::remove(root_ / "intel-rapl:0/energy_uj");
  EXPECT_FALSE(rapl->read().energy_joules.has_value());
}

TEST_F(RaplTest, AbsentIsNormal) {
  EXPECT_EQ(open_rapl(root_), nullptr);
  EXPECT_EQ(open_rapl(root_ / "nowhere"), nullptr);
}

TEST(MachineTicks, CountsBusyTimeWithoutIdleAndWaiting) {
  const auto ticks = parse_machine_ticks("cpu  100 5 45 800 30 10 10 0 50 0\ncpu0 1 2 3\n");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_DOUBLE_EQ(ticks->busy, 170.0);
  EXPECT_DOUBLE_EQ(ticks->total, 1000.0);
  EXPECT_FALSE(parse_machine_ticks("").has_value());
}

using TreeTest = FolderTest;

TEST_F(TreeTest, AddsUpAFakeTree) {
  put("7/task/7/children", "8 ");
  put("7/stat", "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 100 50 10 5 20 0");
  put("7/statm", "1000 500 100 0 0 0 0");
  put("8/task/8/children", "");
  put("8/stat", "8 (x) R 7 7 7 0 -1 0 0 0 0 0 200 0 0 0 20 0");
  put("8/statm", "900 300 150 0 0 0 0");
  const auto usage = read_tree_usage(7, root_);
  ASSERT_TRUE(usage.has_value());
  EXPECT_EQ(usage->processes, 2u);
  EXPECT_DOUBLE_EQ(usage->cpu_seconds, 365.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_DOUBLE_EQ(usage->memory_bytes, (400.0 + 150.0 + 150.0) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_FALSE(read_tree_usage(99, root_).has_value());
}

// As of a process that ends between open and read: the open succeeds, and the read fails.
TEST(SmallFile, ThatCannotBeReadIsAbsent) {
  EXPECT_FALSE(read_small_file("/proc"));
  EXPECT_FALSE(read_small_file("/nowhere"));
  EXPECT_TRUE(read_small_file("/proc/self/stat"));
}

TEST(Sampler, WatchesARealProcessWithItsChild) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    const bool spins = ::fork() == 0;
    while (spins) ::getppid();
    ::pause();
  }
  for (int tries = 0; tries < 1000 && list_tree(parent).size() < 2; ++tries) ::usleep(10000);  // on a busy machine
  EXPECT_EQ(list_tree(parent).size(), 2u);
  Sampler sampler(open_sensors({parent, 1, {}}));
  ::usleep(500000);
  EXPECT_FALSE(sampler.latest().empty());
  const std::vector<SensorTrace> traces = sampler.stop();
  for (const pid_t process : list_tree(parent)) ::kill(process, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  ASSERT_GE(traces.size(), 2u);
  EXPECT_EQ(traces[0].source, "proc");
  EXPECT_GE(traces[0].readings.size(), 2u);  // five on an idle machine
  double busiest = 0.0;
  for (const Reading& reading : traces[0].readings) busiest = std::max(busiest, reading.utilisation.value_or(0.0));
  EXPECT_GT(busiest, 0.1);
  EXPECT_GT(traces[0].readings.back().memory_used_bytes.value_or(0.0), 1e5);
}

TEST(Sampler, ReadsCostlySensorsLessOften) {
  EXPECT_DOUBLE_EQ(sampling_interval(1.0), 0.1);
  EXPECT_DOUBLE_EQ(sampling_interval(3600.0), 0.2);
  EXPECT_DOUBLE_EQ(sampling_interval(3600.0, {200e-6, 700e-6, 10}), 0.2) << "together they are cheap";
  EXPECT_DOUBLE_EQ(sampling_interval(3600.0, {200e-6, 1e-3, 10}), 0.5);
  EXPECT_DOUBLE_EQ(sampling_interval(3600.0, {50e-6, 1e-3, 10}), 0.2) << "another one is to blame";
  EXPECT_DOUBLE_EQ(sampling_interval(3600.0, {0.1, 0.1, 10}), 1.0);
}

TEST(Sampler, MergesReadingsSoThatSumsOverTimeStay) {
  std::vector<Reading> readings(5);
  for (size_t i = 0; i < readings.size(); ++i) {
    const auto moment = static_cast<double>(i);
    readings[i].unix_time = 100.0 + moment;
    readings[i].power_watts = 10.0 * moment;
    readings[i].energy_joules = 1000.0 + 50.0 * moment;
    readings[i].memory_used_bytes = i == 1 ? 9e9 : 1e9;
    readings[i].throttle = i < 3 ? k_throttle_power | k_throttle_thermal : k_throttle_thermal;
  }
  readings[4].throttle = 0;
  readings[2].clock_hz = 1e9;
  const Reading merged = merge_readings(readings);
  EXPECT_DOUBLE_EQ(merged.unix_time, 102.0);
  EXPECT_DOUBLE_EQ(merged.power_watts.value(), 20.0);
  EXPECT_DOUBLE_EQ(merged.energy_joules.value(), 1100.0);
  EXPECT_DOUBLE_EQ(merged.memory_used_bytes.value(), 9e9);
  EXPECT_EQ(merged.throttle, k_throttle_power | k_throttle_thermal);
  EXPECT_FALSE(merged.clock_hz.has_value());
}

TEST(Thinner, KeepsADayInBounds) {
  Thinner thinner;
  std::vector<Reading> readings;
  for (int i = 0; i < 5 * 86400; ++i) {
    readings.emplace_back();
    readings.back().unix_time = 0.2 * i;
    readings.back().energy_joules = 100.0 * readings.back().unix_time;
    thinner.thin(readings);
  }
  EXPECT_LT(readings.size(), 100'000u);
  for (size_t i = 1; i < readings.size(); ++i) {
    ASSERT_LE(readings[i].unix_time - readings[i - 1].unix_time, 1.3);
    ASSERT_NEAR(readings[i].energy_joules.value(), 100.0 * readings[i].unix_time, 1e-3);
  }
  EXPECT_DOUBLE_EQ(readings[readings.size() - 2900].unix_time, 86400.0 - 0.2 * 2900);
}

TEST(Sampler, EndsAtOnce) {
  const auto start = SteadyClock::now();
  { Sampler sampler({}); }
  Sampler stopped({});
  EXPECT_TRUE(stopped.stop().empty());
  EXPECT_LT(seconds_since(start), 0.5);
}

}  // namespace
}  // namespace tprimat
