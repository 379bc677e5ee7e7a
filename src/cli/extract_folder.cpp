#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/extract_request.h"
#include "command_line/terminal.h"
#include "extract/log_source.h"
#include "process/interrupt.h"
#include "report/log_report.h"
#include "result/result_file.h"
#include "result/result_place.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

results::ExtractedFile extract_file(const fs::path& path, const fs::path& folder, const ExtractRequest& request,
                                    std::set<fs::path>& taken) {
  results::ExtractedFile file{fs::relative(path, folder).string(), "", "", {}};
  try {
    file.result = suite::extract_runs(path.string(), request.options).front();
    const bool nothing = file.result.step_times.empty() && !file.result.events;
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

void show_progress(size_t done, size_t all, SteadyClock::time_point start) {
  if (!is_live_terminal(STDERR_FILENO) || log_settings().level == LogLevel::quiet) return;
  const double seconds = seconds_since(start);
  const double left = done > 0 ? seconds / static_cast<double>(done) * static_cast<double>(all - done) : 0;
  write_stderr(done < all ? fmt::format("\r\033[K{} of {} files, {} left", done, all, format_duration(left))
                          : "\r\033[K");
}

}  // namespace

ExitStatus extract_folder(const fs::path& folder, const ExtractRequest& request, const Session& session) {
  if (fs::path(request.output).extension() == ".json")
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
    if (files.size() % 16 == 0 || files.size() == paths.size()) show_progress(files.size(), paths.size(), start);
  }
  print_result(session.json ? print_json(results::extracted_files_to_json(files))
                            : results::render_extracted_files(files));
  const auto given = std::count_if(files.begin(), files.end(), [](const auto& f) { return f.why_nothing.empty(); });
  log_note(fmt::format("{} of {} files gave a result, written to {}", given, files.size(), request.output));
  return given > 0 ? ExitStatus::done : ExitStatus::work_failed;
}

}  // namespace tprimat::cli
