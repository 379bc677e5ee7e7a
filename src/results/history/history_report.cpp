#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "report/figures.h"
#include "report/report.h"
#include "text/csv.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr size_t k_max_series = 100, k_max_detailed = 6, k_sparkline_points = 30;

std::string signed_percent(double share) { return (share > 0 ? "+" : "") + format_percent(share, 2); }

// Between two levels of a figure that is never negative; "" where there is no such share.
std::string percent_change(const Metric& metric, double before, double after) {
  return has_percentages(metric) && before > 0 && after >= 0 ? signed_percent(after / before - 1) : "";
}

std::string describe_step(const std::optional<TrendStep>& step) {
  if (!step) return "-";
  if (step->verdict == TrendVerdict::not_comparable) return std::string(enum_name(step->verdict));
  std::string text = fmt::format("{} {}", enum_name(step->verdict), signed_percent(step->change.value));
  if (step->change.low && step->change.high)
    text += fmt::format(" [{} to {}]", signed_percent(*step->change.low), signed_percent(*step->change.high));
  return text;
}

std::string date_of(const HistoryPoint& point) { return format_utc(point.unix_time); }

std::vector<double> values_of(const Trend& trend, size_t most) {
  std::vector<double> values;
  for (const size_t i : std::span(trend.known).last(std::min(trend.known.size(), most)))
    values.push_back(trend.points[i].figure->value);
  return values;
}

std::string list_copies(const History& history) {
  constexpr size_t k_max = 5;
  std::string text;
  size_t count = 0;
  for (const Trend& trend : history.trends)
    for (const HistoryPoint& point : trend.points)
      for (const CopiedRun& copy : point.copies)
        if (++count <= k_max) text += fmt::format("{}{} of {}", count > 1 ? ", " : "", copy.path, copy.of);
  if (count == 0) return "";
  if (count > k_max) text += fmt::format(" and {} more", count - k_max);
  return fmt::format("{} stored in more than one file count{} once: {}.", count == 1 ? "A run" : "Runs",
                     count == 1 ? "s" : "", text);
}

DocumentPart introduce(const History& history, size_t points) {
  std::vector<Line> lines{
      {fmt::format("{} series of {} point{} in {}; {} ({}).", history.trends.size(), points, points == 1 ? "" : "s",
                   history.folder.string(), history.metric->title, enum_name(history.metric->better)),
       Tone::plain, ""}};
  if (const std::string copies = list_copies(history); !copies.empty())
    lines.push_back({copies, Tone::doubtful, "a copy adds no run; remove it from the directory"});
  if (!history.index.note.empty()) lines.push_back({history.index.note + ".", Tone::doubtful, ""});
  if (history.trends.size() > k_max_series)
    lines.push_back({fmt::format("The table shows the first {} series; --csv and --json list all.", k_max_series),
                     Tone::doubtful, "choose with --model, --framework, --platform or --strategy"});
  return make_lines(std::move(lines));
}

DocumentPart tabulate_series(const History& history) {
  TextTable table{
      {"series", "points", "newest", "figure", "against the previous", "against the best", "trend"}, {}, {1}};
  for (const Trend& trend : std::span(history.trends).first(std::min(history.trends.size(), k_max_series))) {
    const HistoryPoint& newest = trend.points.back();
    std::string figure = format_estimate(*history.metric, newest.figure);
    if (newest.status != RunStatus::complete)
      figure = std::string(enum_name(newest.status));
    else if (!newest.fault.empty())
      figure = "in doubt";
    const bool known = trend.newest_is_known();
    table.rows.push_back({describe_trend_series(trend), fmt::format("{}", trend.points.size()), date_of(newest), figure,
                          known ? describe_step(trend.previous) : "-", known ? describe_step(trend.best) : "-",
                          draw_sparkline(values_of(trend, k_sparkline_points))});
  }
  return make_table(std::move(table));
}

bool is_worse(const Metric& metric, const LevelShift& shift) {
  return metric.better == Direction::lower_is_better ? shift.after > shift.before : shift.after < shift.before;
}

void list_shifts(const History& history, const Trend& trend, std::vector<Line>& lines) {
  for (const LevelShift& shift : trend.shifts) {
    const HistoryPoint &last = trend.points[trend.known[shift.at - 1]], &first = trend.points[trend.known[shift.at]];
    const std::string change = percent_change(*history.metric, shift.before, shift.after);
    lines.push_back(
        {fmt::format("{}: {} to {}{} between {} and {}", describe_trend_series(trend),
                     format_figure(*history.metric, shift.before), format_figure(*history.metric, shift.after),
                     change.empty() ? "" : fmt::format(" ({})", change), date_of(last), date_of(first)),
         history.metric->better == Direction::neither ? Tone::plain
         : is_worse(*history.metric, shift)           ? Tone::bad
                                                      : Tone::good,
         fmt::format("first seen in {}", first.paths.front())});
  }
}

DocumentPart tabulate_points(const History& history, const Trend& trend) {
  TextTable table{{"when", "figure", "change", "runs", "status", "file"}, {}, {3}};
  const size_t first = trend.points.size() - std::min(trend.points.size(), history.last);
  for (size_t i = first; i < trend.points.size(); ++i) {
    const HistoryPoint& point = trend.points[i];
    std::string change;
    if (i > 0 && point.figure && trend.points[i - 1].figure)
      change = percent_change(*history.metric, trend.points[i - 1].figure->value, point.figure->value);
    if (change.empty()) change = "-";
    table.rows.push_back(
        {date_of(point), format_estimate(*history.metric, point.figure), change, fmt::format("{}", point.paths.size()),
         point.fault.empty() ? std::string(enum_name(point.status)) : "in doubt", point.paths.front()});
  }
  return make_table(std::move(table));
}

void list_wrong_times(const Trend& trend, std::vector<Line>& lines) {
  for (const HistoryPoint& point : trend.points)
    if (!point.bad_time.empty())
      lines.push_back({fmt::format("{}: \"{}\" in {} is not a time stamp; the file's time is used",
                                   describe_trend_series(trend), point.bad_time, point.paths.front()),
                       Tone::doubtful, "correct timestamp, e.g. 2026-02-05T12:00:00Z"});
}

// Other data may take more or less time to read, which is not a change of the program.
void list_other_data(const Trend& trend, std::vector<Line>& lines) {
  const HistoryPoint* before = nullptr;
  for (const HistoryPoint& point : trend.points) {
    if (point.dataset.empty()) continue;
    if (before != nullptr && before->dataset != point.dataset)
      lines.push_back({fmt::format("{}: the data changes from {} to {} with {}", describe_trend_series(trend),
                                   before->dataset, point.dataset, point.paths.front()),
                       Tone::doubtful, "compare runs on the same data, or put them into separate folders"});
    before = &point;
  }
}

// Why runs with the same key form another series, and why points have no verdict.
void list_doubts(const Trend& trend, std::vector<Line>& lines) {
  const std::string series = describe_trend_series(trend);
  if (!trend.other_work.empty())
    lines.push_back({fmt::format("{}: {} is {}", series, trend.points.front().paths.front(), trend.other_work),
                     Tone::doubtful, "runs of other work form their own series"});
  for (const HistoryPoint& point : trend.points)
    if (!point.fault.empty())
      lines.push_back({fmt::format("{}: {} is excluded: {}", series, point.paths.front(), point.fault), Tone::bad,
                       "fix the file or remove it from the directory"});
  list_wrong_times(trend, lines);
  list_other_data(trend, lines);
  const auto explain = [&](const char* against, const std::optional<TrendStep>& step) {
    if (step && !step->why.empty())
      lines.push_back({fmt::format("{}: {} and {}, {}, are not comparable: {}", series,
                                   trend.points[trend.known.back()].paths.front(), against,
                                   trend.points[step->earlier].paths.front(), step->why),
                       Tone::bad, ""});
  };
  explain("the previous", trend.previous);
  if (trend.best && trend.best->earlier != trend.previous->earlier) explain("the best", trend.best);
}

void add_lines(Document& document, const char* heading, std::vector<Line> lines) {
  const size_t all = lines.size();
  if (all > k_max_series) {
    lines.resize(k_max_series);
    lines.push_back({fmt::format("and {} more", all - k_max_series), Tone::plain, ""});
  }
  document.push_back(make_heading(heading));
  document.push_back(make_lines(std::move(lines)));
}

void add_doubts(const History& history, Document& document) {
  std::vector<Line> lines;
  for (const Trend& trend : history.trends) list_doubts(trend, lines);
  if (!lines.empty()) add_lines(document, "Audit", std::move(lines));
}

void add_shifts(const History& history, Document& document) {
  std::vector<Line> lines;
  for (const Trend& trend : history.trends) list_shifts(history, trend, lines);
  if (lines.empty()) lines.push_back({"none found", Tone::good, ""});
  add_lines(document, "Level shifts", std::move(lines));
}

std::string describe_spread(double assumed_run_spread) {
  if (assumed_run_spread <= 0) return "no spread between runs is added to a point of one run";
  return fmt::format("a point of one run gets an assumed spread between runs of {} (--run-spread)",
                     format_percent(assumed_run_spread));
}

std::string write_footer(const History& history) {
  return fmt::format(
      "A series groups results that agree in model, framework, installation, platform, device, device count, "
      "precision, batch, sequence length and strategy, and did the same work according to the audit. Changes combine "
      "the 95 % intervals of both figures; {}. Better, worse and same require the whole interval. Level shifts are "
      "found by least squares with a penalty of 3 s2 log n per shift.",
      describe_spread(history.assumed_run_spread));
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

std::string draw_sparkline(const std::vector<double>& values) {
  constexpr const char* k_bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) return "";
  const auto [least, most] = std::ranges::minmax_element(values);
  std::string line;
  for (const double value : values) {
    const double height = *most > *least ? (value - *least) / (*most - *least) : 0.5;
    line += k_bars[std::min<size_t>(7, static_cast<size_t>(height * 8))];
  }
  return line;
}

Document build_document(const History& history) {
  size_t points = 0;
  for (const Trend& trend : history.trends) points += trend.points.size();
  Document document{introduce(history, points), tabulate_series(history)};
  add_doubts(history, document);
  add_shifts(history, document);
  if (history.trends.size() <= k_max_detailed)
    for (const Trend& trend : history.trends) {
      document.push_back(make_heading(
          fmt::format("{}, the last {}", describe_trend_series(trend), std::min(trend.points.size(), history.last))));
      document.push_back(tabulate_points(history, trend));
    }
  add_gates(document, history.comparison.gates);
  document.push_back(make_lines({{write_footer(history), Tone::faint, ""}}));
  make_printable(document);
  return document;
}

std::string render_csv(const History& history) {
  std::string out = fmt::format("series,time,status,{0},{0}_ci95_low,{0}_ci95_high,files\n", history.metric->key);
  for (const Trend& trend : history.trends)
    for (const HistoryPoint& point : trend.points) out += csv_point(trend, point);
  return out;
}

}  // namespace tprimat::results
