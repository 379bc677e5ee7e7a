#include "cli/extract_request.h"

#include <fmt/format.h>

#include "extract/read_log.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "run/step_telemetry.h"
#include "run/telemetry_report.h"
#include "telemetry/telemetry_file.h"

namespace tprimat {
namespace {

// Steps and telemetry meet in time: what the sensors said while the steady steps ran.
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
  result.step_telemetry = measure_steps(traces, step_windows(result), platform, std::nullopt);
  if (!files.empty()) summarise_run(result, stored_options(result));
}

std::string result_name(const RunResult& result, const std::string& log) {
  if (!result.model_info.name.empty() && result.platform) return result_file_name(result, {});
  return (log == "-" ? std::string("stdin") : std::filesystem::path(log).filename().string()) + ".json";
}

}  // namespace

RunResult extract_log(const std::string& path, const ExtractRequest& request) {
  RunResult result = make_result(read_log(path, {request.format}), path, request.known);
  join_telemetry(result, request.telemetry);
  return result;
}

std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request) {
  const std::filesystem::path output = request.output;
  return output.extension() == ".json" ? output : output / result_name(result, log);
}

}  // namespace tprimat
