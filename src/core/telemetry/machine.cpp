#include "telemetry/machine.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <sstream>

#include "telemetry/small_files.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

std::optional<double> read_memory(const fs::path& root) {
  std::istringstream lines(read_small_file(root / "proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("MemTotal:")) return std::strtod(line.c_str() + 9, nullptr) * 1024.0;
  return std::nullopt;
}

std::optional<int64_t> count_numa_nodes(const fs::path& root) {
  int64_t nodes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos && name.size() > 4)
      ++nodes;
  }
  if (nodes == 0) return std::nullopt;
  return nodes;
}

std::optional<std::string> read_distribution(const fs::path& root) {
  std::istringstream lines(read_small_file(root / "etc/os-release").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    std::string name = line.substr(12);
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    return name;
  }
  return std::nullopt;
}

std::optional<std::string> find_container(const fs::path& root) {
  std::error_code error;
  if (fs::exists(root / ".dockerenv", error)) return "docker";
  if (fs::exists(root / "run/.containerenv", error)) return "podman";
  const std::string groups = read_small_file(root / "proc/1/cgroup").value_or("");
  for (const auto& [trace, runtime] :
       {std::pair{"kubepods", "kubernetes"}, {"docker", "docker"}, {"lxc", "lxc"}, {"libpod", "podman"}})
    if (groups.find(trace) != std::string::npos) return runtime;
  if (const char* named = std::getenv("container"); named != nullptr && root == "/")
    return named;  // systemd-nspawn and others
  if (std::getenv("SINGULARITY_NAME") != nullptr && root == "/") return "apptainer";
  return std::nullopt;
}

std::optional<std::string> find_virtual_machine(const fs::path& root) {
  const std::string cpuinfo = read_small_file(root / "proc/cpuinfo").value_or("");
  if (cpuinfo.find(" hypervisor") == std::string::npos) return std::nullopt;
  const std::string vendor = read_small_file(root / "sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = read_small_file(root / "sys/class/dmi/id/product_name").value_or("");
  if (vendor.empty() && product.empty())
    return read_small_file(root / "sys/hypervisor/type").value_or("unnamed hypervisor");
  return vendor + (vendor.empty() || product.empty() ? "" : " ") + product;
}

// "always [madvise] never": the setting is the one in brackets.
std::optional<std::string> read_huge_pages(const fs::path& root) {
  const std::string choices = read_small_file(root / "sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  const size_t begin = choices.find('['), end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  return choices.substr(begin + 1, end - begin - 1);
}

void add_gpus(MachineFacts& facts, const GpuLibrary& library) {
  for (GpuFacts& gpu : library.devices()) facts.gpus.push_back(std::move(gpu));
  if (const auto version = library.driver_version()) facts.drivers[library.name()] = *version;
  if (const auto version = library.stack_version()) facts.stacks[library.name() == "nvml" ? "cuda" : "rocm"] = *version;
}

}  // namespace

MachineFacts read_machine(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries, const fs::path& root) {
  MachineFacts facts;
  facts.cpu = read_cpu_facts(root, count_affinity());
  facts.memory_bytes = read_memory(root);
  facts.memory_limit_bytes = read_cgroup_limits(root).memory_bytes;
  facts.numa_nodes = count_numa_nodes(root);
  utsname name{};
  ::uname(&name);
  facts.kernel = std::string(name.sysname) + " " + name.release;
  facts.architecture = name.machine;
  facts.distribution = read_distribution(root);
  facts.container = find_container(root);
  facts.virtual_machine = find_virtual_machine(root);
  facts.transparent_huge_pages = read_huge_pages(root);
  for (const auto& library : libraries) add_gpus(facts, *library);
  if (!facts.gpus.empty()) facts.platform = facts.gpus.front().platform;
  return facts;
}

}  // namespace tprimat
