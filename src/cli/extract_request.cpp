#include "cli/extract_request.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/progress.h"
#include "command_line/output_target.h"
#include "compare/audit.h"
#include "extract/log_source.h"
#include "process/interrupt.h"
#include "report/extract_document.h"
#include "result/result_file.h"
#include "result/result_place.h"
#include "result/summary.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

results::ExtractedFile extract_file(const fs::path& path, const fs::path& folder, const ExtractRequest& request,
                                    std::set<fs::path>& taken) {
  results::ExtractedFile file{fs::relative(path, folder).string(), "", "", {}};
  try {
    suite::ExtractOptions options = request.options;
    options.named.path = file.path;
    file.result = suite::extract_runs(path.string(), options).front();
    const bool nothing = file.result.step_times.empty() && !file.result.events && !file.result.time_to_train;
    if (nothing) {
      file.why_nothing = file.result.status_reason.value_or("no steps found");
    } else {
      const fs::path target = free_path(fs::path(request.output) / (file.path + ".json"), file.result, taken);
      write_run_result(target, file.result, Survives::kill);
      file.result_path = target.string();
    }
  } catch (const Error& error) {
    if (error.status() == ExitStatus::work_failed) throw;  // the results cannot be written
    file.why_nothing = error.problems().front().what;
  }
  results::drop_series(file);
  return file;
}

int64_t file_size(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

// The name follows from what is known of the run, which grows with the log; each name is settled once.
fs::path place_of(const RunResult& result, const std::string& log, const ExtractRequest& request,
                  std::map<std::string, fs::path>& places) {
  const auto [place, is_new] = places.try_emplace(result_path(result, log, request).string());
  std::set<fs::path> taken;
  if (is_new) place->second = free_result_path(result, log, request, taken);
  return place->second;
}

}  // namespace

std::filesystem::path result_path(const RunResult& result, const std::string& log, const ExtractRequest& request) {
  const logs::AttemptChoice& attempts = request.options.attempts;
  const std::filesystem::path output = request.output;
  return tprimat::result_path(result, log, output, attempts.all || (attempts.number && output.extension() != ".json"));
}

std::filesystem::path free_result_path(const RunResult& result, const std::string& log, const ExtractRequest& request,
                                       std::set<std::filesystem::path>& taken) {
  const std::filesystem::path wanted = result_path(result, log, request);
  const bool is_chosen = wanted == std::filesystem::path(request.output);
  std::error_code unreadable;
  const bool is_log = std::filesystem::equivalent(wanted, log, unreadable);
  if (is_log && is_chosen)
    throw Error(Problem{fmt::format("{} is the log itself", wanted.string()), "--output", "name another file"});
  if (is_log && result.source.format == "result")
    throw Error(Problem{"is a result, beside which another one of the same run would count twice in `compare`", log,
                        "choose a file in another folder with --output"});
  return is_chosen ? wanted : free_path(wanted, result, taken);
}

std::optional<RunResult> take_plain_result(const std::string& path, const ExtractRequest& request) {
  const suite::ExtractOptions& options = request.options;
  const bool states_more = !options.format.empty() || !options.telemetry.empty() || !request.attempt.empty() ||
                           !options.known.model.empty() || !options.known.device.empty() || request.devices > 0 ||
                           request.batch > 0 || request.length > 0 || request.warmup >= 0 ||
                           !request.platform.empty() || !request.precision.empty() || !request.framework.empty();
  return states_more || path == "-" ? std::nullopt : complete_plain_result(path);
}

fs::path completed_path(const RunResult& result, const std::string& path, const ExtractRequest& request) {
  if (!request.names_output) return path;
  const fs::path wanted = result_path(result, path, request);
  std::error_code unreadable;
  if (fs::equivalent(wanted, path, unreadable) || wanted == fs::path(request.output)) return wanted;
  std::set<fs::path> taken;
  return free_path(wanted, result, taken);
}

ExitStatus extract_folder(const fs::path& folder, const ExtractRequest& request, const Session& session) {
  if (names_stdout(request.output) || fs::path(request.output).extension() == ".json")
    throw Error(Problem{"a folder of logs produces several results", "--output", "name a directory"});
  const std::vector<fs::path> paths = logs::list_log_files(folder, request.output);
  if (paths.empty()) throw Error(Problem{"contains no files", folder.string(), ""});
  InterruptGuard interrupt;
  std::vector<results::ExtractedFile> files;
  std::set<fs::path> taken;
  const auto start = SteadyClock::now();
  for (const fs::path& path : paths) {
    if (interrupt.count() > 0) return ExitStatus::interrupted;
    files.push_back(extract_file(path, folder, request, taken));
    if (files.size() % 16 == 0 || files.size() == paths.size())
      show_progress({files.size(), paths.size()}, "files", start);
  }
  print_result(session.json ? print_json(to_json(results::document::describe_extracted(files)))
                            : results::render_extracted_files(files));
  const auto given = std::count_if(files.begin(), files.end(), [](const auto& f) { return f.why_nothing.empty(); });
  log_note(fmt::format("{} of {} files gave a result, written to {}", given, files.size(), request.output));
  return given > 0 ? ExitStatus::done : ExitStatus::work_failed;
}

void tell_contradictions(RunResult& result, const fs::path& target) {
  results::LoadedRun run{target.string(), std::move(result)};
  for (const results::Finding& finding : results::find_run_errors(run))
    if (finding.code != "status" && !finding.code.ends_with("_missing"))
      log_warning(fmt::format("{} [{}]: {}", finding.sentence, finding.code, finding.remedy));
  result = std::move(run.result);
}

ExitStatus tell_outcome(const RunResult& result, const std::string& path) {
  for (const std::string& warning : result.warnings) log_warning(printable(warning));
  if (result.status == RunStatus::complete) return ExitStatus::done;
  log_error(fmt::format("{}: {}{}", path == "-" ? "standard input" : printable(path), enum_name(result.status),
                        result.status_reason ? ", " + printable(*result.status_reason) : ""));
  return ExitStatus::work_failed;
}

// Reads the log anew whenever it grew: at a gigabyte per second that is cheaper than being wrong about a restart. No
// more than a tenth of the time is spent reading.
ExitStatus follow_log(const std::string& path, const ExtractRequest& request) {
  InterruptGuard interrupt;
  std::map<std::string, fs::path> places;
  int64_t seen = -1;
  double pause = 0.5;
  while (interrupt.count() == 0) {
    if (const int64_t size = file_size(path); size != seen) {
      const auto start = SteadyClock::now();
      const RunResult result = suite::extract_runs(path, request.options).front();
      if (!result.step_times.empty() || result.events || result.time_to_train)
        write_run_result(place_of(result, path, request, places), result, Survives::kill);
      seen = size;
      pause = std::clamp(10 * seconds_since(start), 0.5, 60.0);
      const size_t entries = result.step_times.size();
      if (entries > 0) {
        const double seconds = result.step_times.back();
        log_note(
            fmt::format("step {}{}{}{}", step_number(result, entries - 1),
                        result.training_config.max_steps ? fmt::format("/{}", *result.training_config.max_steps) : "",
                        seconds > 0 ? ", " + format_duration(seconds) : "",
                        result.loss_values.empty() ? "" : fmt::format(", loss {:.4f}", result.loss_values.back())));
      }
    }
    for (double waited = 0; waited < pause && interrupt.count() == 0; waited += 0.1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return ExitStatus::interrupted;
}

}  // namespace tprimat::cli
