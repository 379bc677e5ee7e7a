#include "archive/stated_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "archive/stated_numbers.h"
#include "archive/stated_series.h"
#include "base/error.h"
#include "extract/dialects.h"
#include "extract/step_records.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "result/summary.h"

namespace tprimat {
namespace {

// Of a run of the suite: its steps are counted from 1, and everything else is not from the log.
bool was_followed(const RunResult& result) { return result.source.format == "log"; }

KnownFacts facts_of(const RunResult& stated) {
  return {.platform = stated.platform,
          .model = stated.model_info.name,
          .device = stated.gpu_info.device_name,
          .devices = stated.training_config.num_gpus,
          .global_batch_size = stated.training_config.global_batch_size,
          .sequence_length = stated.training_config.sequence_length,
          .precision = stated.precision,
          .fixed_warmup_steps = stored_options(stated).fixed_warmup_steps};
}

RunResult extract_again(const ReadLog& read, const std::string& log_name, const RunResult& stated) {
  RunResult again = make_result(read, log_name, facts_of(stated));
  SummaryOptions options = stored_options(again);
  options.usd_per_hour = stated.derived.usd_per_hour;
  again.telemetry = stated.telemetry;
  summarise_run(again, options);
  return again;
}

// The format was detected then, and is given now.
Json without_confidence(const Json& stored) {
  Json source = stored.value("source", Json());
  if (source.is_object()) source.erase("confidence");
  return source;
}

void check_sections(const StatedResult& result, const RunResult& again, Verification& found) {
  const Json derived = run_result_to_json(again);
  const auto check = [&](const char* section, const Json& stated) {
    check_numbers({result.file, section, result.skip_intervals}, stated,
                  derived.contains(section) ? derived[section] : Json(), found);
  };
  for (const char* section :
       {"performance_metrics", "memory_metrics", "memory_by_rank", "statistics", "derived", "warmup", "steps",
        "reported", "training_config", "parallelism_config", "gpu_info", "model_info", "event_counts"})
    if (result.stored.contains(section)) check(section, result.stored[section]);
  check("source", without_confidence(result.stored));
}

}  // namespace

bool is_from_log(const RunResult& result) {
  if (!result.source.log || !result.source.format || result.source.steps_file) return false;
  return was_followed(result) || std::any_of(dialects().begin(), dialects().end(), [&](const Dialect& dialect) {
           return dialect.id == *result.source.format;
         });
}

void check_log(const StatedResult& result, const std::string& log_name, const std::string& log, Verification& found) {
  try {
    const bool followed = was_followed(result.read);
    const ReadLog read = read_log_text(log, {followed ? "" : *result.read.source.format});
    ++found.logs;
    if (followed) return check_series(result.file, result.read, index_records(make_step_records(read)), found);
    const RunResult again = extract_again(read, log_name, result.read);
    check_series(result.file, result.read, records_of(again), found);
    check_sections(result, again, found);
  } catch (const Error& error) {
    found.broken.push_back({result.file, fmt::format("its log {}", log_name), "read as " + *result.read.source.format,
                            error.problems().front().what});
  }
}

}  // namespace tprimat
