#include "run/profiled_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "launch/profilers.h"
#include "result/summary.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// Records of these steps lie beside those of the measured ones.
fs::path records_of(const PlannedRun& run) { return fs::path(run.request.paths.folder) / "profiled_steps.jsonl"; }

// "output/train_x.json" -> "output/train_x_profile"
fs::path folder_beside(const fs::path& result) { return result.parent_path() / (result.stem().string() + "_profile"); }

std::vector<double> read_step_times(const PlannedRun& run) {
  const ProfileWindow& window = *run.request.profiled_steps;
  std::vector<double> times;
  for (const StepRecord& record : read_step_records(records_of(run).string()))
    if (record.step >= window.first_step && record.step <= window.last_step) times.push_back(record.time_seconds);
  return times;
}

// The first trace appears where all of them lie under their final names.
std::vector<std::string> move_traces(const PlannedRun& run) {
  const ProfileWindow& window = *run.request.profiled_steps;
  const fs::path folder = folder_beside(run.plan.result_path);
  std::vector<std::string> files;
  for (int64_t rank = 0; rank < run.spec.parallel.ranks(); ++rank) {
    const fs::path trace = trace_of_rank(window, rank);
    if (fs::is_regular_file(trace)) files.push_back((folder.filename() / trace.filename()).string());
  }
  if (files.empty()) return files;
  fs::remove_all(folder);
  fs::rename(window.trace, folder);
  return files;
}

}  // namespace

void plan_profiled_steps(PlannedRun& run, int64_t count) {
  if (count == 0) return;
  try {
    run.request.profiled_steps = choose_further_steps(*find_framework(run.framework), run.request, count);
  } catch (const Error& error) {
    const Problem& problem = error.problems().front();
    run.unprofiled = problem.what + "; " + problem.hint;
  }
}

void remove_profiled_steps(const PlannedRun& run) {
  if (run.profile) return;
  std::error_code ignored;  // what cannot be removed cannot be replaced either, which will be told
  fs::remove_all(folder_beside(run.plan.result_path), ignored);
  fs::remove_all(rank_traces_folder(run.request.paths), ignored);
  fs::remove(records_of(run), ignored);
}

void bring_profiled_steps(RunResult& result, const PlannedRun& run) {
  if (!run.unprofiled.empty()) add_warning(result, run.unprofiled);
  if (!run.request.profiled_steps || result.status != RunStatus::complete) return;
  const ProfileWindow& window = *run.request.profiled_steps;
  RunProfile profile;
  profile.profiler = window.profiler;
  profile.first_step = window.first_step, profile.last_step = window.last_step;
  try {
    profile.step_times = read_step_times(run);
    profile.files = move_traces(run);
  } catch (const fs::filesystem_error& error) {
    return add_warning(result, fmt::format("the traces of the profiled steps are lost: {}", error.what()));
  }
  const int64_t ranks = run.spec.parallel.ranks(), steps = window.last_step - window.first_step + 1;
  if (std::ssize(profile.step_times) != steps) profile.files.clear();  // it ended too early
  if (profile.files.empty())
    return add_warning(result, "the profiled steps left no trace; the end of the log shows why");
  if (std::ssize(profile.files) < ranks)
    add_warning(result,
                fmt::format("only {} of {} ranks left a trace of the profiled steps", profile.files.size(), ranks));
  result.profile = std::move(profile);
}

void forgive_profiled_steps(RunResult& result, const PlannedRun& run, const TrainingTrace& trace) {
  if (result.status != RunStatus::failed || !run.request.profiled_steps || trace.problem) return;
  const auto is_last = [&](const StepRecord& record) { return record.step == run.spec.steps; };
  if (!run.spec.checkpoint.directory.empty() || std::ranges::none_of(trace.steps, is_last)) return;
  add_warning(result, fmt::format("all measured steps were done, but the profiled ones after them failed: {}",
                                  result.status_reason.value_or("unknown reason")));
  result.status = RunStatus::complete;
  result.status_reason.reset();
  result.failure_kind.reset();
  result.failed_rank.reset();
}

bool has_profiled_steps(const RunResult& earlier, const PlannedRun& run) {
  const auto& window = run.request.profiled_steps;
  if (!window) return true;
  if (!earlier.profile) return false;
  const RunProfile& profile = *earlier.profile;
  const fs::path folder = fs::path(run.plan.result_path).parent_path();
  return profile.profiler == window->profiler && profile.first_step == window->first_step &&
         profile.last_step == window->last_step && std::ssize(profile.files) == run.spec.parallel.ranks() &&
         std::ranges::all_of(profile.files, [&](const std::string& file) { return fs::exists(folder / file); });
}

}  // namespace tprimat::suite
