#include "doctor/doctor_facts.h"

#include <gtest/gtest.h>

#include "unit/telemetry/folder_fixture.h"

namespace tprimat::suite {
namespace {

class HostFactsTest : public FolderTest {
 protected:
  void put_processors() {
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    put("sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "powersave\n");
    put("sys/devices/system/cpu/cpufreq/boost", "0\n");
    put("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    put("sys/devices/system/cpu/smt/active", "1\n");
    put("proc/sys/kernel/numa_balancing", "1\n");
    put("proc/loadavg", "3.25 2.00 1.00 2/300 4711\n");
    put("proc/stat", "cpu  100 0 0 900 0 0 0 0 0 0\n");
    put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\nSwapTotal: 300 kB\nSwapFree: 100 kB\n");
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  }

  void put_pci_devices() {
    put("sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:17:00.0/class", "0x030200\n");
    put("sys/bus/pci/devices/0000:16:00.0/vendor", "0x1002\n");
    put("sys/bus/pci/devices/0000:16:00.0/class", "0x120000\n");
    put("sys/bus/pci/devices/0000:00:1f.3/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:00:1f.3/class", "0x040300\n");  // sound of a graphics card
  }
};

TEST_F(HostFactsTest, ReadsWhatTheKernelTells) {
  put_processors();
  put_pci_devices();
  const HostFacts facts = read_host_facts(root_, 0.0);
  EXPECT_EQ(facts.governors, (std::vector<std::string>{"performance", "powersave"}));
  EXPECT_EQ(facts.turbo, true);
  EXPECT_EQ(facts.smt, true);
  EXPECT_EQ(facts.numa_balancing, true);
  EXPECT_EQ(facts.load, 3.25);
  EXPECT_EQ(facts.swap_used_bytes, 200.0 * 1024);
  EXPECT_EQ(facts.available_memory_bytes, 500.0 * 1024);
  EXPECT_EQ(facts.clock_source, "tsc");
  EXPECT_FALSE(facts.busy_share.has_value()) << "no time passed";
  ASSERT_EQ(facts.pci_gpus.size(), 2u);
  EXPECT_EQ(facts.pci_gpus[0].address, "0000:16:00.0");
  EXPECT_FALSE(facts.pci_gpus[0].nvidia);
  EXPECT_TRUE(facts.pci_gpus[1].nvidia);
}

TEST_F(HostFactsTest, LeavesAbsentWhatIsNotTold) {
  const HostFacts facts = read_host_facts(root_, 0.0);
  EXPECT_TRUE(facts.governors.empty());
  EXPECT_FALSE(facts.turbo || facts.smt || facts.numa_balancing || facts.load || facts.clock_source ||
               facts.swap_bytes);
  EXPECT_FALSE(facts.shared_memory_bytes.has_value());
}

TEST(HostFacts, OfThisMachineAreSensible) {
  const HostFacts facts = read_host_facts("/", 0.2);
  ASSERT_TRUE(facts.busy_share && facts.open_files);
  EXPECT_GE(*facts.busy_share, 0.0);
  EXPECT_LE(*facts.busy_share, 1.0);
}

TEST_F(HostFactsTest, AFolderThatIsNotThereYetIsOnTheDiskOfItsParent) {
  const FolderFacts facts = read_folder_facts(root_ / "not/yet/there");
  EXPECT_EQ(facts.path, root_.string());
  EXPECT_TRUE(facts.writable);
  EXPECT_GT(facts.free_bytes.value_or(0.0), 0.0);
}

}  // namespace
}  // namespace tprimat::suite
