#include "telemetry/sensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "telemetry/gpu_library.h"
#include "telemetry/small_files.h"

namespace tprimat {
namespace {

// The kernel counts processor time in ticks of 10 ms.
constexpr double k_shortest_share_seconds = 0.05;

class TreeSensor : public Sensor {
 public:
  TreeSensor(pid_t root, int64_t threads) : root_(root), threads_(static_cast<double>(threads)) {}
  std::string name() const override { return "proc"; }

  Reading read() override {
    Reading reading = reading_of_now();
    const std::optional<TreeUsage> usage = read_tree_usage(root_);
    if (!usage) return reading;
    reading.memory_used_bytes = usage->memory_bytes;
    const double passed = last_ ? seconds_since(last_->time) : 0.0;
    if (last_ && passed < k_shortest_share_seconds) return reading;
    if (last_)
      reading.utilisation = std::clamp((usage->cpu_seconds - last_->cpu_seconds) / (passed * threads_), 0.0, 1.0);
    last_ = {SteadyClock::now(), usage->cpu_seconds};
    return reading;
  }

 private:
  pid_t root_;
  double threads_;
  struct Seen {
    SteadyClock::time_point time;
    double cpu_seconds;
  };
  std::optional<Seen> last_;
};

class MachineSensor : public Sensor {
 public:
  std::string name() const override { return "proc:machine"; }
  Reading read() override {
    Reading reading = reading_of_now();
    const std::optional<MachineTicks> now = parse_machine_ticks(read_small_file("/proc/stat").value_or(""));
    if (now && last_ && now->total > last_->total)
      reading.utilisation = std::clamp((now->busy - last_->busy) / (now->total - last_->total), 0.0, 1.0);
    last_ = now;
    return reading;
  }

 private:
  std::optional<MachineTicks> last_;
};

class GpuSensor : public Sensor {
 public:
  GpuSensor(std::shared_ptr<const GpuLibrary> library, const GpuFacts& gpu) : library_(std::move(library)), gpu_(gpu) {}
  std::string name() const override { return fmt::format("{}:{}", library_->name(), gpu_.index); }
  Reading read() override {
    faults_.count_reading();
    Reading reading = library_->read(gpu_.index, faults_);
    drop_implausible(reading, gpu_, faults_);
    return reading;
  }
  std::vector<std::string> notes() const override { return faults_.notes(); }

 private:
  std::shared_ptr<const GpuLibrary> library_;
  GpuFacts gpu_;
  FaultLog faults_;
};

namespace fs = std::filesystem;

// One counter in microjoules that starts again at zero after `range`.
class Zone {
 public:
  Zone(fs::path counter, double last, double range) : counter_(std::move(counter)), last_(last), range_(range) {}

  std::optional<double> joules() {
    const std::optional<double> now = read_small_number(counter_);
    if (!now) return std::nullopt;
    total_ += *now >= last_ ? *now - last_ : *now + range_ - last_;
    last_ = *now;
    return total_ * 1e-6;
  }

 private:
  fs::path counter_;
  double last_, range_;  // uJ
  double total_ = 0.0;   // uJ since construction
};

class Rapl : public Sensor {
 public:
  explicit Rapl(std::vector<Zone> zones) : zones_(std::move(zones)) {}
  std::string name() const override { return "rapl"; }
  Reading read() override {
    Reading reading = reading_of_now();
    double sum = 0.0;
    for (Zone& zone : zones_) {
      const std::optional<double> joules = zone.joules();
      if (!joules) return reading;
      sum += *joules;
    }
    reading.energy_joules = sum;
    return reading;
  }

 private:
  std::vector<Zone> zones_;
};

// "core" and "uncore" are parts of a package; "psys" contains the packages and counts the whole board.
bool is_wanted(const std::string& name) { return name.starts_with("package-") || name == "dram"; }

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

std::vector<std::unique_ptr<Sensor>> open_sensors(const WatchRequest& request) {
  std::vector<std::unique_ptr<Sensor>> sensors;
  sensors.push_back(std::make_unique<TreeSensor>(request.root, std::max<int64_t>(1, request.threads)));
  sensors.push_back(std::make_unique<MachineSensor>());
  if (auto rapl = open_rapl()) sensors.push_back(std::move(rapl));
  for (const auto& library : request.libraries)
    for (const GpuFacts& gpu : request.gpus ? used_gpus(library->devices(), *request.gpus) : library->devices())
      sensors.push_back(std::make_unique<GpuSensor>(library, gpu));
  return sensors;
}

std::unique_ptr<Sensor> open_rapl(const fs::path& powercap) {
  std::vector<Zone> zones;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(powercap, error)) {
    const std::string folder = entry.path().filename().string();
    if (!folder.starts_with("intel-rapl:")) continue;  // "intel-rapl-mmio:" counts the same packages a second time
    if (!is_wanted(read_small_file(entry.path() / "name").value_or(""))) continue;
    const fs::path counter = entry.path() / "energy_uj";
    const std::optional<double> now = read_small_number(counter);
    const std::optional<double> range = read_small_number(entry.path() / "max_energy_range_uj");
    if (now && range) zones.emplace_back(counter, *now, *range);
  }
  if (zones.empty()) return nullptr;
  return std::make_unique<Rapl>(std::move(zones));
}

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
