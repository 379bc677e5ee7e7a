#include "telemetry/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "telemetry/arm_processors.h"
#include "telemetry/small_files.h"
#include "telemetry/virtual_machine.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// "MemAvailable:   23480336 kB"
std::optional<double> read_kilobytes(const fs::path& file, std::string_view name) {
  std::istringstream line(find_line(file, name).value_or(""));
  double kilobytes = 0.0;
  return line >> kilobytes ? std::optional(kilobytes * 1024.0) : std::nullopt;
}

// The nodes with a GPU's memory: on GH200 and GB200 the driver may hand it to the kernel, which then counts it as the
// machine's own. The driver says "Node:      1" and "Status:    online".
std::set<std::string> find_gpu_nodes(const fs::path& root) {
  std::set<std::string> nodes;
  std::error_code error;
  for (const fs::directory_entry& gpu : fs::directory_iterator(root / "proc/driver/nvidia/gpus", error)) {
    const std::string node(trim_blanks(find_line(gpu.path() / "numa_status", "Node:").value_or("")));
    const std::string status(trim_blanks(find_line(gpu.path() / "numa_status", "Status:").value_or("")));
    if (is_all_digits(node) && status == "online") nodes.insert(node);
  }
  return nodes;
}

double read_node_bytes(const fs::path& root, const std::string& node, std::string_view name) {
  return read_kilobytes(root / ("sys/devices/system/node/node" + node) / "meminfo",
                        "Node " + node + " " + std::string(name))
      .value_or(0.0);
}

// Of the machine without its GPUs. `in_node` is the name for the same in a node's own file.
std::optional<double> read_memory_bytes(const fs::path& root, std::string_view name, std::string_view in_node) {
  std::optional<double> bytes = read_kilobytes(root / "proc/meminfo", name);
  if (!bytes) return bytes;
  for (const std::string& node : find_gpu_nodes(root)) *bytes -= read_node_bytes(root, node, in_node);
  return std::max(*bytes, 0.0);
}

// Nodes with processors or with memory that is no GPU's. Beside each GPU the kernel keeps further ones, empty, for its
// parts.
std::optional<int64_t> count_numa_nodes(const fs::path& root) {
  int64_t nodes = 0;
  std::error_code error;
  const std::set<std::string> of_gpus = find_gpu_nodes(root);
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    const std::string number = name.starts_with("node") ? name.substr(4) : "";
    if (!is_all_digits(number) || of_gpus.contains(number)) continue;
    const bool is_empty = read_small_file(entry.path() / "cpulist") == "" &&
                          read_kilobytes(entry.path() / "meminfo", "Node " + number + " MemTotal:") == 0.0;
    if (!is_empty) ++nodes;
  }
  if (nodes == 0) return std::nullopt;
  return nodes;
}

std::optional<std::string> read_distribution(const fs::path& root) {
  const auto name = find_line(root / "etc/os-release", "PRETTY_NAME=");
  const bool is_quoted = name && name->size() >= 2 && name->front() == '"' && name->back() == '"';
  return is_quoted ? name->substr(1, name->size() - 2) : name;
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

// As /proc/cpuinfo spells them, on x86 and Arm.
constexpr const char* k_instruction_sets[] = {
    "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx_vnni", "avx512f",
    "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
    "amx_int8", "asimd",    "bf16",        "i8mm",        "sve",         "sve2",     "svebf16"};

using Block = std::map<std::string, std::string>;  // of one processor

std::vector<Block> parse_cpuinfo(const std::string& text) {
  std::vector<Block> blocks;
  std::istringstream lines(text);
  for (std::string buffer; std::getline(lines, buffer);) {
    const std::string_view line = buffer;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key(trim_blanks(line.substr(0, colon)));
    if (key == "processor") blocks.emplace_back();
    if (!blocks.empty()) blocks.back()[key] = trim_blanks(line.substr(colon + 1));
  }
  return blocks;
}

std::string first_value(const std::vector<Block>& blocks, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    for (const Block& block : blocks)
      if (const auto found = block.find(key); found != block.end() && !found->second.empty()) return found->second;
  return "";
}

std::vector<std::string> instruction_sets(const std::vector<Block>& blocks) {
  std::istringstream words(first_value(blocks, {"flags", "Features"}));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  std::vector<std::string> sets;
  for (const char* wanted : k_instruction_sets)
    if (flags.contains(wanted)) sets.emplace_back(wanted);
  return sets;
}

std::string value_of(const Block& block, const char* key) {
  const auto found = block.find(key);
  return found == block.end() ? "" : found->second;
}

// Arm's processors give numbers, and those with two kinds of cores two of them: "Cortex-X925 + Cortex-A725".
std::string name_arm_processor(const std::vector<Block>& blocks) {
  std::vector<std::string> names;
  for (const Block& block : blocks) {
    const std::string implementer = value_of(block, "CPU implementer"), part = value_of(block, "CPU part");
    if (implementer.empty() || part.empty()) continue;
    std::string name = arm_processor_name(implementer, part);
    if (name.empty()) name = "unknown processor (implementer " + implementer + ", part " + part + ")";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return join(names, " + ");
}

// "ARMv8 Processor rev 1 (v8l)", which 32-bit programs see, names none; "Hardware" is the board.
std::string name_processor(const std::vector<Block>& blocks) {
  const std::string given = first_value(blocks, {"model name", "cpu model"}), numbers = name_arm_processor(blocks);
  if (!given.empty() && !given.starts_with("ARMv")) return given;
  for (const std::string& name : {numbers, given, first_value(blocks, {"Hardware"})})
    if (!name.empty()) return name;
  return "unknown processor";
}

struct CoreId {
  std::string socket, core;  // empty where the kernel knows none, as in some virtual machines
};

// From /proc/cpuinfo on x86, from /sys on Arm, where cores have the same id in several clusters of a package, so that
// the threads of a core tell it from others.
CoreId find_core(const fs::path& root, const Block& block) {
  CoreId id = {value_of(block, "physical id"), value_of(block, "core id")};
  if (!id.socket.empty() && !id.core.empty()) return id;
  const fs::path topology = root / ("sys/devices/system/cpu/cpu" + value_of(block, "processor")) / "topology";
  const std::string socket = read_small_file(topology / "physical_package_id").value_or("");
  return {is_all_digits(socket) ? socket : "", read_small_file(topology / "thread_siblings_list").value_or("")};
}

// Kernels took Arm's clusters for packages; firmware with a table of the topology (PPTT) tells them apart.
void count_cores(const fs::path& root, const std::vector<Block>& blocks, CpuFacts& facts) {
  std::set<std::string> sockets, cores;
  for (const Block& block : blocks) {
    const CoreId id = find_core(root, block);
    if (id.core.empty()) return;
    sockets.insert(id.socket);
    cores.insert(id.socket + "/" + id.core);
  }
  if (cores.empty()) return;
  facts.cores = static_cast<int64_t>(cores.size());
  std::error_code error;
  const bool may_be_clusters = sockets.size() > 1 && blocks.front().contains("CPU implementer") &&
                               !fs::exists(root / "sys/firmware/acpi/tables/PPTT", error);
  if (!sockets.contains("") && !may_be_clusters) facts.sockets = static_cast<int64_t>(sockets.size());
}

// Of the fastest: beside a slow kind of cores there may be a fast one.
std::optional<double> read_max_mhz(const fs::path& root, const std::vector<Block>& blocks) {
  std::optional<double> highest;
  for (const Block& block : blocks) {
    const fs::path processor = root / ("sys/devices/system/cpu/cpu" + value_of(block, "processor"));
    const auto kilohertz = read_small_number(processor / "cpufreq/cpuinfo_max_freq");
    if (kilohertz) highest = std::max(highest.value_or(0.0), *kilohertz * 1e-3);
  }
  return highest;
}

void lower(std::optional<double>& limit, std::optional<double> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

// A group's limit binds together with those of its parents. Inside a container the path that the kernel names is often
// not visible, and the mounted root is the group itself; so the root is read as well.
std::vector<fs::path> groups_upwards(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> folders;
  for (fs::path path = fs::path(group).relative_path(); !path.empty(); path = path.parent_path())
    folders.push_back(mount / path);
  folders.push_back(mount);
  return folders;
}

void read_version_2(const fs::path& folder, CgroupLimits& limits) {
  lower(limits.memory_bytes, read_small_number(folder / "memory.max"));  // "max" is no number
  std::istringstream cpu(read_small_file(folder / "cpu.max").value_or(""));
  double quota = 0.0, period = 0.0;
  if (cpu >> quota >> period && period > 0.0) lower(limits.processors, quota / period);
}

void read_version_1(const fs::path& root, const std::string& controller, const std::string& group,
                    CgroupLimits& limits) {
  constexpr double k_no_limit = 1e18;  // the kernel says 2^63 rounded to pages
  for (const fs::path& folder : groups_upwards(root / "sys/fs/cgroup" / controller, group)) {
    const auto memory = read_small_number(folder / "memory.limit_in_bytes");
    if (memory && *memory < k_no_limit) lower(limits.memory_bytes, memory);
    const auto quota = read_small_number(folder / "cpu.cfs_quota_us"),
               period = read_small_number(folder / "cpu.cfs_period_us");
    if (quota && period && *quota > 0.0 && *period > 0.0) lower(limits.processors, *quota / *period);
  }
}

}  // namespace

MachineFacts read_machine(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries, const fs::path& root) {
  MachineFacts facts;
  facts.cpu = read_cpu_facts(root, count_affinity());
  facts.memory_bytes = read_memory_bytes(root, "MemTotal:", "MemTotal:");
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

std::vector<int> affinity() {
  // Machines with more than 1024 processors need a larger mask.
  for (int processors = 1024; processors <= 65536; processors *= 4) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(processors));
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(processors));
    const bool fits = ::sched_getaffinity(0, size, mask) == 0;
    std::vector<int> allowed;
    for (int processor = 0; fits && processor < processors; ++processor)
      if (CPU_ISSET_S(static_cast<size_t>(processor), size, mask)) allowed.push_back(processor);
    CPU_FREE(mask);
    if (fits) return allowed;
  }
  return {0};
}

int64_t count_affinity() { return std::ssize(affinity()); }

CgroupLimits read_cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  std::istringstream lines(read_small_file(root / "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/group", "0::/group"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controller.empty()) {
      for (const fs::path& folder : groups_upwards(root / "sys/fs/cgroup", group)) read_version_2(folder, limits);
    } else if (controller == "memory" || controller.starts_with("cpu")) {
      read_version_1(root, controller, group, limits);
    }
  }
  return limits;
}

std::optional<double> available_memory_bytes(const fs::path& root) {
  const auto bytes = read_memory_bytes(root, "MemAvailable:", "MemFree:");
  return bytes ? std::optional(std::min(*bytes, read_cgroup_limits(root).memory_bytes.value_or(*bytes))) : bytes;
}

CpuFacts read_cpu_facts(const fs::path& root, int64_t affinity) {
  const std::vector<Block> blocks = parse_cpuinfo(read_small_file(root / "proc/cpuinfo").value_or(""));
  CpuFacts facts;
  facts.model_name = name_processor(blocks);
  facts.logical_processors = std::max<int64_t>(1, static_cast<int64_t>(blocks.size()));
  facts.usable_threads = affinity;
  if (const auto quota = read_cgroup_limits(root).processors)
    facts.usable_threads = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(*quota)), 1, affinity);
  facts.instruction_sets = instruction_sets(blocks);
  count_cores(root, blocks, facts);
  facts.max_mhz = read_max_mhz(root, blocks);
  facts.governor = read_small_file(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return facts;
}

}  // namespace tprimat
