#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/verdict.h"
#include "history/index.h"
#include "result/metrics.h"
#include "stats/change_points.h"

namespace tprimat::results {

// A file with a run that another file of the series holds already.
struct CopiedRun {
  std::string path, of;
};

// One moment of a series: a run, or its repetitions (files that differ only in _r<k>).
struct HistoryPoint {
  double unix_time = 0;  // of the newest of its runs
  std::vector<std::string> paths;
  std::vector<CopiedRun> copies;           // of these, under other names; they do not count
  RunStatus status = RunStatus::complete;  // complete when all its runs are
  std::string dataset;                     // of the first run that names one
  std::string bad_time;                    // the malformed time stamp; then the file's time is used
  std::string fault;                       // an error that the audit finds in one of its runs
  std::optional<Estimate> figure;          // of the chosen metric
};

// Better and worse by the metric's direction; same and inconclusive as in a verdict (compare/verdict.h).
enum class TrendVerdict { better, worse, same, inconclusive, not_comparable };
constexpr auto enum_table(TrendVerdict) {
  return std::to_array<std::pair<TrendVerdict, std::string_view>>({{TrendVerdict::better, "better"},
                                                                   {TrendVerdict::worse, "worse"},
                                                                   {TrendVerdict::same, "same"},
                                                                   {TrendVerdict::inconclusive, "inconclusive"},
                                                                   {TrendVerdict::not_comparable, "not comparable"}});
}

// Compares the newest point with an earlier one by the two figures and their intervals; a point of one run gets the
// spread between runs that a verdict assumes.
struct TrendStep {
  size_t earlier = 0;  // which point
  Estimate change;     // newest / earlier - 1
  TrendVerdict verdict = TrendVerdict::inconclusive;
  std::string why = {};  // the points are not comparable
};

// All points of one series by time; each run counts once, however many files hold it. Points that are not complete,
// with an error of the audit, or without the figure stay in the list but are excluded.
struct Trend {
  SeriesKey series;
  std::string other_work;  // why runs of the same key form a separate series; empty for the first one
  std::vector<HistoryPoint> points;
  std::vector<size_t> known;                // points with a figure, by time
  std::optional<TrendStep> previous, best;  // of the newest known point; absent where there is no earlier one
  std::vector<LevelShift> shifts;           // `at` counts in `known`
  bool newest_is_known() const { return !known.empty() && known.back() + 1 == points.size(); }
};

// Why two runs of one key did different work; nothing if they did the same. Called if their stated facts differ.
using WorkJudge = std::function<std::optional<std::string>(const IndexedFile& earlier, const IndexedFile& later)>;

// By series, in the order of their keys; runs that did other work form separate series.
std::vector<Trend> gather_trends(const std::vector<IndexedFile>& files, const Metric& metric, const Margins& margins,
                                 const WorkJudge& judge = {});

// The best of these points, which all have a figure.
size_t best_of(const Trend& trend, const std::vector<size_t>& points, const Metric& metric);

// The key, and which work where there are several.
std::string describe_trend_series(const Trend& trend);

}  // namespace tprimat::results
