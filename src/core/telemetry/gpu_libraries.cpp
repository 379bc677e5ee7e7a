#include "telemetry/gpu_libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "telemetry/small_files.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat {
namespace {

// Whether it can be used.
bool keep_library(OpenedLibrary opened, GpuLibraries& found) {
  if (!opened.refusal.empty()) found.refused.push_back(std::move(opened.refusal));
  if (!opened.library) return false;
  found.usable.push_back(std::move(opened.library));
  return true;
}

std::vector<GpuFacts> listed_gpus(const std::vector<GpuFacts>& devices, std::string_view list) {
  std::vector<GpuFacts> seen;
  if (list.empty()) return seen;
  for (const std::string_view word : split(list, ',')) {
    const auto number = parse_number<int64_t>(trim_blanks(word));
    if (!number) return devices;
    if (*number < 0 || *number >= static_cast<int64_t>(devices.size())) break;
    seen.push_back(devices[static_cast<size_t>(*number)]);
  }
  return seen;
}

}  // namespace

GpuLibraries find_gpu_libraries() {
  GpuLibraries found;
  keep_library(open_nvml(), found);
  if (!keep_library(open_amd_smi(), found)) keep_library(open_rocm_smi(), found);
  return found;
}

std::vector<std::shared_ptr<const GpuLibrary>> open_gpu_libraries() { return find_gpu_libraries().usable; }

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

std::vector<GpuFacts> used_gpus(std::vector<GpuFacts> devices, const GpuUse& use) {
  std::erase_if(devices, [&](const GpuFacts& gpu) { return gpu.platform != use.platform; });
  const auto keep_listed = [&](const std::string& name) {
    const auto list = use.variable(name);
    if (list) devices = listed_gpus(devices, *list);
    return list.has_value();
  };
  if (use.platform == Platform::amd) {
    keep_listed("ROCR_VISIBLE_DEVICES");
    if (!keep_listed("HIP_VISIBLE_DEVICES")) keep_listed("CUDA_VISIBLE_DEVICES");
  } else {
    keep_listed("CUDA_VISIBLE_DEVICES");
  }
  if (static_cast<int64_t>(devices.size()) > use.count)
    devices.resize(static_cast<size_t>(std::max<int64_t>(0, use.count)));
  return devices;
}

}  // namespace tprimat
