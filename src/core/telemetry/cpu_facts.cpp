#include "telemetry/cpu_facts.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "telemetry/small_files.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// As /proc/cpuinfo spells them, on x86 and Arm.
constexpr const char* k_instruction_sets[] = {
    "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx_vnni", "avx512f",
    "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
    "amx_int8", "asimd",    "bf16",        "i8mm",        "sve",         "sve2",     "svebf16"};

using Block = std::map<std::string, std::string>;  // of one processor

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<Block> parse_cpuinfo(const std::string& text) {
  std::vector<Block> blocks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = trimmed(line.substr(0, colon));
    if (key == "processor") blocks.emplace_back();
    if (!blocks.empty()) blocks.back()[key] = trimmed(line.substr(colon + 1));
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

// Packages and cores from the identities that the kernel gives; nothing where it gives none (Arm, some virtual
// machines).
void count_cores(const std::vector<Block>& blocks, CpuFacts& facts) {
  std::set<std::string> sockets, cores;
  for (const Block& block : blocks) {
    const auto socket = block.find("physical id"), core = block.find("core id");
    if (socket == block.end() || core == block.end()) return;
    sockets.insert(socket->second);
    cores.insert(socket->second + "/" + core->second);
  }
  if (sockets.empty()) return;
  facts.sockets = static_cast<int64_t>(sockets.size());
  facts.cores = static_cast<int64_t>(cores.size());
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

int64_t count_affinity() {
  // Machines with more than 1024 processors need a larger mask.
  for (int processors = 1024; processors <= 65536; processors *= 4) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(processors));
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(processors));
    const bool fits = ::sched_getaffinity(0, size, mask) == 0;
    const int count = fits ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (fits) return count;
  }
  return 1;
}

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
  std::istringstream lines(read_small_file(root / "proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "MemAvailable:   23480336 kB"
    double kilobytes = 0.0;
    if (!line.starts_with("MemAvailable:") || !(std::istringstream(line.substr(line.find(':') + 1)) >> kilobytes))
      continue;
    const double bytes = kilobytes * 1024;
    return std::min(bytes, read_cgroup_limits(root).memory_bytes.value_or(bytes));
  }
  return std::nullopt;
}

CpuFacts read_cpu_facts(const fs::path& root, int64_t affinity) {
  const std::vector<Block> blocks = parse_cpuinfo(read_small_file(root / "proc/cpuinfo").value_or(""));
  CpuFacts facts;
  facts.model_name = first_value(blocks, {"model name", "Hardware", "cpu model"});
  if (facts.model_name.empty()) facts.model_name = "unknown processor";
  facts.logical_processors = std::max<int64_t>(1, static_cast<int64_t>(blocks.size()));
  facts.usable_threads = affinity;
  if (const auto quota = read_cgroup_limits(root).processors)
    facts.usable_threads = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(*quota)), 1, affinity);
  facts.instruction_sets = instruction_sets(blocks);
  count_cores(blocks, facts);
  const fs::path frequency = root / "sys/devices/system/cpu/cpu0/cpufreq";
  if (const auto kilohertz = read_small_number(frequency / "cpuinfo_max_freq")) facts.max_mhz = *kilohertz * 1e-3;
  facts.governor = read_small_file(frequency / "scaling_governor");
  return facts;
}

}  // namespace tprimat
