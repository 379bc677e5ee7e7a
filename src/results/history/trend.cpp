#include "history/trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/clock.h"
#include "compare/contender.h"

namespace tprimat::results {
namespace {

bool counts(const HistoryPoint& point) {
  return point.status == RunStatus::complete && point.fault.empty() && point.figure.has_value();
}

std::optional<Estimate> find_figure(const HistoryEntry& entry, std::string_view key) {
  const auto figure = entry.figures.find(std::string(key));
  return figure != entry.figures.end() ? std::optional(figure->second) : std::nullopt;
}

HistoryPoint make_point(const std::vector<const IndexedFile*>& files, const Metric& metric) {
  HistoryPoint point;
  std::vector<Estimate> figures;
  std::optional<double> most;
  for (const IndexedFile* file : files) {
    point.unix_time = std::max(point.unix_time, file->unix_time);
    point.paths.push_back(file->path);
    if (file->entry.status != RunStatus::complete) point.status = file->entry.status;
    if (point.fault.empty()) point.fault = file->entry.fault;
    if (point.dataset.empty()) point.dataset = file->entry.dataset;
    if (!file->entry.timestamp.empty() && !parse_timestamp(file->entry.timestamp))
      point.bad_time = file->entry.timestamp;
    const auto figure = find_figure(file->entry, metric.key);
    if (!figure) continue;
    figures.push_back(*figure);
    most = std::max(most, whole_of(figure, find_figure(file->entry, metric.share)));
  }
  point.figure = combine_runs(figures, metric, most);
  return point;
}

TrendVerdict judge_trend(const Estimate& ratio, const Metric& metric, double smallest_effect) {
  const bool reversed = metric.better == Direction::lower_is_better;
  switch (judge(ratio, smallest_effect)) {
    case Verdict::faster: return reversed ? TrendVerdict::worse : TrendVerdict::better;
    case Verdict::slower: return reversed ? TrendVerdict::better : TrendVerdict::worse;
    case Verdict::same: return TrendVerdict::same;
    case Verdict::inconclusive: break;
  }
  return TrendVerdict::inconclusive;
}

// One run does not show the spread between runs; as for a verdict, it is assumed.
Estimate with_run_spread(const HistoryPoint& point, double assumed_run_spread) {
  Estimate figure = *point.figure;
  if (point.paths.size() > 1 || !figure.low || !figure.high || !(*figure.low > 0)) return figure;
  const double spread = 1.96 * assumed_run_spread;
  figure.low = figure.value * std::exp(-std::hypot(std::log(figure.value / *figure.low), spread));
  figure.high = figure.value * std::exp(std::hypot(std::log(*figure.high / figure.value), spread));
  return figure;
}

std::optional<TrendStep> compare_points(const Trend& trend, size_t earlier, const Metric& metric,
                                        const Margins& margins) {
  if (!has_percentages(metric)) return std::nullopt;
  const auto ratio =
      estimate_ratio_by_figures(with_run_spread(trend.points[earlier], margins.assumed_run_spread),
                                with_run_spread(trend.points[trend.known.back()], margins.assumed_run_spread));
  if (!ratio) return std::nullopt;
  TrendStep step{earlier, {ratio->value - 1, {}, {}}, judge_trend(*ratio, metric, margins.smallest_effect)};
  if (ratio->low && ratio->high) step.change.low = *ratio->low - 1, step.change.high = *ratio->high - 1;
  return step;
}

void describe_trend(Trend& trend, const Metric& metric, const Margins& margins) {
  std::ranges::stable_sort(trend.points, [](const auto& a, const auto& b) { return a.unix_time < b.unix_time; });
  std::vector<double> values;
  for (size_t i = 0; i < trend.points.size(); ++i)
    if (counts(trend.points[i])) trend.known.push_back(i), values.push_back(trend.points[i].figure->value);
  trend.shifts = find_level_shifts(values, {.min_relative_change = margins.smallest_effect});
  if (trend.known.size() < 2) return;
  const std::vector<size_t> earlier(trend.known.begin(), trend.known.end() - 1);
  trend.previous = compare_points(trend, earlier.back(), metric, margins);
  trend.best = compare_points(trend, best_of(trend, earlier, metric), metric, margins);
}

// Files of one series by point. Of several files with the same run the earliest counts; among these the first by name.
class SeriesFiles {
 public:
  // In the order of their times.
  void add(const IndexedFile& file) { files_.push_back(&file); }
  const IndexedFile& newest() const { return *files_.back(); }

  std::vector<HistoryPoint> make_points(const Metric& metric) {
    for (const IndexedFile* file : files_) sort_in(*file);
    std::vector<HistoryPoint> points;
    for (const auto& [name, files] : counted_) {
      points.push_back(make_point(files, metric));
      points.back().copies = copies_[name];
    }
    return points;
  }

 private:
  void sort_in(const IndexedFile& file) {
    const std::string point = repetition_key(file.path);
    const std::string& measurement = file.entry.measurement;
    const auto [original, is_first] = originals_.try_emplace(measurement, &file);
    if (is_first || measurement.empty())
      counted_[point].push_back(&file);
    else
      copies_[repetition_key(original->second->path)].push_back({file.path, original->second->path});
  }

  std::vector<const IndexedFile*> files_;
  std::map<std::string, std::vector<const IndexedFile*>> counted_;  // by point
  std::map<std::string, std::vector<CopiedRun>> copies_;            // by point
  std::map<std::string, const IndexedFile*> originals_;             // by measurement
};

// The files of one key whose runs did the same work.
struct WorkFiles {
  SeriesFiles files;
  std::set<std::string> stated;  // HistoryEntry::work
  std::string other_work;
};

// Runs that state different facts may still have done the same work: one may state more facts, or use another name.
void sort_by_work(std::vector<WorkFiles>& works, const IndexedFile& file, const WorkJudge& judge) {
  const auto join = [&](WorkFiles& work) {
    work.stated.insert(file.entry.work);
    work.files.add(file);
  };
  for (WorkFiles& work : works)
    if (!judge || work.stated.contains(file.entry.work)) return join(work);
  std::string reason;
  for (size_t i = works.size(); i-- > 0;) {
    const auto other = judge(works[i].files.newest(), file);
    if (!other) return join(works[i]);
    if (reason.empty()) reason = fmt::format("other work than {}: {}", works[i].files.newest().path, *other);
  }
  works.push_back({{}, {}, reason});
  join(works.back());
}

}  // namespace

std::vector<Trend> gather_trends(const std::vector<IndexedFile>& files, const Metric& metric, const Margins& margins,
                                 const WorkJudge& judge) {
  std::vector<const IndexedFile*> by_time;
  for (const IndexedFile& file : files) by_time.push_back(&file);
  std::ranges::stable_sort(by_time, [](const IndexedFile* a, const IndexedFile* b) {
    return a->unix_time != b->unix_time ? a->unix_time < b->unix_time : a->path < b->path;
  });
  std::map<SeriesKey, std::vector<WorkFiles>> series;
  for (const IndexedFile* file : by_time) {
    std::vector<WorkFiles>& works = series[file->entry.series];
    if (works.empty()) works.emplace_back();
    if (works.size() == 1 && works[0].stated.empty())
      works[0].stated.insert(file->entry.work), works[0].files.add(*file);
    else
      sort_by_work(works, *file, judge);
  }
  std::vector<Trend> trends;
  for (auto& [key, works] : series)
    for (WorkFiles& work : works) {
      Trend trend;
      trend.series = key;
      trend.other_work = work.other_work;
      trend.points = work.files.make_points(metric);
      describe_trend(trend, metric, margins);
      trends.push_back(std::move(trend));
    }
  return trends;
}

size_t best_of(const Trend& trend, const std::vector<size_t>& points, const Metric& metric) {
  const double sign = metric.better == Direction::lower_is_better ? -1 : 1;
  return *std::ranges::max_element(points, [&](size_t a, size_t b) {
    return sign * trend.points[a].figure->value < sign * trend.points[b].figure->value;
  });
}

std::string describe_trend_series(const Trend& trend) {
  return describe_series(trend.series) + (trend.other_work.empty() ? "" : ", other work");
}

}  // namespace tprimat::results
