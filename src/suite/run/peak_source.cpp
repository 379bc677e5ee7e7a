#include "run/peak_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/printable.h"
#include "result/peak.h"
#include "spec/hardware_catalogue.h"

namespace tprimat::suite {
namespace {

std::optional<PeakInfo> stated_peak(const PlannedRun& run) {
  const auto stated = run.setup.peak_flops_override.find(run.spec.precision);
  if (stated == run.setup.peak_flops_override.end()) return std::nullopt;
  return stated_peak_info({run.setup.device_model, run.spec.precision, stated->second});
}

// The configured device is not the one here. A name that the catalogue does not know may be a part of the other.
bool is_other_device(const std::string& configured, const std::string& here) {
  if (configured == "auto") return false;
  const auto ours = find_hardware(configured), theirs = find_hardware(here);
  if (ours && theirs) return ours->id != theirs->id;
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return (ours || theirs) && std::ranges::search(here, configured, same).empty();
}

std::optional<MeasuredPeak> without_warning(const std::optional<PeakInfo>& peak) {
  if (!peak) return std::nullopt;
  return MeasuredPeak{*peak, std::nullopt};
}

}  // namespace

std::optional<MeasuredPeak> PeakSource::find(const PlannedRun& run) {
  const Precision precision = run.spec.precision;
  const std::optional<PeakInfo> stated = stated_peak(run);
  const std::optional<std::string> here = device_here(run);
  if (stated && here && is_other_device(run.setup.device_model, *here)) return find_of_other(run, *here);
  if (stated && run.setup.peak_origin == PeakOrigin::mine) return without_warning(stated);
  if (const auto known = find_catalogued(run)) return without_warning(known);
  if (stated) return without_warning(stated);
  const bool elsewhere = run.plan.place == Whereabouts::elsewhere;
  if (run.platform != Platform::cpu || elsewhere) return std::nullopt;  // a processor elsewhere has another peak
  return find_of_ranks(precision, run.spec.threads, run.spec.parallel.ranks());
}

std::optional<std::string> PeakSource::device_here(const PlannedRun& run) const {
  if (run.platform == Platform::cpu || run.plan.place == Whereabouts::elsewhere) return std::nullopt;
  for (const GpuFacts& gpu : around_.machine.gpus)
    if (gpu.platform == run.platform) return gpu.name;
  return std::nullopt;
}

std::optional<PeakInfo> PeakSource::find_catalogued(const PlannedRun& run) const {
  if (run.platform == Platform::cpu) return std::nullopt;
  return catalogue_peak(device_here(run).value_or(run.setup.device_model), run.spec.precision);
}

std::optional<MeasuredPeak> PeakSource::find_of_other(const PlannedRun& run, const std::string& here) {
  const std::string why = fmt::format("the configuration's peak is that of {}, but this machine has {}",
                                      run.setup.device_model, printable(here));
  if (const auto known = catalogue_peak(here, run.spec.precision))
    return MeasuredPeak{*known, why + ": MFU uses the hardware catalogue's"};
  reporter_.noted("no MFU: " + why);
  return std::nullopt;
}

std::optional<MeasuredPeak> PeakSource::find_of_ranks(Precision precision, int64_t threads, int64_t ranks) {
  const int64_t usable = around_.machine.cpu.usable_threads;  // more ranks than processors share the same threads
  std::optional<MeasuredPeak> peak = find_measured(precision, ranks > 1 ? std::min(threads * ranks, usable) : threads);
  if (!peak) return peak;
  peak->peak.flops_per_second /= static_cast<double>(ranks);
  if (peak->peak.memory_bytes_per_second) *peak->peak.memory_bytes_per_second /= static_cast<double>(ranks);
  if (ranks > 1) peak->peak.source = fmt::format("1/{} of the machine's: {}", ranks, peak->peak.source);
  return peak;
}

std::optional<MeasuredPeak> PeakSource::find_measured(Precision precision, int64_t threads) {
  const auto known = measured_.find({precision, threads});
  if (known != measured_.end()) return known->second;
  return measured_[{precision, threads}] = measure(precision, threads);
}

std::optional<MeasuredPeak> PeakSource::measure(Precision precision, int64_t threads) {
  if (!around_.measure_peak) return std::nullopt;
  reporter_.noted(fmt::format("measuring the {} matmul peak of this processor", enum_name(precision)));
  try {
    std::optional<MeasuredPeak> peak = around_.measure_peak(precision, threads);
    constexpr int k_more_attempts = 2;  // other processes may be gone by then
    for (int attempt = 0; attempt < k_more_attempts && peak && peak->warning; ++attempt) {
      const std::optional<MeasuredPeak> again = around_.measure_peak(precision, threads);
      if (again && (!again->warning || again->peak.flops_per_second > peak->peak.flops_per_second)) peak = again;
    }
    if (!peak) reporter_.noted(fmt::format("no MFU: this processor has no {} matrix products", enum_name(precision)));
    return peak;
  } catch (const Error& error) {
    if (around_.interrupts && around_.interrupts() > 0) return std::nullopt;  // the measurement was aborted
    reporter_.noted(fmt::format("no MFU: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace tprimat::suite
