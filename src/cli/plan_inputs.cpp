#include "cli/plan_inputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/probe_report.h"
#include "compare/load_runs.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

bool holds_results(const std::string& path) { return fs::is_directory(path) || fs::path(path).extension() == ".json"; }

// Nothing for what is no report of `tprimat probe`.
std::optional<ProcessorFacts> read_probe_facts(const std::string& path) {
  try {
    const auto report = from_json<ProbeReport>(parse_json(read_file(path), path), path);
    if (report.cpu.empty() || report.matmul.empty()) return std::nullopt;
    ProcessorFacts facts;
    facts.name = report.cpu, facts.threads = report.threads;
    for (const GemmPeak& each : report.matmul) {
      if (each.precision == ProductFormat::fp32) facts.peak_32 = each.flops_per_second;
      if (each.precision == ProductFormat::bf16) facts.peak_16 = each.flops_per_second;
    }
    facts.widens = facts.peak_16 == 0;
    if (facts.widens) facts.peak_16 = facts.peak_32;
    for (const MemoryRate& each : report.memory.kinds)
      if (each.kind == StreamKernel::triad) facts.memory_bandwidth = each.bytes_per_second;
    return facts;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Results, and beside them what probes of their processors said.
std::vector<OwnObservation> load_own_results(const std::vector<std::string>& paths) {
  const LoadedRuns loaded = load_runs(paths);
  std::map<std::string, ProcessorFacts> probed;
  for (const SkippedFile& each : loaded.skipped) {
    if (auto facts = read_probe_facts(each.path))
      probed[facts->name] = *facts;
    else
      log_warning(fmt::format("{} is left out: {}", each.path, each.reason));
  }
  std::vector<NamedResult> results;
  for (const LoadedRun& run : loaded.runs) results.push_back({run.path, run.result});
  if (results.empty())
    throw Error(Problem{"there is no result of a run", paths.front(), "give a folder that tprimat run wrote into"});
  return observe_results(results, probed);
}

}  // namespace

Machine measure_processor() {
  log_note("measuring this processor for a few seconds; other work on it lowers the figures");
  const MachineFacts machine = read_machine(open_gpu_libraries());
  const auto threads = static_cast<int>(machine.cpu.usable_threads);
  const auto peak = [&](Precision precision) {
    const auto measured = measure_gemm_peak(precision, threads);
    return measured ? measured->flops_per_second : 0;
  };
  ProcessorFacts facts;
  facts.name = machine.cpu.model_name, facts.threads = machine.cpu.usable_threads;
  facts.peak_16 = peak(Precision::bf16), facts.peak_32 = peak(Precision::fp32);
  facts.widens = !has_instructions(ProductFormat::bf16);
  facts.memory_bandwidth = measure_memory_bandwidth(threads, {StreamKernel::triad}).rate(StreamKernel::triad);
  const double whole = machine.memory_bytes.value_or(0);
  facts.memory_bytes = std::min(whole, machine.memory_limit_bytes.value_or(whole));
  return processor_machine(facts);
}

void require_trainer_of(const Machine& machine, const Family& family) {
  const bool on_processor = machine.cores > 0;
  if (on_processor == family.own_trainer) return;
  throw Error(on_processor ? Problem{"of processors the planner knows our own trainer alone", "--framework",
                                     "add --framework native, or name a GPU"}
                           : Problem{"our own trainer runs on processors", "--gpu", "plan it with --gpu cpu"});
}

std::vector<Observation> PlanInputs::observations() const {
  std::vector<Observation> all;
  for (const OwnObservation& each : results)
    if (each.observed) all.push_back(*each.observed);
  return all;
}

PlanInputs sort_plan_inputs(const std::vector<std::string>& paths) {
  PlanInputs inputs;
  std::vector<std::string> results;
  for (const std::string& path : paths)
    if (!fs::exists(path))
      throw Error(Problem{"does not exist", path,
                          "give a table of measurements, a result, or a folder that tprimat run wrote into"});
  for (const std::string& path : paths) (holds_results(path) ? results : inputs.tables).push_back(path);
  if (!results.empty()) inputs.results = load_own_results(results);
  return inputs;
}

}  // namespace tprimat
