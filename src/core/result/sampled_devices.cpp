#include "result/sampled_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "result/summary.h"

namespace tprimat {
namespace {

bool is_one_device(const TelemetrySummary& entry) {
  return entry.source.find(':') != std::string::npos && is_device_counter(entry.source);
}

bool is_on_gpus(const RunResult& result) { return result.platform && *result.platform != Platform::cpu; }

std::string describe_counts(int64_t sampled, int64_t trained) {
  if (sampled > trained)
    return fmt::format("{} devices were sampled, but only {} trained, so there is no energy per token", sampled,
                       trained);
  return fmt::format("{} of the {} devices were sampled, so there is no energy per token", sampled, trained);
}

}  // namespace

bool is_device_counter(std::string_view source) {
  constexpr std::string_view k_tools[] = {"nvml", "amd_smi", "rocm_smi", "nvidia-smi", "rocm-smi", "amd-smi"};
  const std::string_view tool = source.substr(0, source.find(':'));
  return std::find(std::begin(k_tools), std::end(k_tools), tool) != std::end(k_tools);
}

std::optional<int64_t> sampled_devices(const RunResult& result, const TelemetrySummary& entry) {
  if (is_one_device(entry)) return 1;
  if (entry.source == "rapl" && is_on_gpus(result)) return 0;
  const std::string prefix = entry.source + ":";
  const auto parts = std::count_if(result.telemetry.begin(), result.telemetry.end(), [&](const TelemetrySummary& each) {
    return each.source.starts_with(prefix) && is_one_device(each);
  });
  return parts > 0 ? std::optional<int64_t>(parts) : std::nullopt;
}

int64_t count_sampled_devices(const RunResult& result) {
  return std::count_if(result.telemetry.begin(), result.telemetry.end(), is_one_device);
}

bool covers_all_devices(const RunResult& result, const TelemetrySummary& entry) {
  const auto sampled = sampled_devices(result, entry), trained = device_count(result);
  return !sampled || !trained || *sampled == *trained;
}

void refuse_partial_energy(RunResult& result, int64_t sampled) {
  const auto trained = device_count(result);
  if (!trained || sampled == *trained) return;
  const std::string why = describe_counts(sampled, *trained);
  bool has_energy = false;
  for (TelemetrySummary& each : result.telemetry) {
    if (!each.energy_joules) continue;
    has_energy = true;
    each.energy_valid = false;
    each.energy_note = why;
  }
  if (sampled > 0 && !has_energy) return;
  add_warning(result, sampled > *trained ? why
                                         : why +
                                               "; record the power on every node while it trains, and pass all files "
                                               "to tprimat extract with --telemetry");
}

}  // namespace tprimat
