#include "report/extract_document.h"

#include "result/metric_text.h"

namespace tprimat::results::document {
namespace {

ExtractedLog describe_file(const ExtractedFile& file) {
  ExtractedLog log;
  log.file = file.path;
  if (!file.why_nothing.empty()) {
    log.nothing = file.why_nothing;
    return log;
  }
  const RunResult& result = file.result;
  log.result = file.result_path;
  log.format = result.source.format.value_or("");
  log.status = result.status;
  log.status_reason = result.status_reason;
  if (const auto& time = result.time_to_train; time && time->has_time()) log.time_to_train_seconds = time->seconds;
  if (result.performance_metrics) log.steps = result.performance_metrics->total_steps;
  if (result.statistics) log.median_step_time_seconds = result.statistics->median;
  log.figures = list_figures(result);
  return log;
}

}  // namespace

std::vector<ExtractedLog> describe_extracted(const std::vector<ExtractedFile>& files) {
  std::vector<ExtractedLog> logs;
  for (const ExtractedFile& file : files) logs.push_back(describe_file(file));
  return logs;
}

GatheredLogs describe_gathered(const GatheredReport& report) {
  GatheredLogs logs;
  for (const GatheredFile& gathered : report.taken) {
    const RunResult& result = gathered.file.result;
    logs.taken.push_back({describe_file(gathered.file), gathered.place, gathered.model, gathered.model_because,
                          result.framework, result.platform, result.source.assumed});
  }
  for (const auto& [path, why] : report.passed_over) logs.passed_over.push_back({path, why});
  for (const SearchedPlace& place : report.places)
    logs.places.push_back({place.name, place.folder, place.exists, static_cast<int64_t>(place.logs),
                           place.incomplete.empty() ? std::nullopt : std::optional(place.incomplete)});
  return logs;
}

}  // namespace tprimat::results::document
