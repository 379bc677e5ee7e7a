#include "history/history_report.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "report/report.h"
#include "text/csv.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

Json step_to_json(const Trend& trend, const std::optional<TrendStep>& step) {
  if (!step) return nullptr;
  return {{"file", trend.points[step->earlier].paths.front()},
          {"change", step->why.empty() ? to_json(step->change) : Json(nullptr)},
          {"verdict", enum_name(step->verdict)},
          {"why", step->why.empty() ? Json(nullptr) : Json(step->why)}};
}

Json point_to_json(const HistoryPoint& point) {
  Json copies = Json::array();
  for (const CopiedRun& copy : point.copies) copies.push_back({{"path", copy.path}, {"of", copy.of}});
  return {{"time", format_utc(point.unix_time)},
          {"files", point.paths},
          {"copies", copies},
          {"status", enum_name(point.status)},
          {"fault", point.fault.empty() ? Json(nullptr) : Json(point.fault)},
          {"figure", point.figure ? to_json(*point.figure) : Json(nullptr)}};
}

Json trend_to_json(const Trend& trend) {
  Json points = Json::array(), shifts = Json::array();
  for (const HistoryPoint& point : trend.points) points.push_back(point_to_json(point));
  for (const LevelShift& shift : trend.shifts) {
    const HistoryPoint& first = trend.points[trend.known[shift.at]];
    shifts.push_back({{"time", format_utc(first.unix_time)},
                      {"after", format_utc(trend.points[trend.known[shift.at - 1]].unix_time)},
                      {"file", first.paths.front()},
                      {"level_before", shift.before},
                      {"level_after", shift.after}});
  }
  return {{"series", to_json(trend.series)},
          {"title", describe_trend_series(trend)},
          {"other_work", trend.other_work.empty() ? Json(nullptr) : Json(trend.other_work)},
          {"against_previous", step_to_json(trend, trend.previous)},
          {"against_best", step_to_json(trend, trend.best)},
          {"shifts", shifts},
          {"points", points}};
}

std::string csv_point(const Trend& trend, const HistoryPoint& point) {
  std::string files;
  for (const std::string& path : point.paths) files += (files.empty() ? "" : ";") + path;
  const Estimate figure = point.figure.value_or(Estimate{});
  return fmt::format("{},{},{},{},{},{},{}\n", csv_text(describe_trend_series(trend)), format_utc(point.unix_time),
                     enum_name(point.status), point.figure ? csv_number(figure.value) : "", csv_number(figure.low),
                     csv_number(figure.high), csv_text(files));
}

}  // namespace

Json history_to_json(const History& history) {
  Json series = Json::array(), skipped = Json::array(), gates = Json::array();
  for (const Trend& trend : history.trends) series.push_back(trend_to_json(trend));
  for (const SkippedFile& file : history.index.skipped)
    skipped.push_back({{"path", file.path}, {"reason", file.reason}});
  for (const GateResult& result : history.comparison.gates) gates.push_back(gate_to_json(result));
  return {{"history_version", 1},
          {"folder", history.folder.string()},
          {"metric", history.metric->key},
          {"unit", history.metric->unit},
          {"smallest_effect", history.comparison.smallest_effect},
          {"assumed_run_spread", history.assumed_run_spread},
          {"exit_status", static_cast<int>(history_status(history))},
          {"index",
           {{"path", history.index.index_path},
            {"files_read", history.index.files_read},
            {"files_gone", history.index.files_gone},
            {"note", history.index.note}}},
          {"series", series},
          {"gates", gates},
          {"skipped", skipped}};
}

std::string render_csv(const History& history) {
  std::string out = fmt::format("series,time,status,{0},{0}_ci95_low,{0}_ci95_high,files\n", history.metric->key);
  for (const Trend& trend : history.trends)
    for (const HistoryPoint& point : trend.points) out += csv_point(trend, point);
  return out;
}

}  // namespace tprimat::results
