#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "result/run_result.h"

namespace tprimat {

// The parallel units of one GPU. The unit that both vendors build alike is NVIDIA's SM and AMD's compute unit (CU);
// what they call cores are lanes of it, which no measure of speed between vendors follows from.
struct GpuCores {
  std::optional<int64_t> units, lanes;
  std::string unit_name;                     // "SMs", "CUs"
  std::string lane_name;                     // "CUDA cores", "stream processors"
  std::string source;                        // "reported by the driver", "catalogue:MI300X", "stated in the file"
  std::optional<std::string> contradiction;  // of the file's gpu_cores against the catalogue's: "16896 against 19456"
  std::string text() const;                  // "132 SMs (16 896 CUDA cores)"
  std::string short_text() const;            // "132 SMs"; the cores only where the units are not known
};

// As the driver reported them, else of the hardware catalogue. The file's own gpu_cores only for a device that the
// catalogue does not know: older tools wrote another device's. Nothing on a CPU, or where nothing is known.
std::optional<GpuCores> find_gpu_cores(const RunResult& result);

}  // namespace tprimat
