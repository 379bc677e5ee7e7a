#include "telemetry/gpu_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "telemetry/small_files.h"
#include "text/format.h"

namespace tprimat {

std::vector<GpuProcess> gpu_processes(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries,
                                      const std::filesystem::path& proc) {
  std::vector<GpuProcess> all;
  for (const auto& library : libraries)
    for (const GpuFacts& gpu : library->devices())
      for (const GpuHolder& holder : library->holders(gpu.index))
        all.push_back({library->name(), gpu.platform, gpu.index, holder.process,
                       read_small_file(proc / std::to_string(holder.process) / "comm").value_or(""),
                       holder.memory_bytes});
  std::sort(all.begin(), all.end(), [](const GpuProcess& a, const GpuProcess& b) {
    return std::tie(a.library, a.device, a.process) < std::tie(b.library, b.device, b.process);
  });
  return all;
}

std::string describe(const GpuProcess& process) {
  std::string text = fmt::format("process {}", process.process);
  if (!process.name.empty()) text += fmt::format(" ({})", process.name);
  text += fmt::format(" on GPU {}", process.device);
  if (process.memory_bytes) text += ", " + format_gb(*process.memory_bytes);
  return text;
}

}  // namespace tprimat
