#include "telemetry/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "telemetry/small_files.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

void append_children(pid_t process, const fs::path& proc, std::vector<pid_t>& tree) {
  std::error_code error;
  for (const fs::directory_entry& task : fs::directory_iterator(proc / std::to_string(process) / "task", error)) {
    std::istringstream children(read_small_file(task.path() / "children").value_or(""));
    for (pid_t child = 0; children >> child;) tree.push_back(child);
  }
}

// Fields of /proc/PID/stat after the name, which may itself hold spaces and parentheses. The first is the state, field
// 3 in proc(5).
std::vector<std::string> stat_fields(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(stat.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string word; rest >> word;) fields.push_back(word);
  return fields;
}

std::optional<double> read_cpu_seconds(const fs::path& process) {
  const std::vector<std::string> fields = stat_fields(read_small_file(process / "stat").value_or(""));
  constexpr size_t k_utime = 14 - 3, k_cstime = 17 - 3;
  if (fields.size() <= k_cstime) return std::nullopt;
  double ticks = 0.0;
  for (size_t i = k_utime; i <= k_cstime; ++i) ticks += std::strtod(fields[i].c_str(), nullptr);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct Pages {
  double resident = 0.0, shared = 0.0;
};
Pages read_pages(const fs::path& process) {
  std::istringstream statm(read_small_file(process / "statm").value_or(""));
  double size = 0.0;
  Pages pages;
  statm >> size >> pages.resident >> pages.shared;
  return pages;
}

}  // namespace

std::vector<pid_t> list_tree(pid_t root, const fs::path& proc) {
  std::vector<pid_t> tree = {root};
  for (size_t i = 0; i < tree.size(); ++i) append_children(tree[i], proc, tree);
  return tree;
}

std::optional<TreeUsage> read_tree_usage(pid_t root, const fs::path& proc) {
  TreeUsage usage;
  double private_pages = 0.0, shared_pages = 0.0;
  for (const pid_t process : list_tree(root, proc)) {
    const fs::path folder = proc / std::to_string(process);
    const std::optional<double> cpu_seconds = read_cpu_seconds(folder);
    if (!cpu_seconds) continue;
    const Pages pages = read_pages(folder);
    ++usage.processes;
    usage.cpu_seconds += *cpu_seconds;
    private_pages += pages.resident - pages.shared;
    shared_pages = std::max(shared_pages, pages.shared);
  }
  if (usage.processes == 0) return std::nullopt;
  usage.memory_bytes = (private_pages + shared_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return usage;
}

std::optional<MachineTicks> parse_machine_ticks(const std::string& proc_stat) {
  std::istringstream line(proc_stat.substr(0, proc_stat.find('\n')));
  std::string label;
  line >> label;
  if (label != "cpu") return std::nullopt;
  MachineTicks ticks;
  constexpr int k_idle = 3, k_iowait = 4,
                k_steal = 7;  // the time of virtual machines, after it, is already in user time
  double value = 0.0;
  for (int column = 0; column <= k_steal && line >> value; ++column) {
    ticks.total += value;
    if (column != k_idle && column != k_iowait) ticks.busy += value;
  }
  return ticks;
}

}  // namespace tprimat
