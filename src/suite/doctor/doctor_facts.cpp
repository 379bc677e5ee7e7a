#include "doctor/doctor_facts.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "launch/installed.h"
#include "telemetry/gpu_library.h"
#include "telemetry/machine.h"
#include "telemetry/small_files.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

std::optional<bool> read_switch(const fs::path& path) {
  const auto value = read_small_number(path);
  return value ? std::optional(*value != 0.0) : std::nullopt;
}

bool is_cpu_folder(const std::string& name) {
  return name.starts_with("cpu") && name.size() > 3 && name.find_first_not_of("0123456789", 3) == std::string::npos;
}

std::vector<std::string> read_governors(const fs::path& root) {
  std::vector<std::string> governors;
  std::error_code error;
  for (const auto& cpu : fs::directory_iterator(root / "sys/devices/system/cpu", error)) {
    if (!is_cpu_folder(cpu.path().filename().string())) continue;
    const auto governor = read_small_file(cpu.path() / "cpufreq/scaling_governor");
    if (governor && std::find(governors.begin(), governors.end(), *governor) == governors.end())
      governors.push_back(*governor);
  }
  std::sort(governors.begin(), governors.end());
  return governors;
}

// Intel's driver has its own switch, with the opposite meaning.
std::optional<bool> read_turbo(const fs::path& root) {
  const fs::path cpu = root / "sys/devices/system/cpu";
  if (const auto off = read_switch(cpu / "intel_pstate/no_turbo")) return !*off;
  return read_switch(cpu / "cpufreq/boost");
}

std::optional<double> read_meminfo(const fs::path& root, const std::string& key) {
  std::istringstream lines(read_small_file(root / "proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    double kilobytes = 0.0;
    if (line.starts_with(key + ":") && std::istringstream(line.substr(key.size() + 1)) >> kilobytes)
      return kilobytes * 1024.0;
  }
  return std::nullopt;
}

std::optional<ResourceLimit> read_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY) return ResourceLimit{};
  return ResourceLimit{static_cast<double>(limit.rlim_cur)};
}

// The first line of /proc/stat: "cpu user nice system idle iowait irq softirq steal ...".
struct ProcessorTime {
  double idle = 0.0, stolen = 0.0, total = 0.0;  // ticks
};
std::optional<ProcessorTime> read_processor_time(const fs::path& root) {
  std::istringstream line(read_small_file(root / "proc/stat").value_or(""));
  std::string label;
  if (!(line >> label) || label != "cpu") return std::nullopt;
  constexpr int k_idle = 3, k_iowait = 4, k_steal = 7;
  ProcessorTime time;
  double ticks = 0.0;
  for (int column = 0; column <= k_steal && line >> ticks; ++column) {
    time.total += ticks;
    if (column == k_idle || column == k_iowait) time.idle += ticks;
    if (column == k_steal) time.stolen = ticks;
  }
  return time;
}

void watch_machine(const fs::path& root, double seconds, HostFacts& facts) {
  const auto before = read_processor_time(root);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto after = read_processor_time(root);
  if (!before || !after || after->total <= before->total) return;
  const double total = after->total - before->total;
  facts.stolen_share = std::clamp((after->stolen - before->stolen) / total, 0.0, 1.0);
  facts.busy_share = std::clamp(1.0 - (after->idle - before->idle) / total - *facts.stolen_share, 0.0, 1.0);
}

std::vector<PciGpu> list_pci_gpus(const fs::path& root) {
  std::vector<PciGpu> gpus;
  std::error_code error;
  for (const auto& device : fs::directory_iterator(root / "sys/bus/pci/devices", error)) {
    const std::string vendor = read_small_file(device.path() / "vendor").value_or("");
    const std::string kind = read_small_file(device.path() / "class").value_or("");
    const bool nvidia = vendor == "0x10de", amd = vendor == "0x1002";
    // 0x0300 VGA, 0x0302 3D controller, 0x1200 processing accelerator (MI300)
    const bool computes = kind.starts_with("0x0300") || kind.starts_with("0x0302") || kind.starts_with("0x1200");
    if (computes && (nvidia || amd)) gpus.push_back({device.path().filename().string(), nvidia});
  }
  std::sort(gpus.begin(), gpus.end(), [](const PciGpu& a, const PciGpu& b) { return a.address < b.address; });
  return gpus;
}

void read_memory(const fs::path& root, HostFacts& facts) {
  facts.available_memory_bytes = available_memory_bytes(root);
  facts.swap_bytes = read_meminfo(root, "SwapTotal");
  const auto swap_free = read_meminfo(root, "SwapFree");
  if (facts.swap_bytes && swap_free) facts.swap_used_bytes = *facts.swap_bytes - *swap_free;
  std::error_code error;
  if (const fs::space_info space = fs::space(root / "dev/shm", error); !error) {
    facts.shared_memory_bytes = static_cast<double>(space.capacity);
    facts.shared_memory_free_bytes = static_cast<double>(space.available);
  }
}

std::vector<ToolCondition> find_tools() {
  std::vector<ToolCondition> tools = {
      {"mpirun", "the native trainer on several ranks", "openmpi-bin", {}},
      {"python3", "every framework but the native trainer", "python3 python3-venv", {}},
      {"gnuplot", "plots as PNG files (or matplotlib)", "gnuplot-nox", {}},
  };
  for (ToolCondition& tool : tools) tool.place = find_in_path(tool.program);
  return tools;
}

std::vector<FrameworkCondition> find_frameworks(const DoctorRequest& request, Platform platform) {
  std::vector<FrameworkCondition> frameworks;
  for (const FrameworkModule& module : framework_modules())
    frameworks.push_back({module.id, std::string(module.long_name), module.platforms,
                          module.find(checkout_of(module, request.paths, platform)), std::string(module.installing),
                          find_lacking(module, platform)});
  return frameworks;
}

}  // namespace

HostFacts read_host_facts(const fs::path& root, double watch_seconds) {
  HostFacts facts;
  const fs::path cpu = root / "sys/devices/system/cpu";
  facts.governors = read_governors(root);
  facts.turbo = read_turbo(root);
  facts.smt = read_switch(cpu / "smt/active");
  facts.numa_balancing = read_switch(root / "proc/sys/kernel/numa_balancing");
  double load = 0.0;
  if (std::istringstream(read_small_file(root / "proc/loadavg").value_or("")) >> load) facts.load = load;
  read_memory(root, facts);
  facts.locked_memory = read_limit(RLIMIT_MEMLOCK);
  facts.open_files = read_limit(RLIMIT_NOFILE);
  facts.core_file = read_limit(RLIMIT_CORE);
  facts.clock_source = read_small_file(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.pci_gpus = list_pci_gpus(root);
  watch_machine(root, watch_seconds, facts);
  return facts;
}

FolderFacts read_folder_facts(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path()) path = path.parent_path();
  FolderFacts facts{path.string(), {}, ::access(path.c_str(), W_OK | X_OK) == 0};
  if (const fs::space_info space = fs::space(path, error); !error)
    facts.free_bytes = static_cast<double>(space.available);
  return facts;
}

std::vector<GpuCondition> read_gpus(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries,
                                    const std::optional<GpuUse>& use) {
  const std::vector<GpuProcess> processes = gpu_processes(libraries);
  std::vector<GpuCondition> gpus;
  for (const auto& library : libraries)
    for (GpuFacts& facts : use ? used_gpus(library->devices(), *use) : library->devices()) {
      GpuCondition gpu{fmt::format("GPU {}", facts.index), facts, library->state(facts.index), {}};
      FaultLog impossible;
      impossible.count_reading();
      drop_implausible(gpu.state.now, facts, impossible);
      for (std::string& note : impossible.notes()) gpu.state.notes.push_back(std::move(note));
      for (const GpuProcess& process : processes)
        if (process.library == library->name() && process.device == facts.index) gpu.holders.push_back(process);
      gpus.push_back(std::move(gpu));
    }
  return gpus;
}

DoctorFacts read_doctor_facts(const DoctorRequest& request, const GpuLibraries& libraries) {
  DoctorFacts facts;
  facts.request = request;
  facts.machine = read_machine(libraries.usable);
  facts.host = read_host_facts();
  facts.output = read_folder_facts(request.output);
  facts.gpus = read_gpus(libraries.usable);
  facts.refused_libraries = libraries.refused;
  facts.frameworks = find_frameworks(request, facts.platform());
  facts.tools = find_tools();
  return facts;
}

}  // namespace tprimat::suite
