#include "compare/load_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/parallel_for.h"
#include "compare/expert_facts.h"
#include "compare/expert_rules.h"
#include "compare/plausibility.h"
#include "result/result_file.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool is_candidate(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.path().extension() == ".json" && !entry.path().filename().string().starts_with("profile_") &&
         entry.is_regular_file(ignored);
}

std::vector<fs::path> list_tree(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied, error);
  if (error) throw fs::filesystem_error("cannot be read", folder, error);
  for (; walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    if (error) break;
    if (is_hidden(walk->path()))
      walk.disable_recursion_pending();
    else if (is_candidate(*walk))
      files.push_back(walk->path());
  }
  return files;
}

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_candidate(entry)) files.push_back(entry.path());
  return files;
}

namespace fs = std::filesystem;

// A file to read; one found in a directory may turn out not to be a result.
struct Candidate {
  std::string path;
  bool was_named = false;
};

// Lists files without reading them. A file named twice counts once.
class Lister {
 public:
  void add(const std::string& path) {
    if (!fs::exists(path))
      throw Error(Problem{"does not exist", path, "give result files, or the directory that `tprimat run` wrote to"});
    if (fs::is_directory(path))
      add_directory(path);
    else if (seen_.insert(fs::canonical(path)).second)
      candidates_.push_back({path, true});
  }

  std::vector<Candidate> take() { return std::move(candidates_); }

 private:
  void add_directory(const fs::path& directory) {
    const fs::path real = fs::canonical(directory);
    for (const fs::path& path : list_result_files(directory, FolderReach::itself))
      if (seen_.insert(fs::is_symlink(path) ? fs::canonical(path) : real / path.filename()).second)
        candidates_.push_back({path.string(), false});
  }

  std::vector<Candidate> candidates_;
  std::set<fs::path> seen_;
};

// The outcome for a candidate: one of the two.
struct LoadOutcome {
  std::optional<LoadedRun> run;
  std::vector<Problem> problems;
};

// Thousands of runs hold gigabytes of these series. After the audit only the time stamps are needed: they show copies.
void drop_most_series(LoadedRun& run) {
  RunResult& result = run.result;
  if (result.statistics && !result.statistics->outliers.empty()) run.outliers = describe_outliers(result);
  run.clock_gap = describe_clock_gap(result);
  run.reported_gap = describe_reported_gap(result);
  run.dense_count = describe_dense_count(result);
  run.load_effect = describe_load_effect(result);
  run.skipped_updates = count_skipped_updates(result);
  result.grad_norms = {};
  result.memory_values = {};
  result.step_telemetry.reset();
  keep_means(result);
  if (!result.reported) return;
  ReportedFigures kept;
  kept.unix_time = std::move(result.reported->unix_time);
  result.reported = std::move(kept);
}

LoadOutcome read_candidate(const Candidate& candidate, bool keeps_all) {
  ReadOutcome read = read_result_file(candidate.path);
  if (!read.result) return {std::nullopt, std::move(read.problems)};
  LoadedRun run{candidate.path, std::move(*read.result)};
  if (!keeps_all) drop_most_series(run);
  return {std::move(run), {}};
}

std::vector<LoadOutcome> read_candidates(const std::vector<Candidate>& candidates, bool keeps_all) {
  std::vector<LoadOutcome> outcomes(candidates.size());
  parallel_for(candidates.size(), [&](size_t i) { outcomes[i] = read_candidate(candidates[i], keeps_all); });
  return outcomes;
}

}  // namespace

std::vector<fs::path> list_result_files(const fs::path& folder, FolderReach reach) {
  std::vector<fs::path> files = reach == FolderReach::itself ? list_folder(folder) : list_tree(folder);
  std::ranges::sort(files);
  return files;
}

ReadOutcome read_result_file(const fs::path& path, const std::function<bool(const std::string&)>& wants) {
  ReadOutcome outcome;
  try {
    const std::string text = read_file(path);
    if (!wants || wants(text)) outcome.result = read_run_result(text, path);
  } catch (const Error& error) {
    outcome.problems = error.problems();
  }
  return outcome;
}

SkippedUpdates skipped_updates(const LoadedRun& run) {
  return run.skipped_updates ? *run.skipped_updates : count_skipped_updates(run.result);
}

static std::vector<Candidate> list_candidates(const std::vector<std::string>& paths, std::vector<Problem>& problems) {
  Lister lister;
  for (const std::string& path : paths) {
    try {
      lister.add(path);
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    } catch (const fs::filesystem_error& error) {
      problems.push_back({fmt::format("cannot be read: {}", error.code().message()), path, ""});
    }
  }
  return lister.take();
}

LoadedRuns load_runs(const std::vector<std::string>& paths) {
  std::vector<Problem> problems;
  const std::vector<Candidate> candidates = list_candidates(paths, problems);
  constexpr size_t k_many = 1000;
  LoadedRuns loaded;
  loaded.all_series = candidates.size() <= k_many;
  std::vector<LoadOutcome> outcomes = read_candidates(candidates, loaded.all_series);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (outcomes[i].run)
      loaded.runs.push_back(std::move(*outcomes[i].run));
    else if (candidates[i].was_named)
      problems.insert(problems.end(), outcomes[i].problems.begin(), outcomes[i].problems.end());
    else
      loaded.skipped.push_back({candidates[i].path, outcomes[i].problems.front().what});
  }
  throw_if_any(std::move(problems));
  return loaded;
}

}  // namespace tprimat::results
