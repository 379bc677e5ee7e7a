#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "config/draft.h"
#include "config/values.h"
#include "spec/hardware_catalogue.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr double k_figure_tolerance = 0.05;  // data sheets round; 989 and 989.5 TFLOP/s are the same figure

// "nvidia_h100" -> platform nvd, device "h100".
struct DeviceKey {
  Platform platform = Platform::cpu;
  std::string device;
};

std::optional<DeviceKey> parse_device_key(const std::string& key) {
  const size_t underscore = key.find('_');
  const auto platform = parse_word<Platform>(key.substr(0, underscore));
  if (!platform || underscore == std::string::npos || underscore + 1 == key.size()) return std::nullopt;
  return DeviceKey{*platform, key.substr(underscore + 1)};
}

// The platform that a key names, if the configuration has it with that device.
PlatformSetup* find_setup(Draft& draft, const DeviceKey& key) {
  const auto found = draft.experiment.platforms.find(key.platform);
  if (found == draft.experiment.platforms.end() || !is_same_device(found->second.device_model, key.device))
    return nullptr;
  return &found->second;
}

struct PriceKey {
  DeviceKey device;
  int64_t count = 0;
};

// "nvidia_h100_8gpu_per_hour" -> {nvidia_h100, 8}.
std::optional<PriceKey> parse_price_key(std::string key) {
  constexpr std::string_view k_ending = "gpu_per_hour";
  if (!key.ends_with(k_ending)) return std::nullopt;
  key.erase(key.size() - k_ending.size());
  const size_t underscore = key.rfind('_');
  int64_t count = 0;
  if (underscore == std::string::npos) return std::nullopt;
  const char* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data() + underscore + 1, end, count);
  if (error != std::errc() || stop != end || count < 1) return std::nullopt;
  const auto device = parse_device_key(key.substr(0, underscore));
  return device ? std::optional(PriceKey{*device, count}) : std::nullopt;
}

// A price of one device of the configuration.
struct StatedPrice {
  std::string path;
  int64_t count = 1;  // devices that it is for
  double usd = 0;
};
using PricesByPlatform = std::map<Platform, std::vector<StatedPrice>>;

void collect_price(Draft& draft, const std::string& key, double price, PricesByPlatform& prices) {
  const std::string path = "benchmarking.enhanced_metrics.cloud_costs." + key;
  const auto parsed = parse_price_key(key);
  if (!parsed || !(price > 0) || price > 1e7) {
    draft.fail(path,
               parsed ? fmt::format("{} must be above 0 and at most 1e7 USD, got {:g}", path, price)
                      : fmt::format("'{}' in cloud_costs does not name a platform, device and GPU count", key),
               "write <platform>_<device>_<n>gpu_per_hour: USD, as in nvidia_h100_8gpu_per_hour: 32.0");
    return;
  }
  if (find_setup(draft, parsed->device) == nullptr)
    return draft.warn(path, fmt::format("{} is not used: no configured platform has that device", path));
  std::vector<StatedPrice>& stated = prices[parsed->device.platform];
  for (const StatedPrice& other : stated)
    if (other.count == parsed->count && other.usd != price)
      return draft.fail(path, fmt::format("{} and {} are two prices of the same devices", other.path, path),
                        "keep one of them");
  stated.push_back({path, parsed->count, price});
}

// The price for as many devices as the training uses, else that for the nearest number.
void resolve_price(Draft& draft, PlatformSetup& setup, const std::vector<StatedPrice>& prices) {
  const auto distance = [&](const StatedPrice& each) {
    return std::fabs(std::log(static_cast<double>(each.count) / static_cast<double>(setup.num_devices)));
  };
  const StatedPrice& nearest = *std::ranges::min_element(prices, {}, distance);
  setup.usd_per_hour = nearest.usd * static_cast<double>(setup.num_devices) / static_cast<double>(nearest.count);
  if (nearest.count != setup.num_devices)
    draft.warn(nearest.path,
               fmt::format("the price is for {} devices, but the training uses {}: scaled to {:.4g} USD per hour",
                           nearest.count, setup.num_devices, *setup.usd_per_hour));
}

using Peaks = std::map<Precision, double>;

Peaks stated_peaks(const raw::HardwareFigures& figures) {
  Peaks peaks;
  const auto take = [&](Precision precision, const raw::Number& peak) {
    if (peak) peaks[precision] = *peak;
  };
  take(Precision::fp8, figures.peak_fp8);
  take(Precision::fp16, figures.peak_fp16);
  take(Precision::bf16, figures.peak_bf16 ? figures.peak_bf16 : figures.peak_fp16);
  take(Precision::tf32, figures.peak_tf32);
  take(Precision::fp32, figures.peak_fp32);
  return peaks;
}

bool contradicts(double stated, double catalogued) {
  return std::fabs(stated - catalogued) > k_figure_tolerance * catalogued;
}

// A stated peak and the catalogue's, in FLOP/s.
struct Contradiction {
  Precision precision;
  double stated, catalogued;
};

std::vector<Contradiction> list_contradictions(const Peaks& stated, const HardwareSpec& part) {
  std::vector<Contradiction> list;
  for (const auto& [precision, peak] : stated) {
    const auto known = part.dense_peak_flops.find(precision);
    if (known != part.dense_peak_flops.end() && contradicts(peak, known->second))
      list.push_back({precision, peak, known->second});
  }
  return list;
}

// The common mistake that explains all of them; "" if none does.
std::string explain(const std::vector<Contradiction>& list, const HardwareSpec& part) {
  const auto all_are = [&](double factor) {
    return std::ranges::none_of(list,
                                [&](const auto& each) { return contradicts(each.stated, factor * each.catalogued); });
  };
  if (all_are(0.5)) return ", half of it";
  if (all_are(2)) return ", those with sparsity";
  if (list.size() > 1) return "";
  for (const auto& [other, peak] : part.dense_peak_flops)
    if (!contradicts(list.front().stated, peak)) return fmt::format(", the {} peak", enum_name(other));
  return "";
}

void check_peaks(Draft& draft, const Peaks& stated, const HardwareSpec& part, const std::string& path) {
  const std::vector<Contradiction> list = list_contradictions(stated, part);
  if (list.empty()) return;
  std::vector<std::string> peaks;
  for (const Contradiction& each : list)
    peaks.push_back(
        fmt::format("{} {:.5g} ({:.5g})", enum_name(each.precision), each.stated / 1e12, each.catalogued / 1e12));
  const bool mine = draft.experiment.peak_origin == PeakOrigin::mine;
  draft.remark(path, "dense peaks in TFLOP/s contradict the hardware catalogue (in brackets)",
               fmt::format("{} {}{}", part.display_name, join(peaks, ", "), explain(list, part)),
               mine ? "MFU uses the stated ones, because hardware.peak_source is mine"
                    : "MFU uses the catalogue's, with hardware.peak_source: mine the stated ones");
}

void check_power(Draft& draft, const PlatformSetup& setup, const HardwareSpec& part, const std::string& path) {
  const std::string tdp = path + ".tdp_watts";
  if (setup.tdp_watts && part.tdp_watts && contradicts(*setup.tdp_watts, *part.tdp_watts))
    draft.warn(tdp, fmt::format("{} is {:g}, but the hardware catalogue has {:g} W for {}", tdp, *setup.tdp_watts,
                                *part.tdp_watts, part.display_name));
}

// The figures of each platform's device that were taken, and where they are stated.
struct TakenFigures {
  std::string path;
  const raw::HardwareFigures* figures = nullptr;
};
using FiguresByPlatform = std::map<Platform, TakenFigures>;

bool are_same(const raw::HardwareFigures& a, const raw::HardwareFigures& b) {
  return stated_peaks(a) == stated_peaks(b) && a.tdp_watts == b.tdp_watts;
}

void resolve_hardware_figures(Draft& draft, const std::string& key, const raw::HardwareFigures& figures,
                              FiguresByPlatform& taken) {
  const std::string path = "benchmarking.enhanced_metrics.hardware_specs." + key;
  const auto device = parse_device_key(key);
  if (!device)
    return draft.fail(path, fmt::format("'{}' in hardware_specs does not name a platform and device", key),
                      "write <platform>_<device>, as in nvidia_h100");
  PlatformSetup* setup = find_setup(draft, *device);
  if (setup == nullptr)
    return draft.warn(path, fmt::format("{} is not used: no configured platform has that device", path));
  const auto [first, is_first] = taken.try_emplace(device->platform, TakenFigures{path, &figures});
  if (!is_first && !are_same(*first->second.figures, figures))
    return draft.fail(path, fmt::format("{} and {} are figures of the same device", first->second.path, path),
                      "keep one of them, with all figures");
  setup->tdp_watts = figures.tdp_watts;
  for (const auto& [precision, peak] : stated_peaks(figures)) setup->peak_flops_override[precision] = peak;
  const auto part = find_hardware(setup->device_model);
  if (!part) return;
  check_power(draft, *setup, *part, path);
  check_peaks(draft, setup->peak_flops_override, *part, path);
  if (draft.experiment.peak_origin == PeakOrigin::mine) return;
  std::erase_if(setup->peak_flops_override,
                [&](const auto& peak) { return part->dense_peak_flops.contains(peak.first); });
}

void resolve_peak_origin(Draft& draft) {
  draft.experiment.peak_origin =
      take_or(draft, draft.raw.hardware.peak_source, "hardware.peak_source", PeakOrigin::catalogue);
  for (auto& [platform, setup] : draft.experiment.platforms) setup.peak_origin = draft.experiment.peak_origin;
}

}  // namespace

void resolve_figures(Draft& draft) {
  resolve_peak_origin(draft);
  PricesByPlatform prices;
  for (const auto& [key, price] : draft.raw.benchmarking.enhanced_metrics.cloud_costs.entries)
    if (price) collect_price(draft, key, *price, prices);
  for (const auto& [platform, stated] : prices)
    if (!stated.empty()) resolve_price(draft, draft.experiment.platforms.at(platform), stated);
  FiguresByPlatform taken;
  for (const auto& [key, figures] : draft.raw.benchmarking.enhanced_metrics.hardware_specs.entries)
    resolve_hardware_figures(draft, key, figures, taken);
}

}  // namespace tprimat::suite
