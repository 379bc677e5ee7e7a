#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/extract_request.h"
#include "cli/terminal.h"
#include "process/interrupt.h"
#include "report/log_report.h"
#include "result/result_file.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

void list_files(const fs::path& folder, const fs::path& output, std::vector<fs::path>& files) {
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    const bool hidden = each->path().filename().string().starts_with('.');
    std::error_code ignored;
    if (hidden || (each->is_directory(ignored) && fs::equivalent(each->path(), output, ignored))) {
      if (each->is_directory(ignored)) each.disable_recursion_pending();
      continue;
    }
    if (each->is_regular_file(ignored)) files.push_back(each->path());
  }
  if (error) log_warning(fmt::format("{}: not everything could be listed: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
}

ExtractedFile extract_file(const fs::path& path, const fs::path& folder, const ExtractRequest& request,
                           std::set<fs::path>& taken) {
  ExtractedFile file{fs::relative(path, folder).string(), "", "", {}};
  try {
    file.result = extract_log(path.string(), request).front();
    const bool nothing = file.result.step_times.empty() && !file.result.events;
    if (nothing) {
      file.why_nothing = file.result.status_reason.value_or("no step was found");
    } else {
      const fs::path target = free_path(fs::path(request.output) / (file.path + ".json"), file.result, taken);
      write_run_result(target, file.result, Survives::kill);
      file.result_path = target.string();
    }
  } catch (const Error& error) {
    if (error.status() == ExitStatus::work_failed) throw;  // the results cannot be written
    file.why_nothing = error.problems().front().what;
  }
  RunResult& result = file.result;
  const double last_loss = result.loss_values.empty() ? 0 : result.loss_values.back();
  result.step_times.clear(), result.learning_rates.clear(), result.grad_norms.clear(), result.memory_values.clear();
  if (!result.loss_values.empty()) result.loss_values = {last_loss};
  result.reported.reset(), result.steps.reset(), result.events.reset(), result.effective_config.reset();
  result.step_telemetry.reset();
  return file;
}

void show_progress(size_t done, size_t all, SteadyClock::time_point start) {
  if (!is_live_terminal(STDERR_FILENO) || log_settings().level == LogLevel::quiet) return;
  const double seconds = seconds_since(start);
  const double left = done > 0 ? seconds / static_cast<double>(done) * static_cast<double>(all - done) : 0;
  write_stderr(done < all ? fmt::format("\r\033[K{} of {} files, {} left", done, all, format_duration(left))
                          : "\r\033[K");
}

Json file_to_json(const ExtractedFile& file) {
  Json entry = {{"file", file.path}};
  if (!file.why_nothing.empty()) {
    entry["nothing"] = file.why_nothing;
    return entry;
  }
  entry["result"] = file.result_path;
  entry["format"] = file.result.source.format.value_or("");
  entry["status"] = std::string(enum_name(file.result.status));
  if (file.result.status_reason) entry["status_reason"] = *file.result.status_reason;
  if (file.result.performance_metrics) entry["steps"] = file.result.performance_metrics->total_steps;
  if (file.result.statistics) entry["median_step_time_seconds"] = file.result.statistics->median;
  return entry;
}

}  // namespace

ExitStatus extract_folder(const fs::path& folder, const ExtractRequest& request, const Session& session) {
  if (fs::path(request.output).extension() == ".json")
    throw Error(Problem{"a folder of logs gives many results", "--output", "name a directory"});
  std::vector<fs::path> paths;
  list_files(folder, request.output, paths);
  if (paths.empty()) throw Error(Problem{"holds no files", folder.string(), ""});
  InterruptGuard interrupt;
  std::vector<ExtractedFile> files;
  std::set<fs::path> taken;
  const auto start = SteadyClock::now();
  for (const fs::path& path : paths) {
    if (interrupt.count() > 0) return ExitStatus::interrupted;
    files.push_back(extract_file(path, folder, request, taken));
    if (files.size() % 16 == 0 || files.size() == paths.size()) show_progress(files.size(), paths.size(), start);
  }
  if (session.json) {
    Json list = Json::array();
    for (const ExtractedFile& file : files) list.push_back(file_to_json(file));
    print_result(print_json(list));
  } else {
    print_result(render_extracted_files(files));
  }
  const auto given = std::count_if(files.begin(), files.end(), [](const auto& f) { return f.why_nothing.empty(); });
  log_note(fmt::format("{} of {} files gave a result, written below {}", given, files.size(), request.output));
  return given > 0 ? ExitStatus::done : ExitStatus::work_failed;
}

}  // namespace tprimat
