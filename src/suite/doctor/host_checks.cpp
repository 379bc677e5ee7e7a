#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/checks.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr double k_others_share = 0.1;  // of the machine's threads: from here on `run` warns
constexpr double k_stolen_share = 0.02;
constexpr double k_little_memory = 2e9, k_little_swap = 1e9;
constexpr double k_little_disk = 2e9, k_no_disk = 50e6;
constexpr double k_little_shared_memory = 1e9;  // PyTorch's data loaders and NCCL; docker gives 64 MB
constexpr double k_locked_memory_wanted = 64e6, k_files_wanted = 4096;

void judge_governor(const DoctorFacts& facts, AreaFindings& findings) {
  const auto& governors = facts.host.governors;
  if (governors.empty()) return findings.note("frequency governor: unknown, as in most virtual machines");
  const bool fast = governors.size() == 1 && governors.front() == "performance";
  const std::string what = fmt::format("frequency governor: {}", join(governors, ", "));
  if (fast)
    findings.ok(what);
  else
    findings.add(facts.platform() == Platform::cpu ? MachineSeverity::warning : MachineSeverity::note, "governor", what,
                 "sudo cpupower frequency-set -g performance");
}

void judge_threads(const DoctorFacts& facts, AreaFindings& findings) {
  const CpuFacts& cpu = facts.machine.cpu;
  if (cpu.usable_threads < cpu.logical_processors)
    findings.note(fmt::format("{} of {} hardware threads are usable: CPU affinity or container quota",
                              cpu.usable_threads, cpu.logical_processors));
  if (facts.host.smt == true) findings.note("SMT is on: two threads on one core are slower than on two cores");
  if (facts.host.turbo == true)
    findings.note("turbo is on: the clock varies with temperature and load",
                  facts.platform() == Platform::cpu ? "leave it on for speed; repeat runs to see the spread" : "");
}

void judge_others(const DoctorFacts& facts, AreaFindings& findings) {
  const auto threads = static_cast<double>(facts.machine.cpu.logical_processors);
  if (facts.host.busy_share) {
    const std::string what = fmt::format("other processes keep {:.1f} of {:.0f} hardware threads busy",
                                         *facts.host.busy_share * threads, threads);
    if (*facts.host.busy_share > k_others_share)
      findings.warn("busy_processor", what, "wait, or stop them; `top` lists them");
    else
      findings.ok(what);
  }
  if (facts.host.stolen_share.value_or(0.0) > k_stolen_share)
    findings.warn(
        "stolen_time",
        fmt::format("the hypervisor steals {} of the CPU time (steal time)", format_percent(*facts.host.stolen_share)),
        "repeat runs, or use a dedicated machine");
  if (facts.host.load.value_or(0.0) > threads + 1.0)
    findings.note(
        fmt::format("load average {:.1f} over the last minute on {:.0f} hardware threads", *facts.host.load, threads));
}

std::string describe_limit(const ResourceLimit& limit) {
  return limit.value ? format_si(*limit.value, "B") : std::string("unlimited");
}

}  // namespace

std::vector<MachineFinding> check_processor(const DoctorFacts& facts) {
  AreaFindings findings("processor");
  findings.ok(facts.machine.cpu.model_name);
  judge_others(facts, findings);
  judge_governor(facts, findings);
  judge_threads(facts, findings);
  if (facts.machine.numa_nodes.value_or(1) > 1 && facts.host.numa_balancing == true)
    findings.add(facts.platform() == Platform::cpu ? MachineSeverity::warning : MachineSeverity::note, "numa_balancing",
                 fmt::format("{} NUMA nodes, and the kernel migrates pages between them (NUMA balancing)",
                             *facts.machine.numa_nodes),
                 "sudo sysctl kernel.numa_balancing=0");
  return findings.take();
}

static void add_available_memory(AreaFindings& findings, double bytes, const MachineFacts& machine) {
  std::string what = format_gb(bytes) + " available";
  if (machine.memory_bytes) what += " of " + format_gb(*machine.memory_bytes);
  if (machine.memory_limit_bytes) what += ", limited to " + format_gb(*machine.memory_limit_bytes);
  if (bytes < k_little_memory)
    findings.warn("little_memory", what, "free memory: models above 100 million parameters need more");
  else
    findings.ok(what);
}

std::vector<MachineFinding> check_memory(const DoctorFacts& facts) {
  AreaFindings findings("memory");
  const HostFacts& host = facts.host;
  if (host.available_memory_bytes) add_available_memory(findings, *host.available_memory_bytes, facts.machine);
  if (host.swap_used_bytes.value_or(0.0) > k_little_swap)
    findings.warn("swapped_out",
                  format_gb(*host.swap_used_bytes) + " swapped out: steps stall while pages return from disk",
                  "sudo swapoff -a && sudo swapon -a, once enough memory is free");
  if (facts.machine.transparent_huge_pages == "never")
    findings.note("transparent huge pages are off: large tensors are slower to access",
                  "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
  else if (facts.machine.transparent_huge_pages)
    findings.ok("transparent huge pages: " + *facts.machine.transparent_huge_pages);
  return findings.take();
}

static void add_free_space(AreaFindings& findings, double bytes, const std::string& folder) {
  const std::string what = fmt::format("{} free for results in {}", format_gb(bytes), folder);
  if (bytes < k_no_disk)
    findings.add(MachineSeverity::broken, "little_disk", what,
                 "free some space, or choose another folder with --output");
  else if (bytes < k_little_disk)
    findings.warn("little_disk", what, "free some space: a checkpoint takes 14 bytes per parameter");
  else
    findings.ok(what);
}

static void add_shared_memory(AreaFindings& findings, double bytes, double free_bytes) {
  const std::string what = fmt::format("/dev/shm has {}, {} free", format_gb(bytes), format_gb(free_bytes));
  if (free_bytes < k_little_shared_memory)
    findings.warn("little_shared_memory",
                  what + ": PyTorch's data loaders and the ranks of one node share memory there",
                  "start the container with --shm-size=16g or --ipc=host");
  else
    findings.ok(what);
}

std::vector<MachineFinding> check_storage(const DoctorFacts& facts) {
  AreaFindings findings("storage");
  const FolderFacts& output = facts.output;
  if (!output.writable)
    findings.add(MachineSeverity::broken, "output_not_writable",
                 fmt::format("the results folder {} is not writable", output.path),
                 "choose another folder with --output");
  if (output.free_bytes) add_free_space(findings, *output.free_bytes, output.path);
  if (facts.host.shared_memory_bytes)
    add_shared_memory(findings, *facts.host.shared_memory_bytes, facts.host.shared_memory_free_bytes.value_or(0.0));
  return findings.take();
}

static void add_locked_memory(AreaFindings& findings, const ResourceLimit& limit, bool is_gpu_run) {
  const std::string what = "locked memory: " + describe_limit(limit);
  if (is_gpu_run && limit.value.value_or(k_locked_memory_wanted) < k_locked_memory_wanted)
    findings.warn("locked_memory", what + ": InfiniBand and pinned buffers need more",
                  "ulimit -l unlimited; docker: --ulimit memlock=-1");
  else
    findings.ok(what);
}

static void add_open_files(AreaFindings& findings, const ResourceLimit& limit) {
  const std::string what =
      limit.value ? fmt::format("open files: {:.0f}", *limit.value) : std::string("open files: unlimited");
  if (limit.value.value_or(k_files_wanted) < k_files_wanted)
    findings.note(what + ": many ranks and data loaders need more", "ulimit -n 65536");
  else
    findings.ok(what);
}

std::vector<MachineFinding> check_limits(const DoctorFacts& facts) {
  AreaFindings findings("limits");
  const HostFacts& host = facts.host;
  if (host.locked_memory) add_locked_memory(findings, *host.locked_memory, facts.platform() != Platform::cpu);
  if (host.open_files) add_open_files(findings, *host.open_files);
  if (host.core_file && host.core_file->value != 0.0)
    findings.note(
        "core files: " + describe_limit(*host.core_file) + ": a crash may write the training's memory to disk",
        "ulimit -c 0, unless you want them");
  return findings.take();
}

static void add_clock_source(AreaFindings& findings, const std::string& source) {
  constexpr const char* k_slow_clocks[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies"};
  if (std::find(std::begin(k_slow_clocks), std::end(k_slow_clocks), source) != std::end(k_slow_clocks))
    findings.warn(
        "slow_clock_source",
        fmt::format("clock source {}: reading the time is slow and distorts traces of short operations", source),
        "boot with clocksource=tsc, if the processor allows it");
  else
    findings.ok("clock source: " + source);
}

std::vector<MachineFinding> check_system(const DoctorFacts& facts) {
  AreaFindings findings("system");
  const MachineFacts& machine = facts.machine;
  findings.ok(fmt::format("{}, {}", machine.distribution.value_or("unknown distribution"), machine.kernel));
  if (machine.virtual_machine)
    findings.note(
        fmt::format("virtual machine ({}): other tenants are invisible, and energy counters are usually missing",
                    *machine.virtual_machine));
  if (machine.container) findings.note(fmt::format("inside a container ({})", *machine.container));
  if (facts.host.clock_source) add_clock_source(findings, *facts.host.clock_source);
  return findings.take();
}

}  // namespace tprimat::suite
