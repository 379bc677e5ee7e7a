#include "extract/to_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/clock.h"
#include "extract/common/failure_cause.h"
#include "extract/common/setting_names.h"
#include "extract/course.h"
#include "extract/logged_figures.h"
#include "extract/logged_model.h"
#include "extract/logged_routing.h"
#include "extract/scan_text.h"
#include "result/peak.h"
#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "spec/model_catalogue.h"
#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

std::optional<Platform> platform_of(const LoggedFacts& facts, const std::optional<HardwareSpec>& part) {
  if (facts.platform) return facts.platform;
  if (part) return part->platform;
  if (facts.framework == Framework::prim) return Platform::amd;  // Primus trains on nothing else
  return std::nullopt;
}

std::optional<double> memory_of_device(const ExtractedLog& log) {
  std::optional<double> gb;
  for (const auto& [key, value] : log.memory_gb)
    if (key.kind == MemoryKind::device_total) gb = std::max(gb.value_or(0), value);
  return gb;
}

// The memory size does not identify a device, but if only one part of the catalogue matches, a warning suggests it.
void hint_at_device(RunResult& result) {
  constexpr double k_tolerance_gib = 0.6;
  const DeviceInfo& device = result.gpu_info;
  if (!device.device_name.empty() || !device.total_memory_gb || !result.platform) return;
  const double gib = *device.total_memory_gb * 1e9 / k_gib;
  std::vector<std::string> fitting;
  for (const HardwareSpec& part : hardware_catalogue())
    if (part.platform == *result.platform && part.memory_bytes &&
        std::abs(*part.memory_bytes / 1e9 - gib) < k_tolerance_gib)
      fitting.push_back(part.id);
  if (fitting.size() == 1)
    add_warning(
        result,
        fmt::format(
            "the log names no GPU; among known devices, {:.2f} GiB of memory match only {}: confirm with --device {}",
            gib, fitting.front(), fitting.front()));
}

void fill_device(RunResult& result, const LoggedFacts& facts, const ExtractedLog& log) {
  DeviceInfo& device = result.gpu_info;
  device.device_name = facts.gpu_name.value_or("");
  device.total_memory_gb = facts.gpu_memory_gb ? facts.gpu_memory_gb : memory_of_device(log);
  const auto part = facts.gpu_name ? find_hardware(*facts.gpu_name) : std::nullopt;
  result.platform = platform_of(facts, part);
  if (result.platform)
    device.software_stack = *result.platform == Platform::nvd   ? "cuda"
                            : *result.platform == Platform::amd ? "rocm"
                                                                : "cpu";
  hint_at_device(result);
}

void fill_training(RunResult& result, const LoggedFacts& facts) {
  for_each_shared_fact(facts, result, [](const auto& fact, auto& field) { field = fact; });
  static_cast<TrainingSettings&>(result.training_config) = facts;
  result.training_config.num_gpus = facts.gpu_count;
  ParallelismConfig& layout = result.parallelism_config;
  layout.virtual_pipeline_model_parallel_size = facts.virtual_pipeline;
  layout.zero_stage = facts.zero_stage;
  layout.sequence_parallel = facts.sequence_parallel;
}

template <class T, class Show>
void use_known(std::optional<T>& fact, const std::optional<T>& known, Show&& show, RunResult& result) {
  if (!known) return;
  if (fact && *fact != *known) add_warning(result, show(*fact, *known));
  if (!fact) fact = known;
}

void use_known_facts(LoggedFacts& facts, const KnownFacts& known, RunResult& result) {
  const auto contradicts = [](const char* option) {
    return [option](const auto& said, const auto& given) {
      return fmt::format("the log states {}, but {} is {}: the log's figure is used", said, option, given);
    };
  };
  use_known(facts.gpu_count, known.devices, contradicts("--devices"), result);
  use_known(facts.global_batch_size, known.global_batch_size, contradicts("--global-batch-size"), result);
  use_known(facts.sequence_length, known.sequence_length, contradicts("--sequence-length"), result);
  const auto text = [](const std::string& word) { return word.empty() ? std::nullopt : std::optional(word); };
  if (!facts.gpu_name || !is_same_device(*facts.gpu_name, known.device))
    use_known(facts.gpu_name, text(known.device), contradicts("--device"), result);
  const auto names = [](const char* option) {
    return [option](auto said, auto given) {
      return fmt::format("the log states {}, but {} is {}: the log's value is used", enum_name(said), option,
                         enum_name(given));
    };
  };
  use_known(facts.platform, known.platform, names("--platform"), result);
  use_known(facts.precision, known.precision, names("--precision"), result);
}

void add_assumed(RunResult& result, const AssumedFact& fact) {
  if (!result.source.assumed) result.source.assumed.emplace();
  result.source.assumed->push_back(fact);
}

// A log that several formats fit does not show its framework.
void use_known_framework(std::optional<Framework>& fact, const ReadLog& read, const KnownFacts& known,
                         RunResult& result) {
  constexpr double k_certain = 0.9;
  if (!known.framework || fact == known.framework) return;
  if (fact && !starts_trainer_of(*known.framework, *fact) && read.confidence >= k_certain)
    return add_warning(result, fmt::format("the log is of {}, but {} says {}: the log's framework is used",
                                           enum_name(*fact), known.framework_from, enum_name(*known.framework)));
  fact = known.framework;
  add_assumed(result, {"framework", std::string(enum_name(*known.framework)), known.framework_from});
}

// The setting that shows a planned end; empty: none.
std::string planned_end(const std::map<std::string, std::string>& settings) {
  const auto value_of = [&](const char* key) {
    const auto found = settings.find(key);
    return found == settings.end() ? "" : found->second;
  };
  if (value_of("run_stop status") == "success") return "run_stop with status success";
  const std::string exit = value_of("exiting program");
  if (exit.empty()) return "";
  const char* key = contains(exit, "minutes") ? "exit_duration_in_mins" : "exit_interval";
  const std::string limit = value_of(key);
  return parse_number(limit).value_or(0) > 0 ? fmt::format("{} {}", key, limit) : "";
}

// A run with a planned early end is complete: MLPerf's at its target, Megatron's after --exit-interval steps or
// --exit-duration-in-mins. Its number of steps is then the planned one.
void settle_planned_end(RunResult& result, StatedFacts& stated) {
  const std::string reason = planned_end(stated.settings);
  const int64_t steps = steps_reached(result);
  std::optional<int64_t>& asked = stated.facts.max_steps;
  if (reason.empty() || steps <= 0 || asked.value_or(0) <= steps) return;
  add_warning(result, fmt::format("the run ended as planned after step {} of {} ({})", steps, *asked, reason));
  asked = result.training_config.max_steps = steps;
}

TimeSource time_source_of(const Course& course) {
  std::array<size_t, 4> counts{};
  for (const ExtractedStep* step : course) ++counts[static_cast<size_t>(step->time_source)];
  const auto most = std::max_element(counts.begin() + 1, counts.end());
  return *most == 0 ? TimeSource::none : static_cast<TimeSource>(most - counts.begin());
}

void fill_source(RunResult& result, const ReadLog& read, const std::string& path, const Course& course) {
  SourceInfo& source = result.source;
  source.log = path == "-" ? "standard input" : path;
  if (read.dialect != nullptr) {
    source.format = std::string(read.dialect->id);
    if (!read.forced) source.confidence = read.confidence;
  }
  source.lines = read.lines;
  source.records = read.log.records;
  if (course.empty()) return;
  source.step_time = time_source_of(course);
  source.first_line = course.front()->line;
  source.last_line = course.back()->line;
  source.attempts = read.attempts;
  if (read.attempts > 1 && course.front()->attempt == course.back()->attempt)
    source.attempt = int64_t{1} + course.back()->attempt;
}

// Names the steps of the log that this result leaves out, with the reason.
void warn_about_attempts(RunResult& result, const ReadLog& read, const Course& course) {
  if (read.attempts == 1 || course.empty()) return;
  const int64_t first = int64_t{1} + read.log.steps.front().attempt, last = int64_t{1} + read.log.steps.back().attempt;
  if (read.selected) {
    add_warning(result, fmt::format("the log holds {} attempts; this is attempt {} only", read.attempts, last));
  } else if (!read.earlier.empty()) {
    const std::string which =
        first == last ? fmt::format("attempt {}", last) : fmt::format("attempts {} to {}", first, last);
    add_warning(result, fmt::format("the log holds {} attempts with different settings ({}): this result has the steps "
                                    "and settings of {} only; --attempt N selects another, --attempt all extracts each",
                                    read.attempts, join(read.differs, ", "), which));
  }
  if (!read.selected && first != last)
    add_warning(result, fmt::format("the training was restarted {} time{}: for repeated steps the last attempt counts",
                                    last - first, last - first == 1 ? "" : "s"));
}

void warn_about_times(RunResult& result, const ReadLog& read) {
  const TimeSource source = result.source.step_time.value_or(TimeSource::none);
  if (source == TimeSource::from_rate)
    add_warning(result, "the log has no step times: they are derived from the rate it reports");
  if (source == TimeSource::from_timestamps)
    add_warning(result, "the log has no step times: they are differences of its time stamps");
  if (!read.forced && read.confidence > 0 && read.confidence < 0.9)
    add_warning(result,
                fmt::format("the format was recognised as {} with a confidence of {:.2f}{}; --format forces one",
                            read.dialect->title, read.confidence,
                            read.runner_up.empty() ? "" : fmt::format(" ({} is next)", read.runner_up)));
}

// Of a log without steps.
bool holds_evaluations_alone(const ReadLog& read) {
  const auto evaluations = read.log.event_counts.find(EventKind::evaluation);
  const auto& time = read.log.time_to_train;
  return read.log.steps.empty() && evaluations != read.log.event_counts.end() && !(time && time->is_success());
}

void judge_end(RunResult& result, const ReadLog& read) {
  result.status = RunStatus::complete;
  if (const auto cause = explain_end(read.log)) {
    result.status = RunStatus::failed;
    result.status_reason = cause->sentence;
    if (const auto stop = text_after(cause->sentence, "with an error: run_stop with "))  // no process ended
      result.status_reason = fmt::format("the target was not reached: run_stop with {}", *stop);
    result.failure_kind = cause->kind;
    result.failed_rank = cause->rank;
  } else if (!read.log.mixed.empty()) {
    result.status = RunStatus::invalid;
    result.failure_kind = FailureKind::wrong_work;
    result.status_reason = "the log mixes the records of several runs: " + read.log.mixed;
  } else if (!read.why_nothing.empty()) {
    result.status = RunStatus::failed;
    result.status_reason = read.why_nothing;
  } else if (read.log.time_to_train && !read.log.time_to_train->status) {
    result.status = RunStatus::invalid;
    result.failure_kind = FailureKind::steps_missing;
    result.status_reason = "the log ends before run_stop";
  } else if (holds_evaluations_alone(read)) {
    const int64_t count = read.log.event_counts.at(EventKind::evaluation);
    result.status = RunStatus::invalid;
    result.status_reason =
        fmt::format("the log reports no training step, only {} evaluation{}", count, count == 1 ? "" : "s");
  }
}

std::string start_of(const Course& course) {
  for (const ExtractedStep* step : course)
    if (step->unix_time.finite()) return format_utc(*step->unix_time - step->time_seconds.value_or(0));
  return "";
}

void audit_settings(RunResult& result, const LoggedFacts& facts, const ExtractedLog& log) {
  for (const EffectiveSetting& setting : effective_settings(facts))
    result.config_audit.push_back({setting.key, std::nullopt, setting.value});
  if (!log.settings.empty()) result.effective_config = log.settings;
}

// Compares the framework's own figure with the one that follows from the model's shape.
void compare_with_reported(RunResult& result) {
  constexpr double k_tolerance = 0.15;  // formulas differ by the attention term
  if (!result.derived.tflops_per_gpu || !result.reported || !result.reported->tflops_per_gpu) return;
  std::vector<double> reported;
  const auto& series = *result.reported->tflops_per_gpu;
  for (auto i = static_cast<size_t>(result.warmup.steps_excluded); i < series.size(); ++i)
    if (std::isfinite(series[i])) reported.push_back(series[i]);
  if (reported.empty()) return;
  const double usual = median(reported), ours = result.derived.tflops_per_gpu->value;
  if (!(usual > 0) || std::abs(ours / usual - 1) <= k_tolerance) return;
  add_warning(result, fmt::format("the framework reports {:.1f} TFLOP/s per device, but the model's shape gives "
                                  "{:.1f}: the model, sequence length, batch or device count is wrong",
                                  usual, ours));
}

}  // namespace

bool starts_trainer_of(Framework outer, Framework inner) {
  using enum Framework;
  constexpr std::pair<Framework, Framework> k_starts[] = {{prim, mega}, {prim, tita}, {nemo, mega}, {mgds, mega},
                                                          {mgds, deep}, {deep, tran}, {fsdp, tran}, {tran, deep}};
  return std::ranges::any_of(k_starts, [&](const auto& each) { return each.first == outer && each.second == inner; });
}

namespace {

// All that the log says, before it is summarised. Gives what the summary needs beside it.
SummaryOptions describe_log(RunResult& result, const ReadLog& read, const std::string& path, const KnownFacts& known) {
  const Course course = final_course(read.log);
  StatedFacts stated{read.log.facts, read.log.settings};
  LoggedFacts& facts = stated.facts;
  if (!facts.framework && read.dialect != nullptr) facts.framework = read.dialect->framework;
  use_known_framework(facts.framework, read, known, result);
  settle_batch(result, stated, course);
  use_known_facts(facts, known, result);
  result.timestamp = start_of(course);
  fill_device(result, facts, read.log);
  fill_training(result, facts);
  result.time_to_train = read.log.time_to_train;
  if (!tokens_per_step(result)) result.training_config.tokens_per_step = stated_tokens(course);
  settle_model(result, stated, known.model, known.shape);
  fill_series(result, course);
  fill_experts(result, facts, stated.settings, course);
  number_steps(result, course, read.dialect != nullptr ? read.dialect->counts_from : 1);
  settle_planned_end(result, stated);
  fill_memory(result, read.log, course);
  fill_events(result, read.log);
  if (read.dialect == nullptr || read.dialect->one_optimizer)
    result.skipped_updates = count_skipped_updates(course, read.log);
  fill_source(result, read, path, course);
  for (const AssumedFact& fact : known.assumed) add_assumed(result, fact);
  audit_settings(result, facts, read.log);
  for (const std::string& note : read.log.notes) add_warning(result, note);
  for (const auto& [key, why] : read.log.dropped_settings)
    add_warning(result, fmt::format("the framework left out the setting {}: {}", key, why));
  warn_about_times(result, read);
  warn_about_attempts(result, read, course);
  judge_end(result, read);
  SummaryOptions options{known.fixed_warmup_steps, {}, known.usd_per_hour};
  if (facts.gpu_name && facts.precision) options.peak = choose_peak(known.peaks, *facts.gpu_name, *facts.precision);
  return options;
}

RunResult summarised(RunResult result, const SummaryOptions& options) {
  summarise_run(result, options);
  compare_with_reported(result);
  explain_missing_mfu(result);
  return result;
}

}  // namespace

RunResult make_result(const ReadLog& read, const std::string& path, const KnownFacts& known) {
  RunResult result;
  const SummaryOptions options = describe_log(result, read, path, known);
  return summarised(std::move(result), options);
}

RunResult make_result(ReadLog&& read, const std::string& path, const KnownFacts& known) {
  RunResult result;
  const SummaryOptions options = describe_log(result, read, path, known);
  std::vector<ExtractedStep>().swap(read.log.steps);
  return summarised(std::move(result), options);
}

namespace {

std::string suggest_catalogued(const std::string& name, const std::vector<std::string>& names) {
  const std::string near = nearest_word(name, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

// "A100" is several parts, "H1000" a typo.
std::string suggest_device(const std::string& name) {
  std::vector<std::string> parts, names;
  for (const HardwareSpec& part : hardware_catalogue()) {
    if (part.id.starts_with(name + "-")) parts.push_back(part.id);
    names.insert(names.end(), part.device_names.begin(), part.device_names.end());
  }
  return parts.empty() ? suggest_catalogued(name, names) : fmt::format("; did you mean {}?", join(parts, " or "));
}

}  // namespace

void warn_about_unknown_names(RunResult& result, const KnownFacts& known) {
  const bool is_gpu = result.platform != Platform::cpu;
  if (is_gpu && !known.device.empty() && !result.derived.peak && !find_hardware(known.device))
    add_warning(result, fmt::format("the catalogue has no device {}: no peak, no MFU{}", known.device,
                                    suggest_device(known.device)));
  if (!known.model.empty() && !result.model_info.shape && !find_model(known.model)) {
    std::vector<std::string> names;
    for (const KnownModel& model : model_catalogue()) names.push_back(model.spec.full_name);
    add_warning(result, fmt::format("the catalogue has no model {}: no shape, no MFU{}", known.model,
                                    suggest_catalogued(known.model, names)));
  }
}

}  // namespace tprimat::logs
