#include "run/extracted_runs.h"

#include <fmt/format.h>

#include "extract/read_log.h"
#include "extract/to_result.h"
#include "result/summary.h"
#include "run/step_telemetry.h"
#include "run/telemetry_report.h"
#include "telemetry/telemetry_file.h"

namespace tprimat::suite {
namespace {

// Energy of other devices than those that trained is not the training's.
void check_measured_devices(RunResult& result, int64_t measured) {
  const auto trained = device_count(result);
  if (!trained || measured == 0 || measured == *trained) return;
  const std::string why = fmt::format("{} devices were measured, but {} trained", measured, *trained);
  bool has_energy = false;
  for (TelemetrySummary& each : result.telemetry) {
    if (!each.energy_joules) continue;
    has_energy = true;
    each.energy_valid = false;
    each.energy_note = why;
  }
  if (has_energy) add_warning(result, why + ": there is no energy per token");
}

// Joins steps and telemetry by time: the sensors' readings during the steady steps.
void join_telemetry(RunResult& result, const std::vector<std::string>& files) {
  const Platform platform = result.platform.value_or(Platform::nvd);
  std::vector<SensorTrace> traces;
  for (const std::string& path : files) {
    const TelemetryFile file = load_telemetry_file(path);
    for (const std::string& note : file.notes) add_warning(result, fmt::format("{}: {}", path, note));
    const auto window = steady_window(result);
    if (!file.timed || !window) {
      add_warning(result, fmt::format("{} cannot be joined to the steps: {} no time stamps", path,
                                      file.timed ? "the log has" : "it has"));
      continue;
    }
    for (TelemetrySummary& each : report_telemetry(file.traces, *window, platform))
      result.telemetry.push_back(std::move(each));
    traces.insert(traces.end(), file.traces.begin(), file.traces.end());
  }
  check_measured_devices(result, std::ssize(traces));
  result.step_telemetry = measure_steps(traces, step_windows(result), platform, std::nullopt);
  if (!files.empty()) summarise_run(result, stored_options(result));
}

}  // namespace

std::vector<RunResult> extract_runs(const std::string& path, const ExtractOptions& options) {
  std::vector<RunResult> results;
  for (const logs::ReadLog& read : logs::choose_attempts(logs::read_log(path, {options.format}), options.attempts)) {
    results.push_back(logs::make_result(read, path, options.known));
    join_telemetry(results.back(), options.telemetry);
    logs::warn_about_unknown_names(results.back(), options.known);
  }
  return results;
}

}  // namespace tprimat::suite
