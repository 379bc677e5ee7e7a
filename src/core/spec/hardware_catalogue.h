#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/names.h"

namespace tprimat {

// One accelerator part, from src/core/spec/hardware.tsv, embedded in the program. Facts that no source states are
// absent.
struct HardwareSpec {
  std::string id;            // "H100-SXM-80GB"
  std::string display_name;  // "NVIDIA H100 SXM 80 GB"
  Platform platform = Platform::nvd;
  std::vector<std::string> device_names;         // what drivers and users call it: "NVIDIA H100 80GB HBM3", "H100"
  std::map<Precision, double> dense_peak_flops;  // FLOP/s without sparsity
  std::map<Precision, double> achievable_flops;  // measured maximum achievable matmul FLOP/s (MAMF), where published
  std::optional<double> memory_bytes;
  std::optional<double> memory_bandwidth;  // bytes/s
  std::optional<double> tdp_watts;
  // SMs of an NVIDIA GPU, compute units of an AMD GPU, and the lanes in each that the vendor counts as cores.
  std::optional<int64_t> compute_units, cores_per_unit;
  std::string checked;  // when the row was last checked against its sources: "2026-11"
  std::string source;
};
const std::vector<HardwareSpec>& hardware_catalogue();

// By id, or by a driver's or user's name for it; case and punctuation do not matter. Nothing for an unknown or
// ambiguous device: never a default. Two conventions: a bare "H100" is the SXM part, the usual meaning ("NVIDIA H100
// PCIe" names the other), and "AMD Instinct MI250X" is one die of that part, since drivers count each die as a device.
// A bare "A100" or "MI250X" is ambiguous.
std::optional<HardwareSpec> find_hardware(std::string_view device_name);

// Two names of one part, or of one unknown device: "H100" and "NVIDIA H100 80GB HBM3", "My GPU" and "my_gpu".
bool is_same_device(const std::string& a, const std::string& b);

}  // namespace tprimat
