// Machines with Arm processors, as their kernels describe them: a GH200, clouds, boards, a Mac.
#include "folder_fixture.h"
#include "telemetry/machine.h"

namespace tprimat {
namespace {

std::string arm_block(int number, const std::string& implementer, const std::string& part) {
  return "processor\t: " + std::to_string(number) +
         "\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve bf16 i8mm sve2 svebf16" +
         "\nCPU implementer\t: " + implementer + "\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: " + part +
         "\nCPU revision\t: 0\n\n";
}

class ArmMachineTest : public FolderTest {
 protected:
  void put_processors(const std::vector<std::string>& parts, const std::string& implementer = "0x41") {
    std::string text;
    for (const std::string& part : parts) text += arm_block(processors_++, implementer, part);
    put("proc/cpuinfo", text);
  }
  void put_topology(int processor, const std::string& package, const std::string& core, const std::string& threads) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
    put(folder + "physical_package_id", package + "\n");
    put(folder + "core_id", core + "\n");
    put(folder + "thread_siblings_list", threads + "\n");
  }
  void put_node(const std::string& number, const std::string& processors, const std::string& total,
                const std::string& free) {
    const std::string folder = "sys/devices/system/node/node" + number + "/", line = "Node " + number + " ";
    put(folder + "cpulist", processors + "\n");
    put(folder + "meminfo", line + "MemTotal:       " + total + " kB\n" + line + "MemFree:        " + free + " kB\n");
  }
  std::string name_of(const std::string& implementer, const std::string& part) {
    put("proc/cpuinfo", arm_block(0, implementer, part));
    return read_cpu_facts(root_, 1).model_name;
  }

 private:
  int processors_ = 0;
};

TEST_F(ArmMachineTest, GivesNumbersForNames) {
  put_processors({"0xd4f", "0xd4f"});  // a GB200's host
  const CpuFacts cpu = read_cpu_facts(root_, 1);
  EXPECT_EQ(cpu.model_name, "Neoverse-V2");
  EXPECT_EQ(cpu.logical_processors, 2);
  EXPECT_EQ(cpu.instruction_sets, (std::vector<std::string>{"asimd", "bf16", "i8mm", "sve", "sve2", "svebf16"}));
  EXPECT_EQ(cpu.sockets, std::nullopt) << "without /sys";
  EXPECT_EQ(cpu.cores, std::nullopt);
}

TEST_F(ArmMachineTest, NumbersOfOneMakerAreNotAnothers) {
  EXPECT_EQ(name_of("0x41", "0xd40"), "Neoverse-V1");  // Graviton3
  EXPECT_EQ(name_of("0x41", "0xd0c"), "Neoverse-N1");  // Ampere Altra, Graviton2
  EXPECT_EQ(name_of("0xc0", "0xac4"), "Ampere-1a");    // AmpereOne
  EXPECT_EQ(name_of("0x48", "0xd01"), "Kunpeng-920");
  EXPECT_EQ(name_of("0x61", "0xd40"), "unknown processor (implementer 0x61, part 0xd40)");
  EXPECT_EQ(name_of("0x61", "0x000"), "unknown processor (implementer 0x61, part 0x000)")
      << "a virtual machine on a Mac";
}

TEST_F(ArmMachineTest, TwoKindsOfCoresAreBothNamed) {
  put_processors({"0xd87", "0xd85", "0xd87"});  // of a GB10
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "Cortex-A725 + Cortex-X925");
  put("proc/cpuinfo", arm_block(0, "0x61", "0x022") + arm_block(1, "0x61", "0x023"));
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "Icestorm-M1 + Firestorm-M1");
}

TEST_F(ArmMachineTest, AnUnknownProcessorKeepsItsNumbers) {
  EXPECT_EQ(name_of("0x41", "0xfff"), "unknown processor (implementer 0x41, part 0xfff)");
  EXPECT_EQ(name_of("nonsense", "0xd4f"), "unknown processor (implementer nonsense, part 0xd4f)");
  EXPECT_EQ(name_of("0x41", "0xd4fxyz"), "unknown processor (implementer 0x41, part 0xd4fxyz)");
  put("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 243.75\nCPU part\t: 0xd40\n");
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "unknown processor");
}

TEST_F(ArmMachineTest, ABoardIsNoProcessor) {
  put("proc/cpuinfo",
      arm_block(0, "0x41", "0xd08") + "Hardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n");
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "Cortex-A72");
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: ARMv8 Processor rev 1 (v8l)\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "Neoverse-N1");
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: Phytium,FT-2500/128\nCPU implementer\t: 0x70\nCPU part\t: 0x663\n");
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "Phytium,FT-2500/128");
  put("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 38.40\nHardware\t: BCM2835\n");
  EXPECT_EQ(read_cpu_facts(root_, 1).model_name, "BCM2835");
}

TEST_F(ArmMachineTest, SocketsAndCoresAreInSys) {
  put_processors({"0xd4f", "0xd4f", "0xd4f"});
  put("sys/firmware/acpi/tables/PPTT", "");
  for (const auto& [number, package] : {std::pair{0, "0"}, {1, "0"}, {2, "1"}})
    put_topology(number, package, std::to_string(number), std::to_string(number));
  CpuFacts cpu = read_cpu_facts(root_, 1);
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.cores, 3);
  put_topology(2, "-1", "-1", "2");  // the kernel knows none
  cpu = read_cpu_facts(root_, 1);
  EXPECT_EQ(cpu.sockets, std::nullopt);
  EXPECT_EQ(cpu.cores, 3);
}

TEST_F(ArmMachineTest, ClustersAreNeitherSocketsNorDoTheyShareCores) {
  put_processors({"0xd03", "0xd03", "0xd08", "0xd08"});
  // Of a board with two clusters. Newer kernels: one package, and in each cluster the same ids.
  for (const auto& [number, core] : {std::pair{0, "0"}, {1, "1"}, {2, "0"}, {3, "1"}})
    put_topology(number, "0", core, std::to_string(number));
  CpuFacts cpu = read_cpu_facts(root_, 1);
  EXPECT_EQ(cpu.sockets, 1);
  EXPECT_EQ(cpu.cores, 4);
  for (const int number : {2, 3}) put_topology(number, "1", std::to_string(number - 2), std::to_string(number));
  cpu = read_cpu_facts(root_, 1);  // older kernels
  EXPECT_EQ(cpu.sockets, std::nullopt);
  EXPECT_EQ(cpu.cores, 4);
}

TEST_F(ArmMachineTest, TheFastestCoreGivesTheClock) {
  put_processors({"0xd87", "0xd85"});
  put("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "2808000\n");
  put("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "3900000\n");
  EXPECT_EQ(read_cpu_facts(root_, 1).max_mhz, 3900.0);
}

// A GH200: one node with processors, one with the GPU's memory, and seven empty ones for parts of the GPU.
TEST_F(ArmMachineTest, MemoryOfTheGpuIsNotTheMachines) {
  put_processors({"0xd4f"});
  put("proc/meminfo", "MemTotal:       600000000 kB\nMemFree: 1 kB\nMemAvailable:    590000000 kB\n");
  put_node("0", "0-71", "500000000", "400000000");
  put_node("1", "", "100000000", "99000000");
  for (int number = 2; number <= 8; ++number) put_node(std::to_string(number), "", "0", "0");
  const std::string status = "proc/driver/nvidia/gpus/0009:01:00.0/numa_status";
  put(status, "Node:      1\nStatus:    online\nAddress:   120000000000\nSize:      1800000000\n");
  MachineFacts machine = read_machine({}, root_);
  EXPECT_EQ(machine.memory_bytes, 500000000 * 1024.0);
  EXPECT_EQ(machine.numa_nodes, 1);
  EXPECT_EQ(available_memory_bytes(root_), 491000000 * 1024.0);
  for (const char* elsewhere : {"Node:      -1\nStatus:    disabled\n", "Node:      1\nStatus:    offline\n", ""}) {
    put(status, elsewhere);  // the driver keeps the memory to itself
    machine = read_machine({}, root_);
    EXPECT_EQ(machine.memory_bytes, 600000000 * 1024.0) << elsewhere;
    EXPECT_EQ(machine.numa_nodes, 2) << elsewhere;
  }
}

TEST_F(ArmMachineTest, FirmwareNamesVirtualMachines) {
  put_processors({"0xd4f"});
  const auto found = [&](const std::string& vendor, const std::string& product) {
    put("sys/class/dmi/id/sys_vendor", vendor + "\n");
    put("sys/class/dmi/id/product_name", product + "\n");
    return read_machine({}, root_).virtual_machine;
  };
  EXPECT_EQ(found("NVIDIA", "GB200 NVL"), std::nullopt);
  EXPECT_EQ(found("Supermicro", "ARS-121GL-NBO"), std::nullopt);
  EXPECT_EQ(found("Microsoft Corporation", "Surface Pro X"), std::nullopt);
  EXPECT_EQ(found("Amazon EC2", "c7g.metal"), std::nullopt);
  EXPECT_EQ(found("Amazon EC2", "c8g.16xlarge"), "Amazon EC2 c8g.16xlarge");
  EXPECT_EQ(found("QEMU", "KVM Virtual Machine"), "QEMU KVM Virtual Machine");
  EXPECT_EQ(found("Microsoft Corporation", "Virtual Machine"), "Microsoft Corporation Virtual Machine");
  EXPECT_EQ(found("", ""), std::nullopt);
  put("proc/device-tree/hypervisor/compatible", "linux,kvm");
  EXPECT_EQ(found("", ""), "unnamed hypervisor");
}

}  // namespace
}  // namespace tprimat
