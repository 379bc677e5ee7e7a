#include "history/history_document.h"

#include "base/clock.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace document {
namespace {

Nullable<Step> describe_step(const Trend& trend, const std::optional<TrendStep>& step) {
  if (!step) return {};
  const bool comparable = step->why.empty();
  return Step{trend.points[step->earlier].paths.front(), comparable ? std::optional(step->change) : std::nullopt,
              step->verdict, comparable ? std::nullopt : std::optional(step->why)};
}

Nullable<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Point describe_point(const HistoryPoint& point) {
  Point described{format_utc(point.unix_time), point.paths, {}, point.status, text_or_null(point.fault), point.figure};
  for (const CopiedRun& copy : point.copies) described.copies.push_back({copy.path, copy.of});
  return described;
}

Series describe_trend(const Trend& trend) {
  Series series{trend.series,
                describe_trend_series(trend),
                text_or_null(trend.other_work),
                describe_step(trend, trend.previous),
                describe_step(trend, trend.best),
                {},
                {}};
  for (const HistoryPoint& point : trend.points) series.points.push_back(describe_point(point));
  for (const LevelShift& shift : trend.shifts) {
    const HistoryPoint& first = trend.points[trend.known[shift.at]];
    const HistoryPoint& last = trend.points[trend.known[shift.at - 1]];
    series.shifts.push_back(
        {format_utc(first.unix_time), format_utc(last.unix_time), first.paths.front(), shift.before, shift.after});
  }
  return series;
}

}  // namespace

HistoryReport describe_history(const History& history) {
  const IndexedFolder& index = history.index;
  HistoryReport report{.folder = history.folder.string(),
                       .metric = std::string(history.metric->key),
                       .unit = std::string(history.metric->unit),
                       .smallest_effect = history.comparison.smallest_effect,
                       .assumed_run_spread = history.assumed_run_spread,
                       .exit_status = static_cast<int64_t>(history_status(history)),
                       .index = {index.index_path, static_cast<int64_t>(index.files_read),
                                 static_cast<int64_t>(index.files_gone), index.note},
                       .series = {},
                       .gates = describe_gates(history.comparison.gates),
                       .skipped = describe_skipped(index.skipped)};
  for (const Trend& trend : history.trends) report.series.push_back(describe_trend(trend));
  return report;
}

}  // namespace document

Json history_to_json(const History& history) { return to_json(document::describe_history(history)); }

}  // namespace tprimat::results
