#include "cli/extract_request.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "extract/attempts.h"
#include "extract/read_log.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "run/step_telemetry.h"
#include "run/telemetry_report.h"
#include "spec/hardware_catalogue.h"
#include "spec/model_catalogue.h"
#include "telemetry/telemetry_file.h"
#include "text/format.h"

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

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code unreadable;
  return one == other ||
         std::filesystem::weakly_canonical(one, unreadable) == std::filesystem::weakly_canonical(other, unreadable);
}

// The other log, or the measured run, that the result at `path` is of. Empty where none is lost when `result` replaces
// it.
std::string owner_of_result(const std::filesystem::path& path, const RunResult& result) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return "";
  try {
    const RunResult there = load_run_result(path);
    if (there.config_hash && !result.config_hash) return "a measured run";
    const std::string log = there.source.log.value_or("another run");
    return is_same_file(log, result.source.log.value_or("")) ? "" : log;
  } catch (const Error&) {  // no result, or half of one
    return "";
  }
}

std::string suggest_catalogued(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = nearest_word(name, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

// "A100" is several parts, "H1000" a slip.
std::string suggest_device(const std::string& name) {
  std::vector<std::string> parts, names;
  for (const HardwareSpec& part : hardware_catalogue()) {
    if (part.id.starts_with(name + "-")) parts.push_back(part.id);
    names.insert(names.end(), part.device_names.begin(), part.device_names.end());
  }
  return parts.empty() ? suggest_catalogued(name, names) : fmt::format("; did you mean {}?", fmt::join(parts, " or "));
}

// A name that no catalogue knows leaves figures out, and may be a slip.
void warn_about_unknown_names(RunResult& result, const KnownFacts& known) {
  const bool is_gpu = result.platform != Platform::cpu;
  if (is_gpu && !known.device.empty() && !result.derived.peak && !find_hardware(known.device))
    add_warning(result, fmt::format("no device of the catalogue is called {}: no peak, no MFU{}", known.device,
                                    suggest_device(known.device)));
  if (!known.model.empty() && !result.model_info.shape && !find_model(known.model)) {
    std::vector<std::string> names;
    for (const KnownModel& model : model_catalogue()) names.push_back(model.spec.full_name);
    add_warning(result, fmt::format("no model of the catalogue is called {}: no shape, no MFU{}", known.model,
                                    suggest_catalogued(known.model, names)));
  }
}

std::vector<ReadLog> wanted_attempts(ReadLog read, const ExtractRequest& request) {
  std::vector<ReadLog> wanted;
  if (request.attempt.empty() || (request.attempt == k_all_attempts && read.attempts == 1)) {
    wanted.push_back(std::move(read));
  } else if (request.attempt == k_all_attempts) {
    for (int64_t attempt = 1; attempt <= read.attempts; ++attempt) wanted.push_back(select_attempt(read, attempt));
  } else {
    wanted.push_back(select_attempt(read, std::stoll(request.attempt)));
  }
  return wanted;
}

}  // namespace

std::vector<RunResult> extract_log(const std::string& path, const ExtractRequest& request) {
  std::vector<RunResult> results;
  for (const ReadLog& read : wanted_attempts(read_log(path, {request.format}), request)) {
    results.push_back(make_result(read, path, request.known));
    join_telemetry(results.back(), request.telemetry);
    warn_about_unknown_names(results.back(), request.known);
  }
  return results;
}

std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request) {
  const std::filesystem::path output = request.output;
  const bool is_named = output.extension() == ".json";
  const std::filesystem::path path = is_named ? output : output / result_name(result, log);
  const bool of_many = request.attempt == k_all_attempts || (!request.attempt.empty() && !is_named);
  return of_many ? path.parent_path() /
                       fmt::format("{}.attempt{}.json", path.stem().string(), result.source.attempt.value_or(1))
                 : path;
}

std::filesystem::path free_path(const std::filesystem::path& wanted, const RunResult& result,
                                std::set<std::filesystem::path>& taken) {
  std::filesystem::path path = wanted;
  std::string owner;
  for (int k = 2;; ++k) {
    const std::string other = taken.contains(path) ? "" : owner_of_result(path, result);
    if (owner.empty()) owner = other;
    if (!taken.contains(path) && other.empty()) break;
    path = wanted.parent_path() / fmt::format("{}_{}.json", wanted.stem().string(), k);
  }
  taken.insert(path);
  if (!owner.empty())
    log_warning(
        fmt::format("{} is the result of {} and stays: the result of {} goes to {}; --output NAME.json names it",
                    wanted.string(), printable(owner), printable(result.source.log.value_or("")), path.string()));
  return path;
}

std::filesystem::path free_result_path(const RunResult& result, const std::string& log, const ExtractRequest& request,
                                       std::set<std::filesystem::path>& taken) {
  const std::filesystem::path wanted = result_path(result, log, request);
  return wanted == std::filesystem::path(request.output) ? wanted : free_path(wanted, result, taken);
}

}  // namespace tprimat
