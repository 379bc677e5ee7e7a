#include "telemetry/gpu_use.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tprimat {
namespace {

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<int64_t> parse_device_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::vector<GpuFacts> listed_gpus(const std::vector<GpuFacts>& devices, std::string_view list) {
  std::vector<GpuFacts> seen;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const auto number = parse_device_number(without_spaces(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!number) return devices;
    if (*number < 0 || *number >= static_cast<int64_t>(devices.size())) break;
    seen.push_back(devices[static_cast<size_t>(*number)]);
  }
  return seen;
}

}  // namespace

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
