#include "result/gpu_cores.h"

#include <fmt/format.h>

#include "spec/hardware_catalogue.h"
#include "text/format.h"

namespace tprimat {
namespace {

std::optional<int64_t> if_positive(const std::optional<int64_t>& count) {
  return count && *count > 0 ? count : std::nullopt;
}

std::optional<Platform> vendor_of(const RunResult& result, const std::optional<HardwareSpec>& part) {
  return part ? part->platform : result.platform;
}

std::optional<int64_t> lanes_of(const std::optional<int64_t>& units, const std::optional<HardwareSpec>& part) {
  return units && part && part->cores_per_unit ? std::optional(*units * *part->cores_per_unit) : std::nullopt;
}

void fill_counts(GpuCores& cores, const DeviceInfo& device, const std::optional<HardwareSpec>& part) {
  const auto reported = if_positive(device.compute_units), stated = if_positive(device.gpu_cores);
  cores.units = reported ? reported : part ? part->compute_units : std::nullopt;
  cores.lanes = lanes_of(cores.units, part);
  if (stated && cores.lanes && *stated != *cores.lanes)
    cores.contradiction = fmt::format("{} against {} of the catalogue", *stated, *cores.lanes);
  if (!cores.lanes) cores.lanes = stated;
  cores.source = reported      ? "reported by the driver"
                 : cores.units ? "catalogue:" + part->id
                 : cores.lanes ? "stated in the file"
                               : "";
}

}  // namespace

std::string GpuCores::short_text() const { return units ? fmt::format("{} {}", *units, unit_name) : text(); }

std::string GpuCores::text() const {
  const std::string of_lanes = lanes ? fmt::format("{} {}", group_thousands(std::to_string(*lanes)), lane_name) : "";
  if (!units) return of_lanes;
  return fmt::format("{} {}", *units, unit_name) + (lanes ? fmt::format(" ({})", of_lanes) : "");
}

std::optional<GpuCores> find_gpu_cores(const RunResult& result) {
  const auto part = find_hardware(result.gpu_info.device_name);
  const auto vendor = vendor_of(result, part);
  if (!vendor || *vendor == Platform::cpu) return std::nullopt;
  const bool nvidia = *vendor == Platform::nvd;
  GpuCores cores{{}, {}, nvidia ? "SMs" : "CUs", nvidia ? "CUDA cores" : "stream processors", "", {}};
  fill_counts(cores, result.gpu_info, part);
  return cores.lanes || cores.units ? std::optional(cores) : std::nullopt;
}

}  // namespace tprimat
