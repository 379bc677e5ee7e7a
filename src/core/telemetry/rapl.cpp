#include "telemetry/rapl.h"

#include <vector>

#include "base/clock.h"
#include "telemetry/small_files.h"

namespace tprimat {
namespace {

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
    Reading reading;
    reading.unix_time = unix_time_seconds();
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

}  // namespace

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

}  // namespace tprimat
