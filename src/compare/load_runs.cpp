#include "compare/load_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/parallel_for.h"
#include "compare/outlier_causes.h"
#include "compare/plausibility.h"
#include "compare/reported_figures.h"
#include "result/result_file.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// Summaries of profiled runs lie beside the results and are none. A broken link or a loop of links is no file; it does
// not hide the files beside it.
std::vector<fs::path> json_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".json" && !entry.path().filename().string().starts_with("profile_") &&
        entry.is_regular_file(ignored))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// A file to read; one found in a directory may turn out to be no result.
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
    for (const fs::path& path : json_files(directory))
      if (seen_.insert(fs::is_symlink(path) ? fs::canonical(path) : real / path.filename()).second)
        candidates_.push_back({path.string(), false});
  }

  std::vector<Candidate> candidates_;
  std::set<fs::path> seen_;
};

// What became of a candidate: one of the two.
struct Outcome {
  std::optional<RunResult> result;
  std::optional<std::string> outliers, clock_gap, reported_gap;
  std::vector<Problem> problems;
};

// Neither a comparison nor a report looks at these series, once the outliers are described, and thousands of runs hold
// gigabytes of them.
void drop_unused_series(RunResult& result) {
  result.grad_norms = {};
  result.memory_values = {};
  result.reported.reset();
  result.step_telemetry.reset();
}

Outcome read_candidate(const Candidate& candidate, bool keeps_all) {
  Outcome outcome;
  try {
    outcome.result = load_run_result(candidate.path);
    if (keeps_all) return outcome;
    const auto& statistics = outcome.result->statistics;
    if (statistics && !statistics->outliers.empty()) outcome.outliers = describe_outliers(*outcome.result);
    outcome.clock_gap = describe_clock_gap(*outcome.result);
    outcome.reported_gap = describe_reported_gap(*outcome.result);
    drop_unused_series(*outcome.result);
  } catch (const Error& error) {
    outcome.problems = error.problems();
  }
  return outcome;
}

std::vector<Outcome> read_candidates(const std::vector<Candidate>& candidates, bool keeps_all) {
  std::vector<Outcome> outcomes(candidates.size());
  parallel_for(candidates.size(), [&](size_t i) { outcomes[i] = read_candidate(candidates[i], keeps_all); });
  return outcomes;
}

}  // namespace

LoadedRuns load_runs(const std::vector<std::string>& paths) {
  Lister lister;
  std::vector<Problem> problems;
  for (const std::string& path : paths) {
    try {
      lister.add(path);
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    } catch (const fs::filesystem_error& error) {
      problems.push_back({fmt::format("cannot be read: {}", error.code().message()), path, ""});
    }
  }
  const std::vector<Candidate> candidates = lister.take();
  constexpr size_t k_many = 1000;
  LoadedRuns loaded;
  loaded.all_series = candidates.size() <= k_many;
  std::vector<Outcome> outcomes = read_candidates(candidates, loaded.all_series);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (outcomes[i].result)
      loaded.runs.push_back({candidates[i].path, std::move(*outcomes[i].result), std::move(outcomes[i].outliers),
                             std::move(outcomes[i].clock_gap), std::move(outcomes[i].reported_gap)});
    else if (candidates[i].was_named)
      problems.insert(problems.end(), outcomes[i].problems.begin(), outcomes[i].problems.end());
    else
      loaded.skipped.push_back({candidates[i].path, outcomes[i].problems.front().what});
  }
  throw_if_any(std::move(problems));
  return loaded;
}

}  // namespace tprimat
