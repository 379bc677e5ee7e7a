#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spec/names.h"
#include "telemetry/sensor.h"
#include "text/fields.h"

namespace tprimat {

// One GPU as its driver describes it.
struct GpuFacts {
  Platform platform = Platform::nvd;
  int64_t index = 0;
  std::string name;
  std::optional<double> memory_bytes;
  std::optional<double> power_limit_watts;
  std::optional<int64_t> cores, compute_units = {};
  static constexpr auto fields() {
    using G = GpuFacts;
    return field_list(field("platform", &G::platform, "nvd or amd"), field("index", &G::index, "number of the device"),
                      field("name", &G::name, "as the driver gives it"),
                      field("memory_bytes", &G::memory_bytes, "bytes"),
                      field("power_limit_watts", &G::power_limit_watts, "W, as enforced now"),
                      field("cores", &G::cores, "CUDA cores or stream processors"),
                      field("compute_units", &G::compute_units, "SMs (NVIDIA) or compute units (AMD)"));
  }
};

// A process that holds memory of a GPU.
struct GpuHolder {
  int64_t process = 0;
  std::optional<double> memory_bytes;
};

// Configuration and condition of one GPU. Absent: its library does not report it.
struct GpuState {
  std::optional<bool> ecc;                    // error correction is on
  std::optional<int64_t> uncorrected_errors;  // since the driver was loaded
  std::optional<bool> persistence;            // the driver stays loaded without a client (NVIDIA)
  std::optional<bool> mig;                    // cut into instances (NVIDIA)
  std::optional<std::string> partition;       // "SPX", "CPX" ... (AMD)
  std::optional<double> max_clock_hz, slowdown_celsius;
  std::optional<int64_t> pcie_lanes, max_pcie_lanes;
  Reading now;
  std::vector<std::string> notes;  // what it does not report, and why
};

// A vendor's management library, loaded at run time. A machine without it is normal.
class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;
  virtual std::string name() const = 0;  // "nvml", "amd_smi", "rocm_smi"
  virtual std::vector<GpuFacts> devices() const = 0;
  virtual std::optional<std::string> driver_version() const = 0;
  virtual std::optional<std::string> stack_version() const = 0;  // of CUDA or ROCm, the newest that the driver serves
  virtual Reading read(int64_t device, FaultLog& faults) const = 0;  // by GpuFacts::index; as the library gives it
  GpuState state(int64_t device) const;                              // a reading and the fields that describe() fills
  virtual std::vector<GpuHolder> holders(int64_t) const { return {}; }  // see gpu_processes()

 private:
  virtual void describe(int64_t /*device*/, GpuState&, FaultLog&) const {}  // how it is set up
};

// The result of a search: the library, or why it cannot be used. Both are empty where it is not installed.
struct OpenedLibrary {
  std::unique_ptr<GpuLibrary> library;
  std::string refusal;
};

// Drivers report 0, 255 or the largest integer for unknown figures, and worse when a board fails. Figures that are
// impossible for this GPU are removed from the reading and recorded.
void drop_implausible(Reading& reading, const GpuFacts& gpu, FaultLog& faults);

// The same for a device's description; also makes its name printable.
GpuFacts plausible_facts(GpuFacts facts);

}  // namespace tprimat
