#include "telemetry/machine.h"

#include "folder_fixture.h"

namespace tprimat {
namespace {

using MachineTest = FolderTest;

constexpr const char* k_two_sockets =
    "processor : 0\nmodel name : Intel(R) Xeon(R) Platinum 8480+\nphysical id : 0\ncore id : 0\nflags : fpu avx2 fma "
    "avx512f amx_bf16 amx_tile hypervisor vme\n\n"
    "processor : 1\nmodel name : Intel(R) Xeon(R) Platinum 8480+\nphysical id : 0\ncore id : 0\nflags : fpu\n\n"
    "processor : 2\nmodel name : Intel(R) Xeon(R) Platinum 8480+\nphysical id : 1\ncore id : 0\n\n"
    "processor : 3\nmodel name : Intel(R) Xeon(R) Platinum 8480+\nphysical id : 1\ncore id : 0\n";

TEST_F(MachineTest, CountsSocketsCoresAndThreads) {
  put("proc/cpuinfo", k_two_sockets);
  const CpuFacts cpu = read_cpu_facts(root_, 4);
  EXPECT_EQ(cpu.model_name, "Intel(R) Xeon(R) Platinum 8480+");
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.logical_processors, 4);
  EXPECT_EQ(cpu.usable_threads, 4);
  EXPECT_EQ(cpu.instruction_sets, (std::vector<std::string>{"avx2", "fma", "avx512f", "amx_tile", "amx_bf16"}));
}

TEST_F(MachineTest, QuotaOfVersion2LimitsThreads) {
  put("proc/self/cgroup", "0::/kubepods/pod1\n");
  put("sys/fs/cgroup/kubepods/pod1/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/kubepods/cpu.max", "250000 100000\n");  // the parent binds too
  put("sys/fs/cgroup/kubepods/pod1/memory.max", "8589934592\n");
  EXPECT_EQ(read_cpu_facts(root_, 64).usable_threads, 3);
  EXPECT_EQ(read_cpu_facts(root_, 2).usable_threads, 2);
  EXPECT_EQ(read_cgroup_limits(root_).memory_bytes, 8589934592.0);
}

TEST_F(MachineTest, LimitsOfVersion1) {
  put("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  const CgroupLimits limits = read_cgroup_limits(root_);
  EXPECT_EQ(limits.memory_bytes, 1073741824.0);
  EXPECT_EQ(limits.processors, 1.5);
}

TEST_F(MachineTest, NoLimitIsAbsent) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(read_cgroup_limits(root_).memory_bytes, std::nullopt);
  EXPECT_EQ(read_cgroup_limits(root_ / "nowhere").processors, std::nullopt);
}

TEST_F(MachineTest, AvailableMemoryIsWhatIsFreeOrAllowed) {
  EXPECT_EQ(available_memory_bytes(root_), std::nullopt);
  put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\n");
  EXPECT_EQ(available_memory_bytes(root_), 4096.0 * 1024.0);
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(available_memory_bytes(root_), 1048576.0);
}

TEST_F(MachineTest, DescribesContainerVirtualMachineAndSystem) {
  put("proc/cpuinfo", k_two_sockets);
  put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
  put("proc/1/cgroup", "0::/docker/abc\n");
  put("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  put("sys/class/dmi/id/sys_vendor", "QEMU\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("sys/devices/system/node/node0/x", "");
  put("sys/devices/system/node/node1/x", "");
  put("sys/devices/system/node/power/x", "");
  const MachineFacts machine = read_machine({}, root_);
  EXPECT_EQ(machine.memory_bytes, 16384.0 * 1024.0);
  EXPECT_EQ(machine.container, "docker");
  EXPECT_EQ(machine.virtual_machine, "QEMU");
  EXPECT_EQ(machine.distribution, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(machine.transparent_huge_pages, "madvise");
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_EQ(machine.platform, Platform::cpu);
}

TEST_F(MachineTest, AnEmptyRootGivesNoFactsAndNoCrash) {
  const MachineFacts machine = read_machine({}, root_);
  EXPECT_EQ(machine.memory_bytes, std::nullopt);
  EXPECT_EQ(machine.numa_nodes, std::nullopt);
  EXPECT_FALSE(machine.kernel.empty());
}

TEST(ThisMachine, IsDescribed) {
  const MachineFacts machine = read_machine({});
  EXPECT_GT(machine.memory_bytes.value_or(0.0), 1e8);
  EXPECT_GE(machine.cpu.logical_processors, 1);
  EXPECT_GE(machine.cpu.usable_threads, 1);
  EXPECT_LE(machine.cpu.usable_threads, machine.cpu.logical_processors);
}

}  // namespace
}  // namespace tprimat
