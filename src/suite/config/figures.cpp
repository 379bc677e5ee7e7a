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

bool same_device(const std::string& a, const std::string& b) {
  const auto squeeze = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '-' || c == '_'; });
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  if (squeeze(a) == squeeze(b)) return true;
  const auto x = find_hardware(a), y = find_hardware(b);
  return x && y && x->id == y->id;
}

// The platform that a key names, if the configuration has it with that device.
PlatformSetup* find_setup(Draft& draft, const DeviceKey& key) {
  const auto found = draft.experiment.platforms.find(key.platform);
  if (found == draft.experiment.platforms.end() || !same_device(found->second.device_model, key.device)) return nullptr;
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

void take_peak(PlatformSetup& setup, Precision precision, const raw::Number& peak) {
  if (peak) setup.peak_flops_override[precision] = *peak;
}

void take_peaks(PlatformSetup& setup, const raw::HardwareFigures& figures) {
  take_peak(setup, Precision::fp8, figures.peak_fp8);
  take_peak(setup, Precision::fp16, figures.peak_fp16);
  take_peak(setup, Precision::bf16, figures.peak_bf16 ? figures.peak_bf16 : figures.peak_fp16);
  take_peak(setup, Precision::tf32, figures.peak_tf32);
  take_peak(setup, Precision::fp32, figures.peak_fp32);
  setup.tdp_watts = figures.tdp_watts;
}

bool contradicts(double stated, double catalogued) {
  return std::fabs(stated - catalogued) > k_figure_tolerance * catalogued;
}

// The common mistake that explains a wrong peak; "" if none does.
std::string explain_peak(double stated, Precision precision, const HardwareSpec& part) {
  for (const auto& [other, peak] : part.dense_peak_flops)
    if (other != precision && !contradicts(stated, peak))
      return fmt::format(" (that is the {} peak)", enum_name(other));
  const double catalogued = part.dense_peak_flops.at(precision);
  if (!contradicts(stated, 2 * catalogued)) return " (that is the peak with sparsity)";
  if (!contradicts(stated, catalogued / 2)) return " (that is half the dense peak)";
  return "";
}

void check_peaks(Draft& draft, const PlatformSetup& setup, const HardwareSpec& part, const std::string& path) {
  for (const auto& [precision, stated] : setup.peak_flops_override) {
    const std::string key = fmt::format("{}.peak_tflops_{}", path, enum_name(precision));
    const auto known = part.dense_peak_flops.find(precision);
    if (find_path(draft.tree, key) == nullptr || known == part.dense_peak_flops.end() ||
        !contradicts(stated, known->second))
      continue;
    draft.warn(key,
               fmt::format("{} is {}, but the hardware catalogue has a dense peak of {} for {}{}", key,
                           format_si(stated, "FLOP/s"), format_si(known->second, "FLOP/s"), part.display_name,
                           explain_peak(stated, precision, part)),
               "the stated value is used for MFU; correct it, or delete it to use the catalogue's");
  }
  const std::string tdp = path + ".tdp_watts";
  if (setup.tdp_watts && part.tdp_watts && contradicts(*setup.tdp_watts, *part.tdp_watts))
    draft.warn(tdp, fmt::format("{} is {:g}, but the hardware catalogue has {:g} W for {}", tdp, *setup.tdp_watts,
                                *part.tdp_watts, part.display_name));
}

void resolve_hardware_figures(Draft& draft, const std::string& key, const raw::HardwareFigures& figures) {
  const std::string path = "benchmarking.enhanced_metrics.hardware_specs." + key;
  const auto device = parse_device_key(key);
  if (!device)
    return draft.fail(path, fmt::format("'{}' in hardware_specs does not name a platform and device", key),
                      "write <platform>_<device>, as in nvidia_h100");
  PlatformSetup* setup = find_setup(draft, *device);
  if (setup == nullptr)
    return draft.warn(path, fmt::format("{} is not used: no configured platform has that device", path));
  take_peaks(*setup, figures);
  if (const auto part = find_hardware(setup->device_model)) check_peaks(draft, *setup, *part, path);
}

}  // namespace

void resolve_figures(Draft& draft) {
  PricesByPlatform prices;
  for (const auto& [key, price] : draft.raw.benchmarking.enhanced_metrics.cloud_costs.entries)
    if (price) collect_price(draft, key, *price, prices);
  for (const auto& [platform, stated] : prices)
    if (!stated.empty()) resolve_price(draft, draft.experiment.platforms.at(platform), stated);
  for (const auto& [key, figures] : draft.raw.benchmarking.enhanced_metrics.hardware_specs.entries)
    resolve_hardware_figures(draft, key, figures);
}

}  // namespace tprimat::suite
