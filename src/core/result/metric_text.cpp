#include "result/metric_text.h"

#include <fmt/format.h>

#include <cmath>

#include "text/format.h"

namespace tprimat {

std::string format_figure(const Metric& metric, double value) {
  switch (metric.format) {
    case MetricFormat::count: return format_count(value);
    case MetricFormat::seconds: return format_duration(value);
    case MetricFormat::gigabytes: return format_gb(value * 1e9);
    case MetricFormat::percent: return format_percent(value);
    case MetricFormat::significant: return format_significant(value, 4);
  }
  return "";
}

std::map<std::string, Estimate> list_figures(const RunResult& result) {
  std::map<std::string, Estimate> figures;
  for (const Metric& metric : metrics())
    if (const auto figure = metric.read(result); figure && std::isfinite(figure->value))
      figures.emplace(metric.key, limit_interval(*figure, metric.range));
  return figures;
}

std::string describe_resources(const std::map<std::string, Estimate>& figures) {
  std::string text;
  for (const Metric& metric : metrics()) {
    const auto figure = figures.find(std::string(metric.key));
    if (figure == figures.end() || metric.table != MetricTable::resources || metric.format == MetricFormat::gigabytes)
      continue;
    text +=
        fmt::format("{}{}: {}", text.empty() ? "" : "; ", metric.title, format_figure(metric, figure->second.value));
  }
  return text;
}

}  // namespace tprimat
