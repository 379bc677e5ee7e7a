#include "archive/witnesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "extract/attempts.h"
#include "extract/common/setting_names.h"
#include "extract/course.h"
#include "extract/dialects.h"
#include "extract/logged_figures.h"
#include "extract/logged_model.h"
#include "extract/to_result.h"
#include "result/peak.h"
#include "result/result_file.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

// For a run of the suite: steps count from 1, and everything else is not from the log.
bool was_followed(const RunResult& result) { return result.source.format == "log"; }

// For a run of the suite whose trainer wrote step records beside its log.
bool has_records(const RunResult& result) { return result.source.steps_file.has_value(); }

bool is_known(const std::string& format) {
  return std::any_of(logs::dialects().begin(), logs::dialects().end(),
                     [&](const logs::Dialect& each) { return each.id == format; });
}

bool is_of_run(const RunResult& result) { return was_followed(result) || has_records(result); }

// No log states a peak; one of a configuration is the result's own.
std::vector<StatedPeak> peaks_of(const RunResult& stated) {
  const auto peak = stated.derived.peak ? find_stated_peak(*stated.derived.peak) : std::nullopt;
  return peak ? std::vector{*peak} : std::vector<StatedPeak>();
}

// The model's name may be a key of a configuration, which says nothing of its shape: the log's own shape counts.
std::optional<ModelSpec> logged_shape(const logs::ReadLog& read) {
  logs::LoggedFacts facts = read.log.facts;
  facts.model.reset();
  return logs::find_model_shape(read.log.settings, facts);
}

logs::KnownFacts facts_of(const RunResult& stated, const logs::ReadLog& read) {
  std::vector<AssumedFact> assumed = stated.source.assumed.value_or(std::vector<AssumedFact>());
  const auto is_of = [](const char* key) { return [key](const AssumedFact& fact) { return fact.key == key; }; };
  const auto framework = std::ranges::find_if(assumed, is_of("framework"));
  const bool is_assumed_framework = framework != assumed.end();
  const std::string framework_from = is_assumed_framework ? framework->from : "";
  std::erase_if(assumed, is_of("framework"));
  const bool is_assumed_shape = std::ranges::any_of(assumed, is_of("model_info.shape"));
  return {
      .platform = stated.platform,
      .model = stated.model_info.shape ? stated.model_info.name : "",  // without a shape, none follows from the name
      .device = stated.gpu_info.device_name,
      .devices = stated.training_config.num_gpus,
      .global_batch_size = stated.training_config.global_batch_size,
      .sequence_length = stated.training_config.sequence_length,
      .precision = stated.precision,
      .fixed_warmup_steps = stored_options(stated).fixed_warmup_steps,
      .framework = is_assumed_framework ? stated.framework : std::nullopt,
      .framework_from = framework_from,
      .shape = is_assumed_shape ? stated.model_info.shape : logged_shape(read),
      .assumed = std::move(assumed),
      .peaks = peaks_of(stated)};
}

RunResult extract_again(const logs::ReadLog& read, const std::string& log_name, const RunResult& stated) {
  RunResult again = logs::make_result(read, log_name, facts_of(stated, read));
  if (!stated.model_info.shape) again.model_info.name = stated.model_info.name;  // it has no other witness
  SummaryOptions options = stored_options(again);
  options.usd_per_hour = stated.derived.usd_per_hour;
  again.telemetry = stated.telemetry;
  summarise_run(again, options);
  return again;
}

// The attempt of the log that the result was extracted from, if it was a single one.
logs::ReadLog attempt_of(const RunResult& stated, const logs::ReadLog& read) {
  if (!stated.source.attempt || read.log.steps.empty()) return read;
  const RunResult last = logs::make_result(read, "", {});
  const bool is_last_run =
      last.source.first_line == stated.source.first_line && last.source.records == stated.source.records;
  return is_last_run ? read : logs::select_attempt(read, *stated.source.attempt);
}

// The format was detected then but is given now, and the log's path differs.
Json source_section(const Json& stored) {
  Json source = stored.value("source", Json());
  if (source.is_object()) source.erase("confidence"), source.erase("log");
  return source;
}

void check_sections(const ResultCheck& check, const RunResult& again) {
  const Json derived = run_result_to_json(again), &stored = check.result.stored;
  const auto compare = [&](const char* section, const Json& stated, Silence silence) {
    const Json follows = derived.value(section, {});
    check_numbers(check, section, stated, follows);
    check_words(check, section, stated, follows, silence);
  };
  const auto compare_all = [&](std::initializer_list<const char*> sections) {
    for (const char* section : sections)
      if (stored.contains(section)) compare(section, stored[section], Silence::allows);
  };
  compare_all({"performance_metrics", "memory_metrics", "memory_by_rank", "statistics", "derived", "warmup", "steps",
               "reported", "training_config", "parallelism_config", "gpu_info", "model_info", "event_counts",
               "config_audit"});
  compare_all({"framework", "framework_version", "platform", "precision", "dataset", "timestamp", "status",
               "status_reason", "failure_kind", "skipped_updates"});
  if (stored.contains("effective_config")) compare("effective_config", stored["effective_config"], Silence::denies);
  compare("source", source_section(stored), Silence::allows);
}

// A setting that frameworks print, and its field in a result.
struct PrintedSetting {
  const char *key, *section, *fact;
};
constexpr PrintedSetting k_printed[] = {{"sequence_length", "training_config", "sequence_length"},
                                        {"micro_batch_size", "training_config", "micro_batch_size"},
                                        {"global_batch_size", "training_config", "global_batch_size"},
                                        {"steps", "training_config", "max_steps"},
                                        {"seed", "training_config", "seed"},
                                        {"precision", "", "precision"},
                                        {"learning_rate", "training_config", "learning_rate"},
                                        {"min_learning_rate", "training_config", "min_learning_rate"},
                                        {"weight_decay", "training_config", "weight_decay"},
                                        {"clip_grad_norm", "training_config", "clip_grad_norm"},
                                        {"schedule", "training_config", "schedule"},
                                        {"warmup_steps", "training_config", "warmup_steps"},
                                        {"num_devices", "training_config", "num_gpus"},
                                        {"gradient_accumulation_steps", "parallelism_config", ""},
                                        {"tensor_model_parallel_size", "parallelism_config", ""},
                                        {"pipeline_model_parallel_size", "parallelism_config", ""},
                                        {"data_parallel_size", "parallelism_config", ""},
                                        {"context_parallel_size", "parallelism_config", ""},
                                        {"routing", "experts", ""},
                                        {"dispatcher", "experts", ""}};

std::optional<double> number_in(const std::string& text) {
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_same_setting(const std::string& stated, const std::string& printed) {
  const auto a = number_in(stated), b = number_in(printed);
  const bool is_whole = a && b && std::floor(*a) == *a && std::floor(*b) == *b;
  return is_whole ? *a == *b : a && b ? is_same_figure(*a, *b) : stated == printed;
}

// An audit entry of the result must state the printed value; without one the setting itself must.
void check_setting(const ResultCheck& check, const Json& stated, const PrintedSetting& setting,
                   const std::string& printed) {
  const std::string section = setting.section, fact = *setting.fact == '\0' ? setting.key : setting.fact;
  const auto compare = [&](const std::string& what, const std::string& word) {
    ++check.found.facts;
    if (!is_same_setting(word, printed)) check.refute(what, word, printed);
  };
  const Json facts = section.empty() ? stated : stated.value(section, Json::object());
  if (const AuditEntry* audited = find_audited(check.result.read, setting.key))
    compare("config_audit." + audited->key, audited->effective);
  else if (facts.contains(fact) && !facts[fact].is_null())
    compare(section.empty() ? fact : section + "." + fact, show_word(facts[fact]));
}

// Compares the settings that the log of a run of the suite prints, by the audit of the result where it names them.
void check_settings(const ResultCheck& check, const logs::ExtractedLog& log) {
  const Json stated = run_result_to_json(check.result.read);
  for (const logs::EffectiveSetting& printed : logs::effective_settings(log.facts))
    for (const PrintedSetting& each : k_printed)
      if (printed.key == each.key) check_setting(check, stated, each, printed.value);
  if (!check.result.read.effective_config) return;
  for (const auto& [key, value] : *check.result.read.effective_config) {
    const auto printed = log.settings.find(key);
    ++check.found.facts;
    if ((printed != log.settings.end() && printed->second == value) || is_hidden(value)) continue;
    check.refute("effective_config." + key, value, printed == log.settings.end() ? "nothing" : printed->second);
  }
}

// The records' own figures are compared step by step.
RunResult follow_again(const RunResult& stated, const logs::ReadLog& read) {
  RunResult again = stated;
  again.memory_by_rank.reset(), again.memory_metrics = {};
  if (again.experts) {
    ExpertFigures& experts = *again.experts;
    experts.load_values.reset(), experts.dropped_values.reset();
    experts.aux_loss_values.reset(), experts.z_loss_values.reset();
  }
  again.events.reset(), again.event_counts.reset(), again.skipped_updates.reset(), again.steps.reset();
  logs::add_logged_figures(again, read);
  return again;
}

// What a run of the suite without step records has from its log besides the series.
void check_followed(const ResultCheck& check, const logs::ReadLog& read) {
  const RunResult again = follow_again(check.result.read, read);
  RecordsByStep records = index_records(logs::make_step_records(read));
  add_expert_series(records, again);  // records hold no losses of routers
  check_series(check, records);
  check_routing(check, again.experts.value_or(ExpertFigures{}));
  const Json derived = run_result_to_json(again), &stored = check.result.stored;
  for (const char* section : {"memory_by_rank", "reported", "steps", "event_counts", "skipped_updates"}) {
    if (!stored.contains(section)) continue;
    check_numbers(check, section, stored[section], derived.value(section, {}));
    check_words(check, section, stored[section], derived.value(section, {}), Silence::denies);
  }
}

void check_reading(const ResultCheck& check, const LogText& log, const logs::ReadLog& read) {
  const RunResult& stated = check.result.read;
  if (was_followed(stated)) check_followed(check, read);
  if (is_of_run(stated)) {
    check_end_of_log(check, log.text, read);
    check_settings(check, read.log);
    return check_own_log(check, log.text);
  }
  const RunResult again = extract_again(attempt_of(stated, read), log.name, stated);
  check_series(check, records_of(again));
  check_sections(check, again);
  check_routing(check, again.experts.value_or(ExpertFigures{}));
  check_log_clock(check);
}

}  // namespace

bool is_from_log(const RunResult& result) { return result.source.log && result.source.format; }

void check_log(const StatedResults& results, const LogText& log, Verification& found) {
  const RunResult& first = results.front()->read;
  const std::string& format = *first.source.format;
  const auto broken = [&](const StatedResult& result, const Error& error) {
    found.broken.push_back(
        {result.file, fmt::format("its log {}", log.name), "read as " + format, error.problems().front().what});
  };
  std::optional<logs::ReadLog> read;
  try {
    read = logs::read_log_text(log.text, {is_of_run(first) || !is_known(format) ? "" : format});
    ++found.logs;
  } catch (const Error& error) {
    for (const auto& result : results) broken(*result, error);
    return;
  }
  for (const auto& result : results) {
    try {
      check_reading({*result, log.name, found}, log, *read);
    } catch (const Error& error) {
      broken(*result, error);
    }
  }
}

}  // namespace tprimat::results
