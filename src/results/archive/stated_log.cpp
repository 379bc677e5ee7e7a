#include "archive/stated_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "archive/stated_clock.h"
#include "archive/stated_numbers.h"
#include "archive/stated_series.h"
#include "archive/stated_settings.h"
#include "archive/stated_status.h"
#include "base/error.h"
#include "extract/attempts.h"
#include "extract/dialects.h"
#include "extract/step_records.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

// Of a run of the suite: its steps are counted from 1, and everything else is not from the log.
bool was_followed(const RunResult& result) { return result.source.format == "log"; }

// Of a run of the suite whose trainer wrote step records beside its log.
bool has_records(const RunResult& result) { return result.source.steps_file.has_value(); }

bool is_known(const std::string& format) {
  return std::any_of(logs::dialects().begin(), logs::dialects().end(),
                     [&](const logs::Dialect& each) { return each.id == format; });
}

bool is_of_run(const RunResult& result) { return was_followed(result) || has_records(result); }

logs::KnownFacts facts_of(const RunResult& stated) {
  return {.platform = stated.platform,
          .model = stated.model_info.name,
          .device = stated.gpu_info.device_name,
          .devices = stated.training_config.num_gpus,
          .global_batch_size = stated.training_config.global_batch_size,
          .sequence_length = stated.training_config.sequence_length,
          .precision = stated.precision,
          .fixed_warmup_steps = stored_options(stated).fixed_warmup_steps};
}

RunResult extract_again(const logs::ReadLog& read, const std::string& log_name, const RunResult& stated) {
  RunResult again = logs::make_result(read, log_name, facts_of(stated));
  SummaryOptions options = stored_options(again);
  options.usd_per_hour = stated.derived.usd_per_hour;
  again.telemetry = stated.telemetry;
  summarise_run(again, options);
  return again;
}

// The attempt of the log that the result was extracted from, where that was one alone.
logs::ReadLog attempt_of(const RunResult& stated, const logs::ReadLog& read) {
  if (!stated.source.attempt || read.log.steps.empty()) return read;
  const RunResult last = logs::make_result(read, "", {});
  const bool is_last_run =
      last.source.first_line == stated.source.first_line && last.source.records == stated.source.records;
  return is_last_run ? read : logs::select_attempt(read, *stated.source.attempt);
}

// The format was detected then, and is given now; the log lay elsewhere.
Json source_section(const Json& stored) {
  Json source = stored.value("source", Json());
  if (source.is_object()) source.erase("confidence"), source.erase("log");
  return source;
}

constexpr const char* k_sections[] = {"performance_metrics",
                                      "memory_metrics",
                                      "memory_by_rank",
                                      "statistics",
                                      "derived",
                                      "warmup",
                                      "steps",
                                      "reported",
                                      "training_config",
                                      "parallelism_config",
                                      "gpu_info",
                                      "model_info",
                                      "event_counts",
                                      "config_audit",
                                      "framework",
                                      "framework_version",
                                      "platform",
                                      "precision",
                                      "dataset",
                                      "timestamp",
                                      "status",
                                      "status_reason",
                                      "failure_kind",
                                      "skipped_updates"};

void check_sections(const StatedResult& result, const std::string& log_name, const RunResult& again,
                    Verification& found) {
  const Json derived = run_result_to_json(again);
  const auto check = [&](const char* section, const Json& stated, Silence silence) {
    const Json follows = derived.contains(section) ? derived[section] : Json();
    const NumberPlace place{result.file, section, result.skip_intervals, log_name};
    check_numbers(place, stated, follows, found);
    check_words(place, stated, follows, silence, found);
  };
  for (const char* section : k_sections)
    if (result.stored.contains(section)) check(section, result.stored[section], Silence::allows);
  if (result.stored.contains("effective_config"))
    check("effective_config", result.stored["effective_config"], Silence::denies);
  check("source", source_section(result.stored), Silence::allows);
}

void check_reading(const StatedResult& result, const LogText& log, const logs::ReadLog& read, Verification& found) {
  if (was_followed(result.read))
    check_series({result.file, log.name}, result.read, index_records(logs::make_step_records(read)), found);
  if (is_of_run(result.read)) {
    check_end_of_log(result, log, read, found);
    return check_log_of_run(result, log, read, found);
  }
  const RunResult again = extract_again(attempt_of(result.read, read), log.name, result.read);
  check_series({result.file, log.name}, result.read, records_of(again), found);
  check_sections(result, log.name, again, found);
  check_log_clock({result.file, log.name}, result.read, found);
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
      check_reading(*result, log, *read, found);
    } catch (const Error& error) {
      broken(*result, error);
    }
  }
}

}  // namespace tprimat::results
