#include "result/peak.h"

#include <fmt/format.h>

#include "spec/hardware_catalogue.h"

namespace tprimat {

std::optional<PeakInfo> catalogue_peak(std::string_view device_name, Precision precision) {
  const auto hardware = find_hardware(device_name);
  if (!hardware) return std::nullopt;
  const auto peak = hardware->dense_peak_flops.find(precision);
  if (peak == hardware->dense_peak_flops.end()) return std::nullopt;
  return PeakInfo{fmt::format("catalogue:{}:{}", hardware->id, enum_name(precision)), peak->second, hardware->source};
}

PeakInfo stated_peak_info(const StatedPeak& peak) {
  return {fmt::format("config:{}:{}", peak.device, enum_name(peak.precision)), peak.flops_per_second,
          "the configuration"};
}

std::optional<StatedPeak> find_stated_peak(const PeakInfo& peak) {
  constexpr std::string_view k_source = "config:";
  const size_t colon = peak.id.rfind(':');
  if (!peak.id.starts_with(k_source) || colon < k_source.size()) return std::nullopt;
  const auto precision = parse_enum<Precision>(peak.id.substr(colon + 1));
  if (!precision) return std::nullopt;
  const std::string device = peak.id.substr(k_source.size(), colon - k_source.size());
  return StatedPeak{device, *precision, peak.flops_per_second, true};
}

std::optional<PeakInfo> choose_peak(const std::vector<StatedPeak>& stated, const std::string& device_name,
                                    Precision precision) {
  const auto known = catalogue_peak(device_name, precision);
  for (const StatedPeak& peak : stated)
    if (peak.precision == precision && (peak.counts_first || !known) && is_same_device(peak.device, device_name))
      return stated_peak_info(peak);
  return known;
}

bool is_measured(const PeakInfo& peak) { return peak.id.starts_with("measured"); }

std::optional<double> catalogue_value(const PeakInfo& peak) {
  for (const HardwareSpec& hardware : hardware_catalogue())
    for (const auto& [precision, flops] : hardware.dense_peak_flops)
      if (peak.id == fmt::format("catalogue:{}:{}", hardware.id, enum_name(precision))) return flops;
  return std::nullopt;
}

}  // namespace tprimat
