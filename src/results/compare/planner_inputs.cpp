#include "compare/planner_inputs.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "compare/load_runs.h"
#include "planner/machine_from_probe.h"
#include "published/built_in_tables.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

bool holds_results(const std::string& path) { return fs::is_directory(path) || fs::path(path).extension() == ".json"; }

// Nothing if it is not a report of `tprimat probe`.
std::optional<planner::ProcessorFacts> read_probe_facts(const std::string& path) {
  try {
    return planner::processor_facts(from_json<ProbeReport>(parse_json(read_file(path), path), path));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Reports of `tprimat probe` on GPUs and between them, of one part.
std::vector<planner::Machine> read_probed_gpus(const std::vector<std::string>& paths) {
  if (paths.empty()) return {};
  try {
    return {planner::read_probed_machine(paths, {}, planner::built_in_parameters()).machine};
  } catch (const Error& error) {
    log_warning(fmt::format("skipped the probes of GPUs: {}", error.what()));
    return {};
  }
}

// Results, and the probes of their machines beside them.
std::vector<planner::OwnObservation> load_own_results(const std::vector<std::string>& paths) {
  const LoadedRuns loaded = load_runs(paths);
  std::map<std::string, planner::ProcessorFacts> probed;
  std::vector<std::string> gpu_probes;
  for (const SkippedFile& each : loaded.skipped) {
    if (auto facts = read_probe_facts(each.path))
      probed[facts->name] = *facts;
    else if (planner::is_gpu_probe(each.path))
      gpu_probes.push_back(each.path);
    else
      log_warning(fmt::format("skipped {}: {}", each.path, each.reason));
  }
  std::vector<planner::NamedResult> results;
  for (const LoadedRun& run : loaded.runs) results.push_back({run.path, run.result});
  if (results.empty())
    throw Error(Problem{"there are no run results", paths.front(), "give a folder that tprimat run wrote into"});
  return planner::observe_results(results, probed, read_probed_gpus(gpu_probes));
}

}  // namespace

std::vector<planner::Observation> PlanInputs::observations() const {
  std::vector<planner::Observation> all;
  for (const planner::OwnObservation& each : results)
    if (each.observed) all.push_back(*each.observed);
  return all;
}

PlanInputs sort_plan_inputs(const std::vector<std::string>& paths) {
  PlanInputs inputs;
  std::vector<std::string> results;
  for (const std::string& path : paths)
    if (!fs::exists(path) && path != planner::k_published_word)
      throw Error(
          Problem{"does not exist", path,
                  "give a table of measurements, a result, a folder that tprimat run wrote into, or `published`"});
  const auto is_result = [](const std::string& path) {
    return path != planner::k_published_word && holds_results(path);
  };
  for (const std::string& path : paths) (is_result(path) ? results : inputs.tables).push_back(path);
  if (!results.empty()) inputs.results = load_own_results(results);
  return inputs;
}

}  // namespace tprimat::results
