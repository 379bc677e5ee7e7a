#include "telemetry/sensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "telemetry/plausible.h"
#include "telemetry/process_tree.h"
#include "telemetry/rapl.h"
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
    Reading reading;
    reading.unix_time = unix_time_seconds();
    const std::optional<TreeUsage> usage = read_tree_usage(root_);
    if (!usage) return reading;
    reading.memory_used_bytes = usage->memory_bytes;
    const auto now = SteadyClock::now();
    const double passed = std::chrono::duration<double>(now - last_time_).count();
    if (seen_ && passed < k_shortest_share_seconds) return reading;
    if (seen_)
      reading.utilisation = std::clamp((usage->cpu_seconds - last_cpu_seconds_) / (passed * threads_), 0.0, 1.0);
    seen_ = true;
    last_time_ = now;
    last_cpu_seconds_ = usage->cpu_seconds;
    return reading;
  }

 private:
  pid_t root_;
  double threads_;
  bool seen_ = false;
  SteadyClock::time_point last_time_;
  double last_cpu_seconds_ = 0.0;
};

class MachineSensor : public Sensor {
 public:
  std::string name() const override { return "proc:machine"; }
  Reading read() override {
    Reading reading;
    reading.unix_time = unix_time_seconds();
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
  GpuSensor(std::shared_ptr<const GpuLibrary> library, const GpuFacts& gpu)
      : library_(std::move(library)), device_(gpu.index), limits_(limits_of(gpu)) {}
  std::string name() const override { return fmt::format("{}:{}", library_->name(), device_); }
  Reading read() override {
    faults_.count_reading();
    Reading reading = library_->read(device_, faults_);
    drop_implausible(reading, limits_, faults_);
    return reading;
  }
  std::vector<std::string> notes() const override { return faults_.notes(); }

 private:
  std::shared_ptr<const GpuLibrary> library_;
  int64_t device_;
  ReadingLimits limits_;
  FaultLog faults_;
};

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

}  // namespace tprimat
