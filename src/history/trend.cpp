#include "history/trend.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compare/contender.h"
#include "compare/verdict.h"

namespace tprimat {
namespace {

bool counts(const HistoryPoint& point) { return point.status == RunStatus::complete && point.figure.has_value(); }

HistoryPoint make_point(const std::vector<const IndexedFile*>& files, const Metric& metric) {
  HistoryPoint point;
  std::vector<Estimate> figures;
  for (const IndexedFile* file : files) {
    point.unix_time = std::max(point.unix_time, file->unix_time);
    point.paths.push_back(file->path);
    if (file->entry.status != RunStatus::complete) point.status = file->entry.status;
    const auto figure = file->entry.figures.find(std::string(metric.key));
    if (figure != file->entry.figures.end()) figures.push_back(figure->second);
  }
  point.figure = combine_runs(figures);
  return point;
}

TrendVerdict judge_trend(const Estimate& ratio, const Metric& metric, double smallest_effect) {
  const bool turned = metric.better == Direction::lower_is_better;
  switch (judge(ratio, smallest_effect)) {
    case Verdict::faster: return turned ? TrendVerdict::worse : TrendVerdict::better;
    case Verdict::slower: return turned ? TrendVerdict::better : TrendVerdict::worse;
    case Verdict::same: return TrendVerdict::same;
    case Verdict::inconclusive: break;
  }
  return TrendVerdict::inconclusive;
}

// One run does not show the spread between runs: as in a verdict, that is assumed.
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
  const auto ratio =
      estimate_ratio_by_figures(with_run_spread(trend.points[earlier], margins.assumed_run_spread),
                                with_run_spread(trend.points[trend.known.back()], margins.assumed_run_spread));
  if (!ratio) return std::nullopt;
  TrendStep step{earlier, {ratio->value - 1, {}, {}}, judge_trend(*ratio, metric, margins.smallest_effect)};
  if (ratio->low && ratio->high) step.change.low = *ratio->low - 1, step.change.high = *ratio->high - 1;
  return step;
}

size_t best_of(const Trend& trend, const std::vector<size_t>& points, const Metric& metric) {
  const double sign = metric.better == Direction::lower_is_better ? -1 : 1;
  return *std::max_element(points.begin(), points.end(), [&](size_t a, size_t b) {
    return sign * trend.points[a].figure->value < sign * trend.points[b].figure->value;
  });
}

void describe_trend(Trend& trend, const Metric& metric, const Margins& margins) {
  std::stable_sort(trend.points.begin(), trend.points.end(),
                   [](const auto& a, const auto& b) { return a.unix_time < b.unix_time; });
  std::vector<double> values;
  for (size_t i = 0; i < trend.points.size(); ++i)
    if (counts(trend.points[i])) trend.known.push_back(i), values.push_back(trend.points[i].figure->value);
  trend.shifts = find_level_shifts(values, {.min_relative_change = margins.smallest_effect});
  if (trend.known.size() < 2) return;
  const std::vector<size_t> earlier(trend.known.begin(), trend.known.end() - 1);
  trend.previous = compare_points(trend, earlier.back(), metric, margins);
  trend.best = compare_points(trend, best_of(trend, earlier, metric), metric, margins);
}

// Files of one series by the point that they belong to. Of several files that hold the same run the earliest counts, of
// those the first by name.
class SeriesFiles {
 public:
  void add(const IndexedFile& file) { files_.push_back(&file); }

  std::vector<HistoryPoint> make_points(const Metric& metric) {
    std::stable_sort(files_.begin(), files_.end(), [](const IndexedFile* a, const IndexedFile* b) {
      return a->unix_time != b->unix_time ? a->unix_time < b->unix_time : a->path < b->path;
    });
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

}  // namespace

std::vector<Trend> gather_trends(const std::vector<IndexedFile>& files, const Metric& metric, const Margins& margins) {
  std::map<SeriesKey, SeriesFiles> series;
  for (const IndexedFile& file : files) series[file.entry.series].add(file);
  std::vector<Trend> trends;
  for (auto& [key, members] : series) {
    Trend trend{
        .series = key, .points = members.make_points(metric), .known = {}, .previous = {}, .best = {}, .shifts = {}};
    describe_trend(trend, metric, margins);
    trends.push_back(std::move(trend));
  }
  return trends;
}

}  // namespace tprimat
