#include "run/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "extract/extracted_log.h"
#include "extract/logged_figures.h"
#include "launch/container.h"
#include "result/run_result.h"
#include "result/sampled_devices.h"
#include "result/summary.h"
#include "run/config_audit.h"
#include "run/environment.h"
#include "run/failure.h"
#include "run/forecast.h"
#include "run/profiled_steps.h"
#include "run/rank_environment.h"
#include "run/stated_audit.h"
#include "run/stated_cause.h"
#include "run/version_notes.h"

namespace tprimat::suite {
namespace {

constexpr std::string_view k_elsewhere =
    "the ranks ran on other machines: their hardware, power, memory and load are unknown here; run tprimat doctor "
    "there";
constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

DeviceInfo describe_device(const PlannedRun& run, const MachineFacts& machine) {
  DeviceInfo device;
  device.device_count = run.spec.parallel.ranks();
  device.software_stack = run.platform == Platform::nvd ? "cuda" : run.platform == Platform::amd ? "rocm" : "cpu";
  if (run.platform == Platform::cpu) {
    device.device_name = machine.cpu.model_name.empty() ? run.setup.device_model : machine.cpu.model_name;
    if (machine.memory_bytes)
      device.total_memory_gb =
          std::min(*machine.memory_bytes, machine.memory_limit_bytes.value_or(*machine.memory_bytes)) * 1e-9;
    return device;
  }
  device.device_name = run.setup.device_model;
  for (const GpuFacts& gpu : machine.gpus) {
    if (gpu.platform != run.platform) continue;
    device.device_name = gpu.name;
    if (gpu.memory_bytes) device.total_memory_gb = *gpu.memory_bytes * 1e-9;
    device.gpu_cores = gpu.cores;
    device.compute_units = gpu.compute_units;
    break;
  }
  const auto stack = machine.stacks.find(*device.software_stack);
  if (stack != machine.stacks.end()) device.software_version = stack->second;
  return device;
}

void fail(RunResult& result, const logs::EndCause& cause) {
  result.status = RunStatus::failed;
  result.status_reason = cause.sentence;
  result.failure_kind = cause.kind;
  result.failed_rank = cause.rank;
}

// The log before the stop may show the cause: a dead rank, or a collective that waits.
logs::EndCause explain_hang(const std::string& sentence, const std::string& log_end) {
  const auto cause = find_failure_in(log_end);
  if (!cause) return {FailureKind::hung, sentence, {}, false};
  return {FailureKind::hung, sentence + "; before that the log shows: " + cause->sentence, cause->rank, false};
}

// What the launcher says about a run that it waited for: it goes with the time limit that ended the run.
logs::EndCause explain_stop(const ExitReason& exit, const std::string& log_end, const std::string& cause_path) {
  const auto stated = read_stated_cause(cause_path);
  if (stated && exit.kind == ExitReason::Kind::exited) return *stated;
  logs::EndCause cause = explain_failure(exit, log_end);
  if (stated) cause.sentence += "; " + stated->sentence;
  return cause;
}

void describe_ending(RunResult& result, const TrainingTrace& trace, const std::string& cause_path) {
  result.status = RunStatus::complete;
  if (trace.problem) {
    fail(result, {trace.problem_kind, *trace.problem, {}, false});
  } else if (trace.hung) {
    logs::EndCause cause = explain_hang(*trace.hung, read_log_end(result.source.log.value_or(""), trace.log_bytes));
    if (const auto stated = read_stated_cause(cause_path)) cause.sentence += "; " + stated->sentence;
    fail(result, cause);
  } else if (trace.exit.kind == ExitReason::Kind::interrupted) {
    result.status = RunStatus::interrupted;
    result.status_reason = to_string(trace.exit);
  } else if (!trace.exit.success()) {
    fail(result, explain_stop(trace.exit, read_log_end(result.source.log.value_or("")), cause_path));
    const bool killed = result.failure_kind == FailureKind::killed && trace.memory_kill;
    if (!killed) return;
    result.failure_kind = FailureKind::host_out_of_memory;
    if (trace.exit.kind == ExitReason::Kind::signalled) *result.status_reason += ": the kernel ran out of memory";
  }
}

// One value per step, NaN where the step has none; nothing at all when no step has it.
std::vector<double> series(const std::vector<StepRecord>& steps, std::optional<double> StepRecord::*member) {
  if (std::none_of(steps.begin(), steps.end(), [&](const StepRecord& step) { return (step.*member).has_value(); }))
    return {};
  std::vector<double> values;
  for (const StepRecord& step : steps) values.push_back((step.*member).value_or(k_nan));
  return values;
}

// Step k at place k - first. Of a step that was written twice (a trainer that resumed) the last record counts; a
// missing step has no time, which makes the result invalid.
std::vector<StepRecord> in_order(const TrainingTrace& trace, const TrainSpec& spec,
                                 std::vector<std::string>& warnings) {
  const int64_t first = spec.checkpoint.first_step();
  std::vector<StepRecord> ordered;
  int64_t repeated = 0, beyond = 0;
  for (const StepRecord& step : trace.steps) {
    if (step.step < first || step.step > 2 * spec.steps + 1000) {
      ++beyond;
      continue;
    }
    const auto place = static_cast<size_t>(step.step - first);
    while (ordered.size() <= place) {
      ordered.emplace_back();
      ordered.back().time_seconds = k_nan;
    }
    repeated += ordered[place].step != 0;
    ordered[place] = step;
  }
  if (repeated > 0)
    warnings.push_back(fmt::format("{} steps were recorded more than once; the last record counts", repeated));
  if (beyond > 0) warnings.push_back(fmt::format("{} records with impossible step numbers were left out", beyond));
  if (trace.unreadable_lines > 0)
    warnings.push_back(fmt::format("{} lines of the step file could not be read", trace.unreadable_lines));
  return ordered;
}

void invalidate(RunResult& result, std::string reason) {
  if (result.status != RunStatus::complete) return;
  result.status = RunStatus::invalid;
  result.failure_kind = FailureKind::wrong_work;
  result.status_reason = std::move(reason);
}

// A framework that finds no checkpoint may begin anew, at step 1.
void check_loaded(RunResult& result, const TrainingTrace& trace, const TrainSpec& spec) {
  if (!spec.checkpoint.load) return;
  const int64_t first = spec.checkpoint.first_step();
  const auto earliest = std::ranges::min_element(trace.steps, {}, &StepRecord::step);
  if (earliest == trace.steps.end() || earliest->step == first) return;
  invalidate(result, fmt::format("the training began at step {}, but continues a checkpoint of step {}", earliest->step,
                                 first - 1));
}

// Entries of a training that began with a later step than the first have its numbers.
void number_steps(RunResult& result, const std::vector<StepRecord>& steps, const TrainSpec& spec) {
  if (!spec.checkpoint.load) return;
  result.steps.emplace();
  std::vector<int64_t>& numbers = result.steps->numbers.emplace();
  for (size_t i = 0; i < steps.size(); ++i) numbers.push_back(spec.checkpoint.first_step() + static_cast<int64_t>(i));
  const auto untimed =
      std::ranges::find_if(steps, [](const StepRecord& step) { return std::isnan(step.time_seconds); });
  if (untimed != steps.end())
    invalidate(result, fmt::format("step {} has no valid time", numbers[static_cast<size_t>(untimed - steps.begin())]));
}

// The tokens of each step, of a log that states its sequences.
void count_tokens(std::vector<StepRecord>& steps, const logs::ReadLog& read, const TrainSpec& spec) {
  const int64_t first = (read.dialect != nullptr ? read.dialect->counts_from : 1) + spec.checkpoint.first_step() - 1;
  for (const logs::ExtractedStep& each : read.log.steps) {
    const int64_t place = each.step - first;
    const double sequences = each.global_batch_size.value_or(k_nan);
    if (place < 0 || place >= std::ssize(steps) || !(sequences >= 1 && sequences < 1e9)) continue;
    std::optional<int64_t>& tokens = steps[static_cast<size_t>(place)].tokens;
    if (!tokens) tokens = std::llround(sequences) * spec.sequence_length;
  }
}

// Rates use the requested tokens; they are wrong if the trainer counted others.
void check_tokens(RunResult& result, const std::vector<StepRecord>& steps, int64_t tokens_asked) {
  const auto other = std::find_if(steps.begin(), steps.end(),
                                  [&](const StepRecord& step) { return step.tokens && *step.tokens != tokens_asked; });
  if (other == steps.end()) return;
  result.config_audit.push_back({"tokens_per_step", std::to_string(tokens_asked), std::to_string(*other->tokens)});
  invalidate(result,
             fmt::format("step {} trained on {} tokens instead of {}", other->step, *other->tokens, tokens_asked));
}

// Whether step k has the rate of update k, or of the update before or after it: frameworks differ in whether they print
// the rate before or after the schedule moves on.
bool is_rate_of(const OptimizerSpec& optimizer, const StepRecord& step, int64_t steps) {
  constexpr double k_tolerance = 0.01;  // logs round
  double low = std::numeric_limits<double>::max(), high = 0.0;
  for (int64_t k = step.step - 1; k <= step.step + 1; ++k) {
    const double rate = k < 1 ? 0.0 : learning_rate_at(optimizer, k, steps);
    low = std::min(low, rate);
    high = std::max(high, rate);
  }
  const double slack = k_tolerance * std::max(high, optimizer.learning_rate * 1e-3);
  return *step.learning_rate >= low - slack && *step.learning_rate <= high + slack;
}

// A schedule other than the requested one trains another model: the first step that shows it is enough. In fp16,
// updates are skipped after an overflow, and the schedule waits.
void check_learning_rates(RunResult& result, const std::vector<StepRecord>& steps, const TrainSpec& spec) {
  if (spec.precision == Precision::fp16) return;
  const auto other = std::find_if(steps.begin(), steps.end(), [&](const StepRecord& step) {
    return step.learning_rate && !is_rate_of(spec.optimizer, step, spec.steps);
  });
  if (other == steps.end()) return;
  result.config_audit.push_back({fmt::format("learning_rate at step {}", other->step),
                                 fmt::format("{:.6g}", learning_rate_at(spec.optimizer, other->step, spec.steps)),
                                 fmt::format("{:.6g}", *other->learning_rate)});
}

// Further fields of a step: its end by the trainer's clock or ours, and the loss scale.
void describe_beside(RunResult& result, const std::vector<StepRecord>& steps) {
  ReportedFigures reported;
  const auto keep = [&](std::optional<std::vector<double>>& kept, std::optional<double> StepRecord::*member) {
    std::vector<double> values = series(steps, member);
    if (!values.empty()) kept = std::move(values);
  };
  keep(reported.unix_time, &StepRecord::unix_time);
  keep(reported.loss_scale, &StepRecord::loss_scale);
  if (reported.unix_time || reported.loss_scale) result.reported = std::move(reported);
}

// Who routed the tokens was asked; what came of it the trainer tells.
void describe_experts(RunResult& result, const std::vector<StepRecord>& steps) {
  for (const auto& [kept, told] : {std::pair{&ExpertFigures::load_values, &StepRecord::expert_load},
                                   {&ExpertFigures::dropped_values, &StepRecord::dropped_share},
                                   {&ExpertFigures::aux_loss_values, &StepRecord::aux_loss},
                                   {&ExpertFigures::z_loss_values, &StepRecord::z_loss}}) {
    std::vector<double> values = series(steps, told);
    if (values.empty()) continue;
    if (!result.experts) result.experts.emplace();
    (*result.experts).*kept = std::move(values);
  }
}

void describe_skipped_updates(RunResult& result, const std::vector<StepRecord>& steps) {
  std::vector<RunEvent> events;
  for (const StepRecord& each : steps) {
    if (!each.skipped.value_or(false)) continue;
    RunEvent& event = events.emplace_back();
    event.kind = EventKind::skipped_update, event.step = each.step, event.text = "1 update skipped";
  }
  if (events.empty()) return;
  result.skipped_updates = std::ssize(events);
  result.event_counts = {{EventKind::skipped_update, std::ssize(events)}};
  events.resize(std::min(events.size(), size_t{logs::k_max_events}));
  result.events = std::move(events);
}

void raise_peak(std::optional<double>& peak, const StepRecord& step) {
  const double gb = step.memory_reserved_gb.value_or(k_nan);
  if (std::isfinite(gb)) peak = std::max(peak.value_or(0.0), gb);
}

void describe_steps(RunResult& result, const TrainingTrace& trace, const TrainSpec& spec) {
  std::vector<StepRecord> steps = in_order(trace, spec, result.warnings);
  check_loaded(result, trace, spec);
  if (trace.log) count_tokens(steps, *trace.log, spec);
  check_tokens(result, steps, spec.tokens_per_step());
  check_learning_rates(result, steps, spec);
  for (const StepRecord& step : steps) result.step_times.push_back(step.time_seconds);
  number_steps(result, steps, spec);
  result.loss_values = series(steps, &StepRecord::loss);
  result.learning_rates = series(steps, &StepRecord::learning_rate);
  result.grad_norms = series(steps, &StepRecord::grad_norm);
  result.memory_values = series(steps, &StepRecord::memory_allocated_gb);
  describe_beside(result, steps);
  describe_experts(result, steps);
  describe_skipped_updates(result, steps);
  for (const StepRecord& step : steps) raise_peak(result.memory_metrics.peak_memory_reserved_gb, step);
  if (trace.log) logs::add_logged_figures(result, *trace.log);
}

void describe_source(RunResult& result, const LaunchPlan& plan) {
  result.source.log = plan.log_path;
  result.source.format = plan.steps_path.empty() ? "log" : "tprimat-steps";
  if (!plan.steps_path.empty()) result.source.steps_file = plan.steps_path;
}

// Settings that deviated from the request: the framework does not support them, or its log shows others.
void audit_run(RunResult& result, const PlannedRun& run) {
  std::vector<AuditEntry>& audit = result.config_audit;
  for (const Deviation& each : run.plan.deviations) {
    audit.push_back({each.key, each.asked, each.effective});
    if (!each.reason.empty()) audit.back().reason = each.reason;
  }
  const logs::ReadLog beginning = read_log_beginning(run.plan.log_path);
  const StatedAudit stated = audit_stated(run.plan.stated, beginning.log);
  for (const std::string& sentence : stated.warnings) add_warning(result, sentence);
  for (const auto& differences : {stated.differences, audit_settings(run.spec, beginning.log)})
    for (const AuditEntry& entry : differences)
      if (std::ranges::find(audit, entry.key, &AuditEntry::key) == audit.end()) audit.push_back(entry);
  if (!beginning.log.settings.empty()) result.effective_config = beginning.log.settings;
}

// "AMD Instinct MI300X" and "AMD Instinct MI300X OAM" are one device: a driver's library and the runtime differ in
// detail.
bool is_one_device(const std::string& a, const std::string& b) { return a.starts_with(b) || b.starts_with(a); }

// The device is the one that the trainer computed on, whatever the driver's library lists.
void name_device(RunResult& result, const PlannedRun& run) {
  if (run.platform == Platform::cpu || !result.effective_config) return;
  const auto stated = result.effective_config->find("device");
  if (stated == result.effective_config->end() || is_one_device(stated->second, result.gpu_info.device_name)) return;
  add_warning(result, fmt::format("the trainer computed on '{}', not on the '{}' that the driver lists", stated->second,
                                  result.gpu_info.device_name));
  result.gpu_info.device_name = stated->second;
}

}  // namespace

RunResult describe_run(const PlannedRun& run, const TrainingTrace& trace, const SuiteContext& around) {
  RunResult result;
  result.platform = run.platform;
  result.framework = run.framework;
  result.framework_installation = run.installation;
  result.framework_version = run.framework_version;
  fill_asked_facts(result, run.spec);
  result.timestamp = trace.timestamp;
  const bool elsewhere = run.plan.place == Whereabouts::elsewhere;
  const MachineFacts machine = elsewhere ? MachineFacts{} : around.machine;
  if (elsewhere) result.warnings.push_back(std::string(k_elsewhere));
  if (elsewhere && run.platform != Platform::cpu) refuse_partial_energy(result, 0);
  result.gpu_info = describe_device(run, machine);
  result.environment = describe_environment(machine, around.libraries, environment_of_ranks(run));
  if (const LauncherSettings& launch = run.request.launch; launch.in_container())
    result.environment["container_image"] = image_of(launch, run.platform);
  if (run.platform == Platform::cpu && !elsewhere)
    result.environment["cpu_threads_used"] = std::to_string(used_threads(run, machine.cpu));
  result.config_hash = run.config_hash;
  if (!run.default_choice.empty()) result.default_choice = run.default_choice;
  describe_source(result, run.plan);
  describe_ending(result, trace, run.plan.cause_path);
  forgive_profiled_steps(result, run, trace);
  describe_steps(result, trace, run.spec);
  audit_run(result, run);
  name_device(result, run);
  note_version(result);
  return result;
}

void note_circumstances(RunResult& result, const TrainingTrace& trace) {
  for (const std::string& sentence : trace.neighbours) add_warning(result, sentence);
  for (const std::string& sentence : trace.damage) {
    add_warning(result, sentence);
    if (result.status != RunStatus::complete && result.status_reason) *result.status_reason += "; " + sentence;
  }
}

StepWindows step_windows(const TrainingTrace& trace, const RunResult& result) {
  // Steps from a log get the time of reading; it is read twice a second, a large one less often.
  constexpr double k_latest_look = 1.5;
  StepWindows windows(result.step_times.size());
  const int64_t first = step_number(result, 0);
  for (const StepRecord& step : trace.steps) {
    const int64_t place = step.step - first;
    if (place < 0 || static_cast<size_t>(place) >= windows.size() || !step.unix_time) continue;
    auto& window = windows[static_cast<size_t>(place)];
    window.reset();
    if (is_valid_step_time(step.time_seconds))
      window =
          certain_window({*step.unix_time, result.source.steps_file ? 0.0 : k_latest_look, 0.0}, step.time_seconds);
  }
  drop_overlapping(windows);
  return windows;
}

std::optional<TimeWindow> steady_window(const TrainingTrace& trace, int64_t last_excluded) {
  std::optional<TimeWindow> window;
  for (const StepRecord& step : trace.steps) {
    if (step.step <= last_excluded || !step.unix_time || !(step.time_seconds > 0.0)) continue;
    if (!window) window = TimeWindow{*step.unix_time - step.time_seconds, *step.unix_time};
    window->end = *step.unix_time;
  }
  return window;
}

}  // namespace tprimat::suite
