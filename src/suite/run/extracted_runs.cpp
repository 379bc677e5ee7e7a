#include "run/extracted_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "extract/read_log.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "result/sampled_devices.h"
#include "result/summary.h"
#include "run/step_telemetry.h"
#include "run/telemetry_report.h"
#include "telemetry/telemetry_file.h"

namespace tprimat::suite {
namespace {

bool has_same_readings(const SensorTrace& a, const SensorTrace& b) {
  return std::equal(a.readings.begin(), a.readings.end(), b.readings.begin(), b.readings.end(),
                    [](const Reading& x, const Reading& y) {
                      return !(x.unix_time < y.unix_time) && !(y.unix_time < x.unix_time) &&
                             x.power_watts == y.power_watts && x.energy_joules == y.energy_joules;
                    });
}

// The recordings of several nodes, each of which numbers its own devices from 0: the second file's "nvidia-smi:0"
// becomes "nvidia-smi:2:0".
class TelemetryTraces {
 public:
  // False where the file is a copy of an earlier one.
  bool add(std::vector<SensorTrace> traces) {
    const auto is_known = [this](const SensorTrace& trace) {
      return std::ranges::any_of(traces_, [&](const SensorTrace& known) { return has_same_readings(known, trace); });
    };
    if (std::ranges::all_of(traces, is_known)) return false;
    const std::string file = fmt::format(":{}:", ++files_);
    for (SensorTrace& trace : traces) {
      const auto has_name = [&](const SensorTrace& known) { return known.source == trace.source; };
      if (std::ranges::any_of(traces_, has_name)) trace.source.replace(trace.source.find(':'), 1, file);
      traces_.push_back(std::move(trace));
    }
    return true;
  }

  const std::vector<SensorTrace>& all() const { return traces_; }

 private:
  std::vector<SensorTrace> traces_;
  int files_ = 0;
};

// Joins steps and telemetry by time: the sensors' readings during the steady steps.
void join_telemetry(RunResult& result, const std::vector<std::string>& files) {
  if (files.empty()) return;
  const Platform platform = result.platform.value_or(Platform::nvd);
  const auto window = steady_window(result);
  TelemetryTraces traces;
  for (const std::string& path : files) {
    TelemetryFile file = load_telemetry_file(path);
    for (const std::string& note : file.notes) add_warning(result, fmt::format("{}: {}", path, note));
    if (!file.timed || !window)
      add_warning(result, fmt::format("{} cannot be joined to the steps: {} no time stamps", path,
                                      file.timed ? "the log has" : "it has"));
    else if (!traces.add(std::move(file.traces)))
      add_warning(result, fmt::format("{} repeats the readings of another file; they count once", path));
  }
  if (!traces.all().empty()) {
    for (TelemetrySummary& each : report_telemetry(traces.all(), *window, platform))
      result.telemetry.push_back(std::move(each));
    refuse_partial_energy(result, std::ssize(traces.all()));
  }
  result.step_telemetry = measure_steps(traces.all(), step_windows(result), platform, std::nullopt);
  summarise_run(result, stored_options(result));
}

ModelBelief believe_model(const RunResult& result, const logs::ReadLog& read, const std::string& path,
                          const ExtractOptions& options) {
  const std::string& named = options.known.model;
  if (!named.empty() && options.configuration->experiment.find_model_entry(named) == nullptr)
    return {nullptr, fmt::format("it has no model {}", named)};
  const logs::StatedFacts stated{read.log.facts, read.log.settings};
  const ModelBelief belief =
      identify_model(*options.configuration, {result, stated, options.named.path, named, options.model_named_by});
  if (belief.is_contradicted && !named.empty())
    throw Error(Problem{belief.because, path, "name a log of that model, or the model that ran"});
  return belief;
}

ConfiguredFacts known_facts(const logs::ReadLog& read, const std::string& path, const ExtractOptions& options) {
  if (options.configuration == nullptr) return {options.known, {}, {}};
  logs::KnownFacts given = options.known;
  if (options.configuration->experiment.find_model_entry(given.model) != nullptr) given.model.clear();
  const RunResult result = logs::make_result(read, path, given);
  return add_configured_facts(*options.configuration, result, believe_model(result, read, path, options), options.named,
                              given);
}

// The result that is read as a log; nothing for other logs, and for a compressed one, whose series alone are read.
std::optional<RunResult> find_older_result(const logs::ReadLog& read, const std::string& path) {
  if (read.dialect == nullptr || read.dialect->id != "result" || path == "-") return std::nullopt;
  try {
    return load_run_result(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A result of older scripts may state framework, platform and model in its name alone: train_amd_prim_qwen.json.
// `label` is the model's name, from which no size follows.
void add_facts_of_name(const logs::ReadLog& read, const RunResult& named, ExtractOptions& options, std::string& label) {
  constexpr const char* k_name = "the file's name";
  logs::KnownFacts& known = options.known;
  const logs::LoggedFacts& stated = read.log.facts;
  if (!known.framework && !stated.framework) known.framework = named.framework, known.framework_from = k_name;
  if (!known.platform && !stated.platform && named.platform) {
    known.platform = named.platform;
    known.assumed.push_back({"platform", std::string(enum_name(*named.platform)), k_name});
  }
  const std::string& model = named.model_info.name;
  if (!known.model.empty() || stated.model || model.empty()) return;
  if (options.configuration != nullptr) {
    known.model = model, options.model_named_by = k_name;
  } else {
    label = model;
    known.assumed.push_back({"model_info.name", model, k_name});
  }
}

// What an older result states beside its series, and no log does.
void keep_facts_of_result(const RunResult& older, RunResult& result) {
  if (result.timestamp.empty()) result.timestamp = older.timestamp;
  auto& strategy = result.parallelism_config.strategy_name;
  if (!strategy) strategy = older.parallelism_config.strategy_name;
  if (result.derived.mfu)
    std::erase_if(result.warnings, [](const std::string& each) { return each.ends_with(k_no_shape_note); });
}

}  // namespace

std::vector<RunResult> extract_runs(const std::string& path, const ExtractOptions& asked) {
  std::vector<RunResult> results;
  for (logs::ReadLog& read : logs::choose_attempts(logs::read_log(path, {asked.format}), asked.attempts)) {
    ExtractOptions options = asked;
    std::string label;
    const std::optional<RunResult> older = find_older_result(read, path);
    if (older) add_facts_of_name(read, *older, options, label);
    const ConfiguredFacts facts = known_facts(read, path, options);
    if (!facts.family.empty()) label = facts.family;
    results.push_back(logs::make_result(std::move(read), path, facts.known));
    if (!label.empty()) results.back().model_info.name = label;
    if (older) keep_facts_of_result(*older, results.back());
    for (const std::string& warning : facts.warnings) add_warning(results.back(), warning);
    join_telemetry(results.back(), options.telemetry);
    logs::KnownFacts unconfigured = asked.known;
    if (facts.known.model != asked.known.model || facts.known.shape || !facts.family.empty())
      unconfigured.model.clear();
    logs::warn_about_unknown_names(results.back(), unconfigured);
  }
  return results;
}

}  // namespace tprimat::suite
